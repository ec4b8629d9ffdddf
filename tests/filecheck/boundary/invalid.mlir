// RUN: python -m stencil_dsl.opt %s --split-input-file --verify-diagnostics | filecheck %s

timestep.step @one over 1 state ["u"] (%u: !stencil.temp<?xf64>) attributes {boundary = {u = [[#boundary.face<"periodic">, #boundary.face<"outflow">]]}} {
  timestep.yield %u : !stencil.temp<?xf64>
}

// CHECK: 'u' is periodic on one face along z and outflow on the other

// -----

timestep.step @two over 1 state ["u"] (%u: !stencil.temp<?xf64>) attributes {boundary = {v = [[#boundary.face<"outflow">, #boundary.face<"outflow">]]}} {
  timestep.yield %u : !stencil.temp<?xf64>
}

// CHECK: boundary of an unknown field 'v'

// -----

timestep.step @three over 2 state ["u"] (%u: !stencil.temp<?x?xf64>) attributes {boundary = {u = [[#boundary.face<"outflow">, #boundary.face<"outflow">]]}} {
  timestep.yield %u : !stencil.temp<?x?xf64>
}

// CHECK: boundaries of 'u' need one pair of faces an axis
