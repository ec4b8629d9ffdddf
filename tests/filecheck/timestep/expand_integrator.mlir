// RUN: python -m stencil_dsl.opt %s -p 'expand-integrator' | filecheck %s

// u' = -s v, v' = u by two stages; v's second stage reads what the first gave, and the values at the start.

func.func @rates(%u_in : !stencil.temp<?xf64>, %v_in : !stencil.temp<?xf64>, %s_in : f64) -> (!stencil.temp<?xf64>, !stencil.temp<?xf64>) attributes {fields = ["u", "v"], scalars = ["s"], outputs = ["rates_0", "rates_1"]} {
  %r, %q = stencil.apply(%u = %u_in : !stencil.temp<?xf64>, %v = %v_in : !stencil.temp<?xf64>, %s = %s_in : f64) -> (!stencil.temp<?xf64>, !stencil.temp<?xf64>) {
    %a = stencil.access %v[1] : !stencil.temp<?xf64>
    %b = arith.mulf %a, %s : f64
    %c = arith.negf %b : f64
    %d = stencil.access %u[0] : !stencil.temp<?xf64>
    stencil.return %c, %d : f64, f64
  }
  func.return %r, %q : !stencil.temp<?xf64>, !stencil.temp<?xf64>
}

timestep.step @loop over 1 state ["u", "v"] (%u: !stencil.temp<?xf64>, %v: !stencil.temp<?xf64>) {
  %a, %b = timestep.integrate "ssp-rk2" @rates(%u, %v) with ["stiffness"] state [0, 1] dt "dt" gives ["a", "b"] : !stencil.temp<?xf64>, !stencil.temp<?xf64> -> !stencil.temp<?xf64>, !stencil.temp<?xf64>
  timestep.yield %a, %b : !stencil.temp<?xf64>, !stencil.temp<?xf64>
}

// CHECK-NOT: func.func @rates(
// CHECK: func.func @rates_ssp_rk2_1(%u: !stencil.temp<?xf64>, %v: !stencil.temp<?xf64>, %s: f64, %dt: f64)
// CHECK: func.func @rates_ssp_rk2_2(%u: !stencil.temp<?xf64>, %v: !stencil.temp<?xf64>, %u_start: !stencil.temp<?xf64>, %v_start: !stencil.temp<?xf64>, %s: f64, %dt: f64)
// CHECK-LABEL: timestep.step
// CHECK-SAME: continues = {u_stage1 = "u", v_stage1 = "v"}
// CHECK: timestep.piece @rates_ssp_rk2_1(%u, %v) with ["stiffness", "dt"] gives ["u_stage1", "v_stage1"]
// CHECK: timestep.piece @rates_ssp_rk2_2(%u_stage1, %v_stage1, %u, %v) with ["stiffness", "dt"] gives ["a", "b"]
// CHECK: timestep.yield %a, %b
