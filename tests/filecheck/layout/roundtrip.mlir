// RUN: python -m stencil_dsl.opt %s --split-input-file --verify-diagnostics | filecheck %s

func.func @there_and_back(%a : !layout.padded<64x60xf64 halo [1, 2] to [1, 0]>) -> !layout.padded<64x60xf64 halo [0, 0] to [0, 0]> {
  %b = layout.convert %a : !layout.padded<64x60xf64 halo [1, 2] to [1, 0]> -> !layout.bricked<64x60xf64 by [8, 4]>
  %c = layout.convert %b : !layout.bricked<64x60xf64 by [8, 4]> -> !layout.padded<64x60xf64 halo [0, 0] to [0, 0]>
  func.return %c : !layout.padded<64x60xf64 halo [0, 0] to [0, 0]>
}

// CHECK: %b = layout.convert %a : !layout.padded<64x60xf64 halo [1, 2] to [1, 0]> -> !layout.bricked<64x60xf64 by [8, 4]>
// CHECK: %c = layout.convert %b : !layout.bricked<64x60xf64 by [8, 4]> -> !layout.padded<64x60xf64 halo [0, 0] to [0, 0]>

// -----

func.func @other_extents(%a : !layout.bricked<8xf32 by [4]>) {
  %b = layout.convert %a : !layout.bricked<8xf32 by [4]> -> !layout.bricked<9xf32 by [4]>
  func.return
}

// CHECK: a conversion keeps extents and element type
