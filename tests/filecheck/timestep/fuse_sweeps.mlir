// RUN: python -m stencil_dsl.opt %s -p 'fuse-sweeps{groups="a c"}' | filecheck %s

// a and c read the same field and not each other; b, which reads a, moves behind their common kernel.

func.func @f(%x_in : !stencil.temp<?xf64>, %s_in : f64) -> !stencil.temp<?xf64> attributes {fields = ["x"], scalars = ["s"], outputs = ["f"]} {
  %r = stencil.apply(%x = %x_in : !stencil.temp<?xf64>, %s = %s_in : f64) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %x[1] : !stencil.temp<?xf64>
    %b = arith.mulf %a, %s : f64
    stencil.return %b : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

func.func @g(%y_in : !stencil.temp<?xf64>) -> !stencil.temp<?xf64> attributes {fields = ["y"], scalars = [], outputs = ["g"]} {
  %r = stencil.apply(%y = %y_in : !stencil.temp<?xf64>) -> (!stencil.temp<?xf64>) {
    %a = stencil.access %y[1] : !stencil.temp<?xf64>
    %b = stencil.access %y[-1] : !stencil.temp<?xf64>
    %c = arith.addf %a, %b : f64
    stencil.return %c : f64
  }
  func.return %r : !stencil.temp<?xf64>
}

timestep.step @loop over 1 state ["u", "v"] (%u: !stencil.temp<?xf64>, %v: !stencil.temp<?xf64>) {
  %a = timestep.sweep gives ["a"] {
    timestep.piece @f(%u) with ["dt"] gives ["a"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>
  %b = timestep.sweep gives ["b"] {
    timestep.piece @f(%a) with ["dx"] gives ["b"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>
  %c = timestep.sweep gives ["c"] {
    timestep.piece @g(%u) with [] gives ["c"] : !stencil.temp<?xf64>
  } : !stencil.temp<?xf64>
  timestep.yield %b, %c : !stencil.temp<?xf64>, !stencil.temp<?xf64>
}

// CHECK: func.func @f(
// CHECK: func.func @f_g(%u: !stencil.temp<?xf64>, %dt: f64)
// CHECK: accesses = 2
// CHECK-NOT: func.func @g(
// CHECK-LABEL: timestep.step
// CHECK-NEXT: %a, %c = timestep.sweep gives ["a", "c"] {
// CHECK-NEXT:   timestep.piece @f_g(%u) with ["dt"] gives ["a", "c"]
// CHECK: %b = timestep.sweep gives ["b"] {
// CHECK: timestep.yield %b, %c
