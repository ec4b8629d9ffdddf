// RUN: python -m stencil_dsl.opt %s -p 'boundary{faces="u x periodic","u z dirichlet 1.0"},temporal-blocking{steps=2},insert-fills' | filecheck %s

// Two steps at once, right up to the periodic faces along x; along z slabs of single steps, thinner in the second one.

func.func @f(%u_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %u[-1, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %u[0, 1] : !stencil.temp<?x?xf64>
    %c = arith.addf %a, %b : f64
    stencil.return %c : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

timestep.step @loop over 2 state ["u"] (%u: !stencil.temp<?x?xf64>) attributes {continues = {f = "u"}} {
  %f = timestep.sweep gives ["f"] {
    timestep.piece @f(%u) with [] gives ["f"] : !stencil.temp<?x?xf64>
  } : !stencil.temp<?x?xf64>
  timestep.yield %f : !stencil.temp<?x?xf64>
}

// CHECK: func.func @f_2_steps(
// CHECK: accesses = 3
// CHECK: func.func @f(
// CHECK: timestep.step @loop over 2 state ["u"]
// CHECK: timestep.fill %u lo [2, 0] hi [0, 1] corners
// CHECK-NEXT: %f_step1 = timestep.sweep partial gives ["f_step1"] {
// CHECK-NEXT: timestep.piece @f(%u) with [] gives ["f_step1"] box [0, -2] to [0, 0]
// CHECK-NEXT: }
// CHECK-NEXT: timestep.fill %f_step1 lo [1, 0] hi [0, 1]
// CHECK-NEXT: %f = timestep.sweep gives ["f"] {
// CHECK-NEXT: timestep.piece @f_2_steps(%u) with [] gives ["f"] box [0, 0] to [0, -2]
// CHECK-NEXT: timestep.piece @f(%f_step1) with [] gives ["f"] box [0, -2] to [0, 0]
