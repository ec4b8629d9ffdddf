// RUN: python -m stencil_dsl.opt %s -p fold-constants | filecheck %s

// A fresh NaN has no bits that IEEE fixes, and the greater of two zeros differs between libraries: the machine
// that runs the code decides.

func.func @f(%u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>, !stencil.temp<?xf64>) attributes {fields = ["u"], scalars = [], outputs = ["f_0", "f_1"]} {
  %r:2 = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>, !stencil.temp<?xf64>) {
    %zero = arith.constant 0.0 : f64
    %minus_zero = arith.constant -0.0 : f64
    %nan = arith.divf %zero, %zero : f64
    %max = arith.maximumf %zero, %minus_zero : f64
    stencil.return %nan, %max : f64, f64
  }
  func.return %r#0, %r#1 : !stencil.temp<?xf64>, !stencil.temp<?xf64>
}

// CHECK:       %nan = arith.divf %zero, %zero : f64
// CHECK-NEXT:  %max = arith.maximumf %zero, %minus_zero : f64
// CHECK-NEXT:  stencil.return %nan, %max : f64, f64
