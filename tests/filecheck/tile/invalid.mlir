// RUN: python -m stencil_dsl.opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: a slice starts at a non-negative element; widen the halo
func.func @f(%u: !tile.array<?xf64>) {
  %0 = tile.slice %u axis 0 from -1 extent 8 : !tile.array<?xf64> -> !tile.array<?xf64>
  func.return
}

// -----

// CHECK: a slice has either a static extent or a size operand
func.func @f(%u: !tile.array<?xf64>) {
  %0 = tile.slice %u axis 0 from 1 : !tile.array<?xf64> -> !tile.array<?xf64>
  func.return
}

// -----

// CHECK: a load's index and tile have the rank of its view
func.func @f(%u: !tile.array<?x?xf64>, %i: index) {
  %0 = tile.load %u[%i] checked false : !tile.array<?x?xf64> -> !tile.tile<1x8xf64>
  func.return
}

// -----

// CHECK: a load's index and tile have the rank of its view
func.func @f(%u: !tile.array<?x?xf64>, %i: index) {
  %0 = tile.load %u[%i, %i] checked false : !tile.array<?x?xf64> -> !tile.tile<8xf64>
  func.return
}

// -----

// CHECK: a tile's extents are powers of two, got [1, 12]
func.func @f(%u: !tile.tile<1x12xf64>) {
  func.return
}

// -----

// CHECK: unknown elementwise operation 'fma'; known: neg, abs
func.func @f(%a: !tile.tile<8xf64>) {
  %0 = tile.map "fma"(%a, %a, %a) : !tile.tile<8xf64>, !tile.tile<8xf64>, !tile.tile<8xf64> -> !tile.tile<8xf64>
  func.return
}

// -----

// CHECK: 'select' takes 3 operands, got 2
func.func @f(%a: !tile.tile<8xf64>) {
  %0 = tile.map "select"(%a, %a) : !tile.tile<8xf64>, !tile.tile<8xf64> -> !tile.tile<8xf64>
  func.return
}
