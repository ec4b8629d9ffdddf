// RUN: python -m stencil_dsl.opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: 1 offsets into a field of 2 dimensions
source.stencil @f(%u: !source.field<2 x f64>) reads ["u"] over ["i", "j"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<2 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: unknown kind "mod", expected one of add, sub, mul, div, pow, min, max
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  %1 = source.binary "mod" %0, %0 : f64
  source.yield %1 : f64
}

// -----

// CHECK: "not" of a value of type f64
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  %1 = source.unary "not" %0 : f64
  source.yield %1 : f64
}

// -----

// CHECK: a stencil works in one element type, f64 or f32; found f32, f64
source.stencil @f(%u: !source.field<1 x f64>, %v: !source.field<1 x f32>) reads ["u", "v"] over ["i"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: 1 values yielded for 2 outputs
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["f_0", "f_1"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: 2 arguments for 1 fields and 0 scalars
source.stencil @f(%u: !source.field<1 x f64>, %dt: f64) reads ["u"] over ["i"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: a field over 2 indices cannot be of type !source.field<1 x f64>
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["i", "j"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: names of fields, scalars and indices must differ
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["u"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: a place is "file:line:column", got "somewhere"
source.stencil @f(%u: !source.field<1 x f64>) reads ["u"] over ["i"] gives ["f"] at "somewhere" {
  %0 = source.access %u[1] : !source.field<1 x f64>
  source.yield %0 : f64
}

// -----

// CHECK: a field has 1 to 3 dimensions, got 4
source.stencil @f(%u: !source.field<4 x f64>) reads ["u"] over ["i"] gives ["f"] {
  %0 = source.access %u[1] : !source.field<4 x f64>
  source.yield %0 : f64
}
