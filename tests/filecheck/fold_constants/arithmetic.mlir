// RUN: python -m stencil_dsl.opt %s -p fold-constants,stencil-dce | filecheck %s

// Constant operands are computed in float64; what stands on a field stays.

func.func @f(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %x = stencil.access %u[0] : !stencil.temp<?xf64>
    %one = arith.constant 1.0 : f64
    %three = arith.constant 3.0 : f64
    %four = arith.constant 4.0 : f64
    %third = arith.divf %one, %three : f64
    %two = math.sqrt %four : f64
    %eight = math.powf %two, %three : f64
    %less = arith.negf %eight : f64
    %size = math.absf %less : f64
    %least = arith.minimumf %size, %three : f64
    %t0 = arith.mulf %third, %x : f64
    %t1 = arith.mulf %least, %t0 : f64
    %t2 = arith.subf %t1, %size : f64
    stencil.return %t2 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %x = stencil.access %u[0]
// CHECK-NEXT:  %third = arith.constant 0.33333333333333331 : f64
// CHECK-NEXT:  %size = arith.constant 8.000000e+00 : f64
// CHECK-NEXT:  %least = arith.constant 3.000000e+00 : f64
// CHECK-NEXT:  %t0 = arith.mulf %third, %x : f64
// CHECK-NEXT:  %t1 = arith.mulf %least, %t0 : f64
// CHECK-NEXT:  %t2 = arith.subf %t1, %size : f64
// CHECK-NEXT:  stencil.return %t2 : f64
