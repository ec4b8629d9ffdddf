// RUN: python -m stencil_dsl.opt %s -p 'boundary{faces="* * outflow","flux z- dirichlet array","u z periodic"}' | filecheck %s

// A step knows its state and the fields made on the way; rules are kept by name.

timestep.step @loop over 1 state ["u"] (%u: !stencil.temp<?xf64>) {
  %flux = timestep.sweep gives ["flux"] {
    timestep.piece @f(%u) with [] gives ["flux"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>
  timestep.yield %flux : !stencil.temp<?xf64>
}

// CHECK: attributes {boundary = {
// CHECK-SAME: u = {{\[\[}}#boundary.face<"periodic">, #boundary.face<"periodic">]]
// CHECK-SAME: flux = {{\[\[}}#boundary.face<"dirichlet" unit at "ghost">, #boundary.face<"outflow">]]
