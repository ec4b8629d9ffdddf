// RUN: python -m stencil_dsl.opt %s -p stencil-dce,footprint | filecheck %s

// A chain without a user goes in one sweep, its access with it; the field stays an operand, as it is part of
// the kernel's signature. The footprint is that of what is left, whatever an earlier pass had noted.

func.func @f(%u_in : !stencil.temp<?xf64>, %v_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["u", "v"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?xf64>, %v = %v_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) attributes {halo_lo = array<i64: 4>, halo_hi = array<i64: 4>} {
    %x = stencil.access %u[1] : !stencil.temp<?xf64>
    %far = stencil.access %u[4] : !stencil.temp<?xf64>
    %other = stencil.access %v[-4] : !stencil.temp<?xf64>
    %t0 = arith.addf %far, %other : f64
    %t1 = math.sqrt %t0 : f64
    %t2 = math.absf %x : f64
    stencil.return %t2 : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

// CHECK:       stencil.apply(%u = %u_in : !stencil.temp<?xf64>, %v = %v_in : !stencil.temp<?xf64>)
// CHECK-SAME:  footprint = [{lo = array<i64: 1>, hi = array<i64: 1>}, unit]
// CHECK-SAME:  halo_lo = array<i64: 0>, halo_hi = array<i64: 1>
// CHECK-NEXT:  %x = stencil.access %u[1]
// CHECK-NEXT:  %t2 = math.absf %x : f64
// CHECK-NEXT:  stencil.return %t2 : f64
