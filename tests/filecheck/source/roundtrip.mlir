// RUN: python -m stencil_dsl.opt %s | filecheck %s
// RUN: python -m stencil_dsl.opt %s --print-op-generic | filecheck %s --check-prefix GENERIC

source.stencil @heat(%u: !source.field<2 x f64>, %dt: f64) reads ["u"] with ["dt"] over ["i", "j"] gives ["heat"] at "heat.py:6:1" {
  %0 = source.access %u[-1, 0] at "heat.py:7:12" : !source.field<2 x f64>
  %1 = source.access %u[0, 0] : !source.field<2 x f64>
  %2 = source.constant 0.25 : f64 at "heat.py:7:30"
  %3 = source.binary "mul" %2, %0 at "heat.py:7:8" : f64
  %4 = source.compare "lt" %3, %dt at "heat.py:8:1" : f64
  %5 = source.compare "ne" %1, %2 : f64
  %6 = source.boolean "and" %4, %5 at "heat.py:8:3"
  %7 = source.unary "not" %6 : i1
  %8 = source.unary "sqrt" %3 at "heat.py:9:1" : f64
  %9 = source.select %7, %8, %dt at "heat.py:9:9" {note = "kept"} : f64
  source.yield %9 : f64
}

// CHECK:      builtin.module {
// CHECK-NEXT:   source.stencil @heat(%u: !source.field<2 x f64>, %dt: f64) reads ["u"] with ["dt"] over ["i", "j"] gives ["heat"] at "heat.py:6:1" {
// CHECK-NEXT:     %0 = source.access %u[-1, 0] at "heat.py:7:12" : !source.field<2 x f64>
// CHECK-NEXT:     %1 = source.access %u[0, 0] : !source.field<2 x f64>
// CHECK-NEXT:     %2 = source.constant 2.500000e-01 : f64 at "heat.py:7:30"
// CHECK-NEXT:     %3 = source.binary "mul" %2, %0 at "heat.py:7:8" : f64
// CHECK-NEXT:     %4 = source.compare "lt" %3, %dt at "heat.py:8:1" : f64
// CHECK-NEXT:     %5 = source.compare "ne" %1, %2 : f64
// CHECK-NEXT:     %6 = source.boolean "and" %4, %5 at "heat.py:8:3"
// CHECK-NEXT:     %7 = source.unary "not" %6 : i1
// CHECK-NEXT:     %8 = source.unary "sqrt" %3 at "heat.py:9:1" : f64
// CHECK-NEXT:     %9 = source.select %7, %8, %dt at "heat.py:9:9" {note = "kept"} : f64
// CHECK-NEXT:     source.yield %9 : f64
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: "source.stencil"() <{
// GENERIC: "source.access"(%u) <{offset = array<i64: -1, 0>, at = "heat.py:7:12"}> : (!source.field<2 x f64>) -> f64
// GENERIC: "source.yield"(%9) : (f64) -> ()
