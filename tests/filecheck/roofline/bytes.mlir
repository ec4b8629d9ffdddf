// RUN: python -m stencil_dsl.opt %s -p roofline | filecheck %s

// Bytes: each field that is read and each output once, an unread field not at all, in the element type's size.
// Signs and constants are free; a function, a comparison and a select are one operation each.

func.func @f(%u_in : !stencil.temp<?xf32>, %v_in : !stencil.temp<?xf32>, %k_in : f32) -> (!stencil.temp<?xf32>, !stencil.temp<?xf32>) attributes {fields = ["u", "v"], scalars = ["k"], outputs = ["f_0", "f_1"]} {
  %r:2 = stencil.apply(%u = %u_in : !stencil.temp<?xf32>, %v = %v_in : !stencil.temp<?xf32>, %k = %k_in : f32) -> (!stencil.temp<?xf32>, !stencil.temp<?xf32>) {
    %x = stencil.access %u[0] : !stencil.temp<?xf32>
    %again = stencil.access %u[0] : !stencil.temp<?xf32>
    %zero = arith.constant 0.0 : f32
    %t0 = arith.negf %x : f32
    %t1 = math.exp %t0 : f32
    %c = arith.cmpf olt, %again, %k : f32
    %t2 = arith.select %c, %t1, %zero : f32
    stencil.return %t1, %t2 : f32, f32
  }
  func.return %r#0, %r#1 : !stencil.temp<?xf32>, !stencil.temp<?xf32>
}

// CHECK:       stencil.apply
// CHECK-SAME:  roofline = {flops = 3 : i64, flops_per_access = 3 : i64, accesses = 1 : i64, bytes = 12 : i64}
