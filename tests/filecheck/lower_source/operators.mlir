// RUN: python -m stencil_dsl.opt %s -p lower-source | filecheck %s

source.stencil @ops(%u: !source.field<1 x f32>, %v: !source.field<1 x f32>) reads ["u", "v"] over ["i"] gives ["ops"] {
  %a = source.access %u[0] : !source.field<1 x f32>
  %b = source.access %v[0] : !source.field<1 x f32>
  %half = source.constant 0.5 : f32
  %0 = source.binary "add" %a, %b : f32
  %1 = source.binary "sub" %0, %b : f32
  %2 = source.binary "mul" %1, %b : f32
  %3 = source.binary "div" %2, %b : f32
  %4 = source.binary "min" %3, %b : f32
  %5 = source.binary "max" %4, %b : f32
  %6 = source.binary "pow" %5, %b : f32
  %7 = source.unary "neg" %6 : f32
  %8 = source.unary "abs" %7 : f32
  %9 = source.unary "sqrt" %8 : f32
  %10 = source.unary "exp" %9 : f32
  %11 = source.unary "log" %10 : f32
  %12 = source.unary "sin" %11 : f32
  %13 = source.unary "cos" %12 : f32
  %14 = source.unary "tan" %13 : f32
  %15 = source.unary "tanh" %14 : f32
  %16 = source.unary "floor" %15 : f32
  %17 = source.compare "lt" %16, %half : f32
  %18 = source.compare "le" %16, %half : f32
  %19 = source.compare "gt" %16, %half : f32
  %20 = source.compare "ge" %16, %half : f32
  %21 = source.compare "eq" %16, %half : f32
  %22 = source.compare "ne" %16, %half : f32
  %23 = source.boolean "and" %17, %18
  %24 = source.boolean "or" %19, %20
  %25 = source.boolean "and" %21, %22
  %26 = source.boolean "or" %23, %24
  %27 = source.boolean "or" %25, %26
  %28 = source.unary "not" %27 : i1
  %29 = source.select %28, %16, %half : f32
  source.yield %29 : f32
}

// CHECK:      [[A:%[a-z_0-9]+]] = stencil.access %u{{[_0-9]*}}[0] : !stencil.temp<?xf32>
// CHECK-NEXT: [[B:%[a-z_0-9]+]] = stencil.access %v{{[_0-9]*}}[0] : !stencil.temp<?xf32>
// CHECK-NEXT: arith.addf [[A]], [[B]] : f32
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.divf
// CHECK-NEXT: arith.minimumf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: math.powf
// CHECK-NEXT: arith.negf
// CHECK-NEXT: math.absf
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.log
// CHECK-NEXT: math.sin
// CHECK-NEXT: math.cos
// CHECK-NEXT: math.tan
// CHECK-NEXT: math.tanh
// CHECK-NEXT: [[X:%[0-9]+]] = math.floor
// CHECK-NEXT: %half = arith.constant 5.000000e-01 : f32
// CHECK-NEXT: arith.cmpf olt, [[X]], %half : f32
// CHECK-NEXT: arith.cmpf ole
// CHECK-NEXT: arith.cmpf ogt
// CHECK-NEXT: arith.cmpf oge
// CHECK-NEXT: arith.cmpf oeq
// CHECK-NEXT: arith.cmpf une
// CHECK-NEXT: arith.andi {{.*}} : i1
// CHECK-NEXT: arith.ori {{.*}} : i1
// CHECK-NEXT: arith.andi
// CHECK-NEXT: arith.ori
// CHECK-NEXT: [[C:%[0-9]+]] = arith.ori
// CHECK-NEXT: [[T:%[0-9]+]] = arith.constant true
// CHECK-NEXT: [[N:%[0-9]+]] = arith.xori [[C]], [[T]] : i1
// CHECK-NEXT: [[R:%[0-9]+]] = arith.select [[N]], [[X]], %half : f32
// CHECK-NEXT: stencil.return [[R]] : f32
