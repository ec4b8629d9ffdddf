// RUN: python -m stencil_dsl.opt %s -p stencil-cse | filecheck %s

// One access per field and offset, at its first use; what is built on equal accesses is equal too.

func.func @f(%u_in : !stencil.temp<?x?xf64>, %v_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u", "v"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf64>, %v = %v_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %u[0, 1] : !stencil.temp<?x?xf64>
    %b = stencil.access %u[1, 0] : !stencil.temp<?x?xf64>
    %c = stencil.access %v[0, 1] : !stencil.temp<?x?xf64>
    %t0 = arith.divf %a, %b : f64
    %again_a = stencil.access %u[0, 1] : !stencil.temp<?x?xf64>
    %again_b = stencil.access %u[1, 0] : !stencil.temp<?x?xf64>
    %t1 = arith.divf %again_a, %again_b : f64
    %t2 = arith.subf %t0, %c : f64
    %t3 = arith.mulf %t2, %t1 : f64
    stencil.return %t3 : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

// CHECK:       %a = stencil.access %u[0, 1]
// CHECK-NEXT:  %b = stencil.access %u[1, 0]
// CHECK-NEXT:  %c = stencil.access %v[0, 1]
// CHECK-NEXT:  %t0 = arith.divf %a, %b : f64
// CHECK-NEXT:  %t2 = arith.subf %t0, %c : f64
// CHECK-NEXT:  %t3 = arith.mulf %t2, %t0 : f64
// CHECK-NEXT:  stencil.return %t3 : f64
