// RUN: python -m stencil_dsl.opt %s -p 'boundary{faces="u x periodic","u z- dirichlet 0.5 at face","u z+ neumann slope","w * outflow"}' | filecheck %s
// RUN: python -m stencil_dsl.opt %s -p 'boundary{faces="* x periodic","* z outflow"},boundary{faces="u z+ antisymmetric at cell"}' | filecheck %s --check-prefix LATER

// Fields are named by the function; one without rules is a unit, and later rules win, also those of a second pass.

func.func @f(%u_in : !stencil.temp<?x?xf64>, %v_in : !stencil.temp<?x?xf64>) -> !stencil.temp<?x?xf64> attributes {fields = ["u", "v"], scalars = [], outputs = ["f"]} {
  %r = stencil.apply(%a = %u_in : !stencil.temp<?x?xf64>, %b = %v_in : !stencil.temp<?x?xf64>) -> (!stencil.temp<?x?xf64>) {
    %x = stencil.access %a[-1, 0] : !stencil.temp<?x?xf64>
    %y = stencil.access %b[0, 1] : !stencil.temp<?x?xf64>
    %s = arith.addf %x, %y : f64
    stencil.return %s : f64
  }
  func.return %r : !stencil.temp<?x?xf64>
}

// CHECK: boundary = [
// CHECK-SAME: {{\[\[}}#boundary.face<"periodic">, #boundary.face<"periodic">], [#boundary.face<"dirichlet" 5.000000e-01 : f64 at "face">, #boundary.face<"neumann" "slope" at "face">]]
// CHECK-SAME: , unit]

// LATER: boundary = [
// LATER-SAME: [#boundary.face<"outflow">, #boundary.face<"antisymmetric" at "cell">]]
// LATER-SAME: [#boundary.face<"outflow">, #boundary.face<"outflow">]]]
