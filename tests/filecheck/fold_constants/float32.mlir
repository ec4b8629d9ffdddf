// RUN: python -m stencil_dsl.opt %s -p fold-constants,stencil-dce | filecheck %s

// The result is rounded to the element type once; what exceeds it is infinite, as at run time.

func.func @f(%u_in : !stencil.temp<?xf32>) -> (!stencil.temp<?xf32>, !stencil.temp<?xf32>) attributes {fields = ["u"], scalars = [], outputs = ["f_0", "f_1"]} {
  %r:2 = stencil.apply(%u = %u_in : !stencil.temp<?xf32>) -> (!stencil.temp<?xf32>, !stencil.temp<?xf32>) {
    %one = arith.constant 1.0 : f32
    %three = arith.constant 3.0 : f32
    %large = arith.constant 3.0e+38 : f32
    %third = arith.divf %one, %three : f32
    %over = arith.mulf %large, %three : f32
    stencil.return %third, %over : f32, f32
  }
  func.return %r#0, %r#1 : !stencil.temp<?xf32>, !stencil.temp<?xf32>
}

// CHECK:       %third = arith.constant 0.333333343 : f32
// CHECK-NEXT:  %over = arith.constant 0x7f800000 : f32
// CHECK-NEXT:  stencil.return %third, %over : f32, f32
