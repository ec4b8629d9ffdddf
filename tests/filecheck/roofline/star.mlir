// RUN: python -m stencil_dsl.opt %s -p roofline | filecheck %s

// 0.4 u + 0.1 (sum of four neighbours): six operations as written, nine with a coefficient for each access.

func.func @star(%u_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u"], scalars = [], outputs = ["star"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %c = stencil.access %u[0, 0] : !stencil.temp<?x?xf64>
    %n = stencil.access %u[-1, 0] : !stencil.temp<?x?xf64>
    %s = stencil.access %u[1, 0] : !stencil.temp<?x?xf64>
    %w = stencil.access %u[0, -1] : !stencil.temp<?x?xf64>
    %e = stencil.access %u[0, 1] : !stencil.temp<?x?xf64>
    %a0 = arith.constant 0.4 : f64
    %a1 = arith.constant 0.1 : f64
    %t0 = arith.addf %n, %s : f64
    %t1 = arith.addf %t0, %w : f64
    %t2 = arith.addf %t1, %e : f64
    %t3 = arith.mulf %a1, %t2 : f64
    %t4 = arith.mulf %a0, %c : f64
    %t5 = arith.addf %t4, %t3 : f64
    stencil.return %t5 : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

// CHECK:       stencil.apply
// CHECK-SAME:  roofline = {flops = 6 : i64, flops_per_access = 9 : i64, accesses = 5 : i64, bytes = 16 : i64}
