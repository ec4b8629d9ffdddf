// RUN: python -m stencil_dsl.opt %s -p fold-constants,stencil-dce | filecheck %s

// Each of these leaves every number as it is, signed zeros and NaN included, so all of them go.

func.func @f(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %x = stencil.access %u[0] : !stencil.temp<?xf64>
    %one = arith.constant 1.0 : f64
    %zero = arith.constant 0.0 : f64
    %minus_zero = arith.constant -0.0 : f64
    %t0 = arith.mulf %x, %one : f64
    %t1 = arith.mulf %one, %t0 : f64
    %t2 = arith.divf %t1, %one : f64
    %t3 = arith.subf %t2, %zero : f64
    %t4 = arith.addf %t3, %minus_zero : f64
    %t5 = arith.addf %minus_zero, %t4 : f64
    %t6 = arith.negf %t5 : f64
    %t7 = arith.negf %t6 : f64
    stencil.return %t7 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %x = stencil.access %u[0]
// CHECK-NEXT:  stencil.return %x : f64
