// RUN: python -m stencil_dsl.opt %s -p 'insert-fills,halo-exchange{axes=0}' | filecheck %s
// RUN: python -m stencil_dsl.opt %s -p 'insert-fills,halo-exchange{axes=0 overlap=false}' | filecheck %s --check-prefix WAIT
// RUN: python -m stencil_dsl.opt %s -p insert-fills | filecheck %s --check-prefix ALONE

// u is read along both axes by f, and by g within a box that stays clear of the faces along x; k never changes.

func.func @f(%u_in : !stencil.temp<?x?xf64>, %k_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u", "k"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf64>, %k = %k_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %u[-1, 0] : !stencil.temp<?x?xf64>
    %b = stencil.access %u[0, 2] : !stencil.temp<?x?xf64>
    %c = stencil.access %k[1, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %a, %b : f64
    %t = arith.addf %s, %c : f64
    stencil.return %t : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

func.func @g(%u_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u"], scalars = [], outputs = ["g"]} {
  %r = stencil.apply(%u = %u_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %a = stencil.access %u[3, 0] : !stencil.temp<?x?xf64>
    stencil.return %a : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

timestep.step @loop over 2 state ["u", "k"] (%u: !stencil.temp<?x?xf64>, %k: !stencil.temp<?x?xf64>) {
  %a = timestep.sweep gives ["a"] {
    timestep.piece @f(%u, %k) with [] gives ["a"] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
  } : !stencil.temp<?x?xf64>
  %b = timestep.sweep onto(%a : !stencil.temp<?x?xf64>) ["b"] gives ["b"] {
    timestep.piece @g(%u) with [] gives ["b"] box [3, 0] to [-3, 0] : !stencil.temp<?x?xf64>
  } : !stencil.temp<?x?xf64>
  timestep.yield %b, %k : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
}

// CHECK-LABEL: timestep.step
// CHECK-NEXT: [[T:%.*]] = comm.start %u lo [1, 0] hi [3, 2] outer [1, 0] to [0, 2] axes [0] :
// CHECK-NEXT: comm.start %k lo [0, 0] hi [1, 1] outer [0, 0] to [1, 1] axes [0] corners once :
// CHECK-NEXT: timestep.sweep after([[T]] : !comm.token) margin [1, 0] to [3, 0] gives ["a"] {
// CHECK-NOT: timestep.fill

// WAIT-LABEL: timestep.step
// WAIT-NEXT: [[T:%.*]] = comm.start %u
// WAIT-NEXT: comm.start %k
// WAIT-NEXT: comm.wait [[T]]
// WAIT-NEXT: timestep.sweep gives ["a"] {

// ALONE-LABEL: timestep.step
// ALONE-NEXT: timestep.fill %u lo [1, 0] hi [0, 2] :
// ALONE-NEXT: timestep.fill %k lo [0, 0] hi [1, 1] corners once :
// ALONE-NEXT: timestep.sweep gives ["a"] {
