// RUN: python -m stencil_dsl.opt %s -p footprint | filecheck %s

// No neighbour, or no field at all: no halo.

func.func @pointwise(%u_in : !stencil.temp<?x?xf32>) -> !stencil.temp<?x?xf32> {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf32>) -> (!stencil.temp<?x?xf32>) {
    %x = stencil.access %u[0, 0] : !stencil.temp<?x?xf32>
    stencil.return %x : f32
  }
  func.return %r : !stencil.temp<?x?xf32>
}

func.func @constant(%u_in : !stencil.temp<?x?xf32>) -> !stencil.temp<?x?xf32> {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf32>) -> (!stencil.temp<?x?xf32>) {
    %x = arith.constant 1.0 : f32
    stencil.return %x : f32
  }
  func.return %r : !stencil.temp<?x?xf32>
}

// CHECK-LABEL: @pointwise
// CHECK:       footprint = [{lo = array<i64: 0, 0>, hi = array<i64: 0, 0>}], halo_lo = array<i64: 0, 0>, halo_hi = array<i64: 0, 0>
// CHECK-LABEL: @constant
// CHECK:       footprint = [unit], halo_lo = array<i64: 0, 0>, halo_hi = array<i64: 0, 0>
