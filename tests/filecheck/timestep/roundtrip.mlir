// RUN: python -m stencil_dsl.opt %s | filecheck %s
// RUN: python -m stencil_dsl.opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

timestep.step @loop over 2 state ["u", "old"] (%u: !stencil.temp<?x?xf64>, %old: !stencil.temp<?x?xf64>) {
  timestep.fill %u lo [1, 0] hi [2, 1] corners once : !stencil.temp<?x?xf64>
  %t = comm.start %u lo [1, 0] hi [1, 0] outer [0, 0] to [1, 0] axes [0] once : !stencil.temp<?x?xf64>
  %a, %b = timestep.sweep onto(%old : !stencil.temp<?x?xf64>) ["b"] after(%t : !comm.token) margin [1, 0] to [1, 0] gives ["a", "b"] {
    timestep.piece @f(%u, %old) with ["dt"] gives ["a"] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
    timestep.piece @g(%u) with [] gives ["b"] box [0, 1] to [0, -1] : !stencil.temp<?x?xf64>
  } : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
  comm.wait %t
  %c = timestep.integrate "ssp-rk3" @rhs(%a, %b) with ["nu"] state [0] dt "dt" time "t" gives ["c"] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64> -> !stencil.temp<?x?xf64>
  %d = timestep.integrate "leapfrog" @rhs(%c, %b) older(%u) with [] state [0] dt "dt" gives ["d"] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64> older !stencil.temp<?x?xf64> -> !stencil.temp<?x?xf64>
  timestep.yield %d, %u : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
}

// CHECK:      timestep.step @loop over 2 state ["u", "old"] (%u: !stencil.temp<?x?xf64>, %old: !stencil.temp<?x?xf64>) {
// CHECK-NEXT:   timestep.fill %u lo [1, 0] hi [2, 1] corners once : !stencil.temp<?x?xf64>
// CHECK-NEXT:   %t = comm.start %u lo [1, 0] hi [1, 0] outer [0, 0] to [1, 0] axes [0] once : !stencil.temp<?x?xf64>
// CHECK-NEXT:   %a, %b = timestep.sweep onto(%old : !stencil.temp<?x?xf64>) ["b"] after(%t : !comm.token) margin [1, 0] to [1, 0] gives ["a", "b"] {
// CHECK-NEXT:     timestep.piece @f(%u, %old) with ["dt"] gives ["a"] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
// CHECK-NEXT:     timestep.piece @g(%u) with [] gives ["b"] box [0, 1] to [0, -1] : !stencil.temp<?x?xf64>
// CHECK-NEXT:   } : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
// CHECK-NEXT:   comm.wait %t
// CHECK-NEXT:   %c = timestep.integrate "ssp-rk3" @rhs(%a, %b) with ["nu"] state [0] dt "dt" time "t" gives ["c"] : {{.*}} -> !stencil.temp<?x?xf64>
// CHECK-NEXT:   %d = timestep.integrate "leapfrog" @rhs(%c, %b) older(%u) with [] state [0] dt "dt" gives ["d"]
// CHECK-NEXT:   timestep.yield %d, %u : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>

// GENERIC: "timestep.step"
// GENERIC: "timestep.fill"
// GENERIC: "comm.start"
