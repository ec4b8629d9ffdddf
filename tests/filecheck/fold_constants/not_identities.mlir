// RUN: python -m stencil_dsl.opt %s -p fold-constants,stencil-dce | filecheck %s

// Every one of these changes some number: x + 0 and x - (-0) lose the sign of a zero, 0 - x has the wrong one,
// x * 0, x - x and x / x are NaN for some x.

func.func @f(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %x = stencil.access %u[0] : !stencil.temp<?xf64>
    %zero = arith.constant 0.0 : f64
    %minus_zero = arith.constant -0.0 : f64
    %t0 = arith.addf %x, %zero : f64
    %t1 = arith.subf %t0, %minus_zero : f64
    %t2 = arith.subf %zero, %t1 : f64
    %t3 = arith.mulf %t2, %zero : f64
    %t4 = arith.subf %t3, %t3 : f64
    %t5 = arith.divf %t4, %t4 : f64
    stencil.return %t5 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %x = stencil.access %u[0]
// CHECK-NEXT:  %zero = arith.constant 0.000000e+00 : f64
// CHECK-NEXT:  %minus_zero = arith.constant -0.000000e+00 : f64
// CHECK-NEXT:  %t0 = arith.addf %x, %zero : f64
// CHECK-NEXT:  %t1 = arith.subf %t0, %minus_zero : f64
// CHECK-NEXT:  %t2 = arith.subf %zero, %t1 : f64
// CHECK-NEXT:  %t3 = arith.mulf %t2, %zero : f64
// CHECK-NEXT:  %t4 = arith.subf %t3, %t3 : f64
// CHECK-NEXT:  %t5 = arith.divf %t4, %t4 : f64
// CHECK-NEXT:  stencil.return %t5 : f64
