// RUN: python -m stencil_dsl.opt %s --split-input-file --verify-diagnostics | filecheck %s

timestep.step @one over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  %v = timestep.integrate "magic" @rhs(%u) with [] state [0] dt "dt" gives ["v"] : !stencil.temp<?xf64> -> !stencil.temp<?xf64>
  timestep.yield %v : !stencil.temp<?xf64>
}

// CHECK: unknown method "magic"; known are euler, leapfrog, verlet, ssp-rk2, ssp-rk3, rk4

// -----

timestep.step @two over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  %v = timestep.integrate "leapfrog" @rhs(%u) with [] state [0] dt "dt" gives ["v"] : !stencil.temp<?xf64> -> !stencil.temp<?xf64>
  timestep.yield %v : !stencil.temp<?xf64>
}

// CHECK: leapfrog takes 1 older levels here, got 0

// -----

timestep.step @three over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  timestep.fill %u lo [1, 1] hi [1, 1] : !stencil.temp<?xf64>
  timestep.yield %u : !stencil.temp<?xf64>
}

// CHECK: ghost cells of a 1-D field need 1 widths of at least 0

// -----

timestep.step @four over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  %a, %b = timestep.sweep gives ["a", "b"] {
    timestep.piece @f(%u) with [] gives ["a"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>, !stencil.temp<?xf64>
  timestep.yield %a : !stencil.temp<?xf64>
}

// CHECK: the pieces give ['a'], the sweep ['a', 'b']

// -----

timestep.step @five over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  %u2 = timestep.sweep gives ["u"] {
    timestep.piece @f(%u) with [] gives ["u"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>
  timestep.yield %u2 : !stencil.temp<?xf64>
}

// CHECK: fields need distinct names, got ['u', 'u']
