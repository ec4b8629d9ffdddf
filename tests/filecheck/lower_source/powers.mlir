// RUN: python -m stencil_dsl.opt %s -p lower-source | filecheck %s

// Multiplications by squaring for integer exponents up to 64; the exponent itself leaves no constant.
source.stencil @cube(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["cube"] {
  %x = source.access %u[0] : !source.field<1 x f64>
  %n = source.constant 3.0 : f64
  %r = source.binary "pow" %x, %n : f64
  source.yield %r : f64
}
// CHECK-LABEL: func.func @cube
// CHECK:       %x = stencil.access
// CHECK-NEXT:  [[S:%[0-9]+]] = arith.mulf %x, %x : f64
// CHECK-NEXT:  %r = arith.mulf %x, [[S]] : f64
// CHECK-NEXT:  stencil.return %r : f64

source.stencil @inverse_fourth(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["inverse_fourth"] {
  %x = source.access %u[0] : !source.field<1 x f64>
  %n = source.constant -4.0 : f64
  %r = source.binary "pow" %x, %n : f64
  source.yield %r : f64
}
// CHECK-LABEL: func.func @inverse_fourth
// CHECK:       [[ONE:%[0-9]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT:  [[S:%[0-9]+]] = arith.mulf %x, %x : f64
// CHECK-NEXT:  [[Q:%[0-9]+]] = arith.mulf [[S]], [[S]] : f64
// CHECK-NEXT:  %r = arith.divf [[ONE]], [[Q]] : f64

source.stencil @trivial(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["trivial_0", "trivial_1"] {
  %x = source.access %u[0] : !source.field<1 x f64>
  %zero = source.constant 0.0 : f64
  %one = source.constant 1.0 : f64
  %a = source.binary "pow" %x, %zero : f64
  %b = source.binary "pow" %x, %one : f64
  source.yield %a, %b : f64, f64
}
// CHECK-LABEL: func.func @trivial
// CHECK:       %x = stencil.access
// CHECK-NEXT:  [[ONE:%[a-z_0-9]+]] = arith.constant 1.000000e+00 : f64
// CHECK-NEXT:  stencil.return [[ONE]], %x : f64, f64

// Beyond 64, and for other exponents, the library's pow.
source.stencil @others(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["others_0", "others_1"] {
  %x = source.access %u[0] : !source.field<1 x f64>
  %m = source.constant 65.0 : f64
  %h = source.constant 0.5 : f64
  %a = source.binary "pow" %x, %m : f64
  %b = source.binary "pow" %x, %h : f64
  source.yield %a, %b : f64, f64
}
// CHECK-LABEL: func.func @others
// CHECK:       %m = arith.constant 6.500000e+01 : f64
// CHECK-NEXT:  %a = math.powf %x, %m : f64
// CHECK-NEXT:  %h = arith.constant 5.000000e-01 : f64
// CHECK-NEXT:  %b = math.powf %x, %h : f64
