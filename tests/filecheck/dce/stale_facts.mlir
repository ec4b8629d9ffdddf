// RUN: python -m stencil_dsl.opt %s -p stencil-dce | filecheck %s

// Facts about a body that has changed go; those about a body that has not stay.

func.func @changed(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) attributes {halo_lo = array<i64: 4>, halo_hi = array<i64: 0>} {
    %x = stencil.access %u[0] : !stencil.temp<?xf64>
    %far = stencil.access %u[-4] : !stencil.temp<?xf64>
    stencil.return %x : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

func.func @unchanged(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) attributes {halo_lo = array<i64: 4>, halo_hi = array<i64: 0>} {
    %x = stencil.access %u[-4] : !stencil.temp<?xf64>
    stencil.return %x : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK-LABEL: @changed
// CHECK-NOT:   halo
// CHECK-LABEL: @unchanged
// CHECK:       halo_lo = array<i64: 4>, halo_hi = array<i64: 0>
