// RUN: python -m stencil_dsl.opt %s | filecheck %s
// RUN: python -m stencil_dsl.opt %s -p canonicalize | filecheck %s --check-prefix CLEAN

// A march along x with one carried accumulator; loops and index arithmetic are those of scf and arith.

// CHECK:      tile.kernel @march {
// CHECK-NEXT: ^bb0(%u: !tile.array<?x?xf32>, %out: !tile.array<?x?xf32>):
tile.kernel @march {
^bb0(%u: !tile.array<?x?xf32>, %out: !tile.array<?x?xf32>):
  %bz = tile.block_id 0
  %bx = tile.block_id 1
  %chunk = arith.constant 16 : index
  %one = arith.constant 1 : index
  %x0 = arith.muli %bx, %chunk : index
  %x1 = arith.addi %x0, %chunk : index
  // Nobody uses this load, and a load has no effect that could be missed.
  // CHECK: %unused = tile.splat
  // CLEAN-NOT: tile.splat
  %scalar = arith.constant 1.0 : f32
  %unused = tile.splat %scalar : f32 -> !tile.tile<1x32xf32>
  %first = tile.load %u[%x0, %bz] checked false : !tile.array<?x?xf32> -> !tile.tile<1x32xf32>
  // CHECK:      %acc = scf.for %x = %x0 to %x1 step %one iter_args(%acc_1 = %first) -> (!tile.tile<1x32xf32>) {
  // CHECK-NEXT:   %next = tile.load %u[%x, %bz] checked false
  // CHECK-NEXT:   %total = tile.map "add"(%acc_1, %next)
  // CHECK-NEXT:   tile.store %total, %out[%x, %bz] checked false
  // CHECK-NEXT:   scf.yield %next : !tile.tile<1x32xf32>
  // CHECK-NEXT: }
  // CLEAN: scf.for
  // CLEAN: tile.store
  %acc = scf.for %x = %x0 to %x1 step %one iter_args(%acc_1 = %first) -> (!tile.tile<1x32xf32>) {
    %next = tile.load %u[%x, %bz] checked false : !tile.array<?x?xf32> -> !tile.tile<1x32xf32>
    %total = tile.map "add"(%acc_1, %next) : !tile.tile<1x32xf32>, !tile.tile<1x32xf32> -> !tile.tile<1x32xf32>
    tile.store %total, %out[%x, %bz] checked false : !tile.tile<1x32xf32>, !tile.array<?x?xf32>
    scf.yield %next : !tile.tile<1x32xf32>
  }
}
