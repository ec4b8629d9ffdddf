// RUN: python -m stencil_dsl.opt %s -p stencil-cse | filecheck %s

// a + b is b + a and a * b is b * a, to the bit; a < b is b > a. The first spelling stays.

func.func @f(%u_in : !stencil.temp<?xf64>, %k_in : f64) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = ["k"], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>, %k = %k_in : f64) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %u[-1] : !stencil.temp<?xf64>
    %b = stencil.access %u[1] : !stencil.temp<?xf64>
    %ba = arith.addf %b, %a : f64
    %ab = arith.addf %a, %b : f64
    %ka = arith.mulf %k, %ba : f64
    %ak = arith.mulf %ab, %k : f64
    %lt = arith.cmpf olt, %b, %a : f64
    %gt = arith.cmpf ogt, %a, %b : f64
    %t0 = arith.select %lt, %ka, %a : f64
    %t1 = arith.select %gt, %ak, %a : f64
    %t2 = arith.divf %t0, %t1 : f64
    stencil.return %t2 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %b = stencil.access %u[1]
// CHECK-NEXT:  %ba = arith.addf %b, %a : f64
// CHECK-NEXT:  %ka = arith.mulf %k, %ba : f64
// CHECK-NEXT:  %lt = arith.cmpf olt, %b, %a : f64
// CHECK-NEXT:  %t0 = arith.select %lt, %ka, %a : f64
// CHECK-NEXT:  %t2 = arith.divf %t0, %t0 : f64
// CHECK-NEXT:  stencil.return %t2 : f64
