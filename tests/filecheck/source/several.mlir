// RUN: python -m stencil_dsl.opt %s | filecheck %s

// Fields only, several outputs, float32, attributes on the stencil itself.
source.stencil @pair(%u: !source.field<1 x f32>, %v: !source.field<1 x f32>) reads ["u", "v"] over ["z"] gives ["pair_0", "pair_1"] attributes {origin = "test"} {
  %0 = source.access %v[3] : !source.field<1 x f32>
  %1 = source.constant 0.1 : f32
  source.yield %0, %1 : f32, f32
}

// CHECK:      source.stencil @pair(%u: !source.field<1 x f32>, %v: !source.field<1 x f32>) reads ["u", "v"] over ["z"] gives ["pair_0", "pair_1"] attributes {origin = "test"} {
// CHECK-NEXT:   %0 = source.access %v[3] : !source.field<1 x f32>
// CHECK-NEXT:   %1 = source.constant 1.000000e-01 : f32
// CHECK-NEXT:   source.yield %0, %1 : f32, f32
