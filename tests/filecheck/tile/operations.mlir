// RUN: python -m stencil_dsl.opt %s | filecheck %s
// RUN: python -m stencil_dsl.opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

// Every operation once, as a kernel with pairs uses them.

// CHECK:       tile.kernel @blend occupancy 4 warps 8 {
// CHECK-NEXT:  ^bb0(%u: !tile.array<?x?x?x?xf64>, %out: !tile.array<?x?x?xf64>, %dt: f64):
// GENERIC:     "tile.kernel"() <{sym_name = "blend", occupancy = 4 : i32, warps = 8 : i32}>
tile.kernel @blend occupancy 4 warps 8 {
^bb0(%u: !tile.array<?x?x?x?xf64>, %out: !tile.array<?x?x?xf64>, %dt: f64):
  // CHECK-NEXT: %bz = tile.block_id 0
  // CHECK-NEXT: %by = tile.block_id 1
  // CHECK-NEXT: %bx = tile.block_id 2
  // GENERIC: "tile.block_id"() <{axis = 0 : i32}> : () -> index
  %bz = tile.block_id 0
  %by = tile.block_id 1
  %bx = tile.block_id 2
  %zero = arith.constant 0 : index
  // CHECK: %nx = tile.extent %out axis 0 : !tile.array<?x?x?xf64>
  %nx = tile.extent %out axis 0 : !tile.array<?x?x?xf64>
  // CHECK-NEXT: %view = tile.slice %u axis 0 from 1 size %nx : !tile.array<?x?x?x?xf64> -> !tile.array<?x?x?x?xf64>
  // GENERIC: "tile.slice"(%u, %nx) <{axis = 0 : i32, start = 1 : i64}>
  %view = tile.slice %u axis 0 from 1 size %nx : !tile.array<?x?x?x?xf64> -> !tile.array<?x?x?x?xf64>
  // CHECK-NEXT: %row = tile.slice %view axis 1 from 2 extent 64 : !tile.array<?x?x?x?xf64> -> !tile.array<?x?x?x?xf64>
  %row = tile.slice %view axis 1 from 2 extent 64 : !tile.array<?x?x?x?xf64> -> !tile.array<?x?x?x?xf64>
  // CHECK-NEXT: %raw = tile.load %row[%bx, %by, %bz, %zero] checked false : !tile.array<?x?x?x?xf64> -> !tile.tile<1x1x64x2xf64>
  %raw = tile.load %row[%bx, %by, %bz, %zero] checked false : !tile.array<?x?x?x?xf64> -> !tile.tile<1x1x64x2xf64>
  // CHECK-NEXT: %far = tile.load %row[%bx, %by, %bz, %zero] checked true latency 10 : !tile.array<?x?x?x?xf64> -> !tile.tile<1x1x64x2xf64>
  // GENERIC: "tile.load"(%row, %bx, %by, %bz, %zero) <{checked = true, latency = 10 : i32}>
  %far = tile.load %row[%bx, %by, %bz, %zero] checked true latency 10 : !tile.array<?x?x?x?xf64> -> !tile.tile<1x1x64x2xf64>
  // CHECK-NEXT: %even = tile.extract %raw [0, 0, 0, 0] : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x64x1xf64>
  %even = tile.extract %raw [0, 0, 0, 0] : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %odd = tile.extract %far [0, 0, 0, 1] : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x64x1xf64>
  %odd = tile.extract %far [0, 0, 0, 1] : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %c = tile.constant 1.000000e-01 : f64 : !tile.tile<1x1x64x1xf64>
  %c = tile.constant 0.1 : f64 : !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %s = tile.splat %dt : f64 -> !tile.tile<1x1x64x1xf64>
  %s = tile.splat %dt : f64 -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %product = tile.map "mul"(%c, %even) : !tile.tile<1x1x64x1xf64>, !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x1xf64>
  %product = tile.map "mul"(%c, %even) : !tile.tile<1x1x64x1xf64>, !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %less = tile.map "lt"(%product, %s)
  %less = tile.map "lt"(%product, %s) : !tile.tile<1x1x64x1xf64>, !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %chosen = tile.map "select"(%less, %even, %odd)
  %chosen = tile.map "select"(%less, %even, %odd) : !tile.tile<1x1x64x1xf64>, !tile.tile<1x1x64x1xf64>, !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x1xf64>
  // CHECK-NEXT: %pair = tile.cat %chosen, %odd axis 3 : !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x2xf64>
  %pair = tile.cat %chosen, %odd axis 3 : !tile.tile<1x1x64x1xf64> -> !tile.tile<1x1x64x2xf64>
  // CHECK-NEXT: %flat = tile.reshape %pair : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x128xf64>
  %flat = tile.reshape %pair : !tile.tile<1x1x64x2xf64> -> !tile.tile<1x1x128xf64>
  // CHECK-NEXT: tile.store %flat, %out[%bx, %by, %bz] checked true : !tile.tile<1x1x128xf64>, !tile.array<?x?x?xf64>
  tile.store %flat, %out[%bx, %by, %bz] checked true : !tile.tile<1x1x128xf64>, !tile.array<?x?x?xf64>
}

// CHECK: func.func @launch_blend(
func.func @launch_blend(%u: !tile.array<?x?x?x?xf64>, %out: !tile.array<?x?x?xf64>, %dt: f64) {
  // CHECK-NEXT: tile.launch @blend grid [4, 64, 16](%u_1, %out_1, %dt_1) : !tile.array<?x?x?x?xf64>, !tile.array<?x?x?xf64>, f64
  // GENERIC: "tile.launch"(%u_1, %out_1, %dt_1) <{kernel = @blend, grid = array<i64: 4, 64, 16>}>
  tile.launch @blend grid [4, 64, 16](%u, %out, %dt) : !tile.array<?x?x?x?xf64>, !tile.array<?x?x?xf64>, f64
  func.return
}
