// RUN: python -m stencil_dsl.opt %s -p fold-constants,stencil-dce | filecheck %s

// A known condition picks its side, and the other side's access goes with it.

func.func @f(%u_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %x = stencil.access %u[0] : !stencil.temp<?xf64>
    %far = stencil.access %u[4] : !stencil.temp<?xf64>
    %one = arith.constant 1.0 : f64
    %two = arith.constant 2.0 : f64
    %true = arith.constant true
    %less = arith.cmpf olt, %one, %two : f64
    %same = arith.cmpf oeq, %one, %two : f64
    %not = arith.xori %same, %true : i1
    %both = arith.andi %less, %not : i1
    %t0 = arith.select %both, %x, %far : f64
    %t1 = arith.select %same, %far, %t0 : f64
    stencil.return %t1 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       %x = stencil.access %u[0]
// CHECK-NEXT:  stencil.return %x : f64
