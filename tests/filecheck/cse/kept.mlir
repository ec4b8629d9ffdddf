// RUN: python -m stencil_dsl.opt %s -p stencil-cse | filecheck %s

// Different values stay apart: zeros of both signs, a - b and b - a, a reassociated sum, and minimum and
// maximum in exchanged order, which may differ in the sign of a zero.

func.func @f(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %u[-1] : !stencil.temp<?xf64>
    %b = stencil.access %u[1] : !stencil.temp<?xf64>
    %zero = arith.constant 0.0 : f64
    %minus_zero = arith.constant -0.0 : f64
    %d0 = arith.subf %a, %b : f64
    %d1 = arith.subf %b, %a : f64
    %m0 = arith.maximumf %a, %b : f64
    %m1 = arith.maximumf %b, %a : f64
    %s0 = arith.addf %d0, %d1 : f64
    %s1 = arith.addf %s0, %m0 : f64
    %s2 = arith.addf %d1, %m0 : f64
    %s3 = arith.addf %d0, %s2 : f64
    %t0 = arith.divf %s1, %zero : f64
    %t1 = arith.divf %s3, %minus_zero : f64
    %t2 = arith.mulf %t0, %t1 : f64
    %t3 = arith.mulf %t2, %m1 : f64
    stencil.return %t3 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %zero = arith.constant 0.000000e+00 : f64
// CHECK-NEXT:  %minus_zero = arith.constant -0.000000e+00 : f64
// CHECK-NEXT:  %d0 = arith.subf %a, %b : f64
// CHECK-NEXT:  %d1 = arith.subf %b, %a : f64
// CHECK-NEXT:  %m0 = arith.maximumf %a, %b : f64
// CHECK-NEXT:  %m1 = arith.maximumf %b, %a : f64
// CHECK-NEXT:  %s0 = arith.addf %d0, %d1 : f64
// CHECK-NEXT:  %s1 = arith.addf %s0, %m0 : f64
// CHECK-NEXT:  %s2 = arith.addf %d1, %m0 : f64
// CHECK-NEXT:  %s3 = arith.addf %d0, %s2 : f64
// CHECK-NEXT:  %t0 = arith.divf %s1, %zero : f64
// CHECK-NEXT:  %t1 = arith.divf %s3, %minus_zero : f64
