// RUN: python -m stencil_dsl.opt %s -p lower-source | filecheck %s
// RUN: python -m stencil_dsl.opt %s -p lower-source --print-debuginfo | filecheck %s --check-prefix PLACES

// Fields first, unread ones too, then scalars; one temp per output; names as attributes.
source.stencil @step(%u: !source.field<2 x f64>, %v: !source.field<2 x f64>, %dt: f64) reads ["u", "v"] with ["dt"] over ["i", "j"] gives ["step_0", "step_1"] {
  %0 = source.access %u[-1, 2] at "step.py:3:12" : !source.field<2 x f64>
  %1 = source.binary "mul" %0, %dt : f64
  source.yield %1, %dt : f64, f64
}

// CHECK:      func.func @step(%u: !stencil.temp<?x?xf64>, %v: !stencil.temp<?x?xf64>, %dt: f64) -> (!stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>) attributes {fields = ["u", "v"], scalars = ["dt"], outputs = ["step_0", "step_1"]} {
// CHECK-NEXT:   [[R0:%[0-9]+]], [[R1:%[0-9]+]] = stencil.apply([[U:%[a-z_0-9]+]] = %u : !stencil.temp<?x?xf64>, [[V:%[a-z_0-9]+]] = %v : !stencil.temp<?x?xf64>, [[DT:%[a-z_0-9]+]] = %dt : f64) -> (!stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>) {
// CHECK-NEXT:     [[A:%[0-9]+]] = stencil.access [[U]][-1, 2] : !stencil.temp<?x?xf64>
// CHECK-NEXT:     [[B:%[0-9]+]] = arith.mulf [[A]], [[DT]] : f64
// CHECK-NEXT:     stencil.return [[B]], [[DT]] : f64, f64
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return [[R0]], [[R1]] : !stencil.temp<?x?xf64>, !stencil.temp<?x?xf64>
// CHECK-NEXT: }

// PLACES: stencil.access {{.*}} loc("step.py":3:12)
