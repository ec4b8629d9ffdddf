// RUN: python -m stencil_dsl.opt %s -p footprint | filecheck %s

// Per field and axis the least and the greatest offset, signs kept; per axis the widths that cover all fields.

func.func @f(%u_in : !stencil.temp<?x?x?xf64>, %v_in : !stencil.temp<?x?x?xf64>, %w_in : !stencil.temp<?x?x?xf64>) -> !stencil.temp<?x?x?xf64> attributes {fields = ["u", "v", "w"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?x?xf64>, %v = %v_in : !stencil.temp<?x?x?xf64>, %w = %w_in : !stencil.temp<?x?x?xf64>) -> (!stencil.temp<?x?x?xf64>) {
    %a = stencil.access %u[-3, 0, 1] : !stencil.temp<?x?x?xf64>
    %b = stencil.access %u[1, 0, 2] : !stencil.temp<?x?x?xf64>
    %c = stencil.access %w[0, -1, 0] : !stencil.temp<?x?x?xf64>
    %t0 = arith.addf %a, %b : f64
    %t1 = arith.addf %t0, %c : f64
    stencil.return %t1 : f64
  }
  func.return %r : !stencil.temp<?x?x?xf64>
}

// CHECK:       stencil.apply
// CHECK-SAME:  footprint = [{lo = array<i64: -3, 0, 1>, hi = array<i64: 1, 0, 2>}, unit, {lo = array<i64: 0, -1, 0>, hi = array<i64: 0, -1, 0>}]
// CHECK-SAME:  halo_lo = array<i64: 3, 1, 0>, halo_hi = array<i64: 1, 0, 2>
