// One function for each kind of type, layout and form.

!d = tensor<5x3x7x2xf32>
!c = tensor<3xf32>
func.func @nchw(%dy: !d, %x: !d, %scale: !c, %mean: !c, %variance: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

!b = tensor<6x5x3xbf16>
!m = tensor<6x5x3xi1>
func.func @masked(%dy: !b, %x: !b, %mask: !m, %mean: !c, %inv_std: !c) -> (!b, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !b) input(%x : !b) mean(%mean : !c) inv_std(%inv_std : !c)
      mask(%mask : !m) {feature_dims = array<i64: 2>} : !b, !c, !c
  return %0#0, %0#1, %0#2 : !b, !c, !c
}

!e = tensor<11x3xf64>
!f = tensor<3xf64>
func.func @doubles(%dy: !e, %x: !e, %scale: !f, %mean: !f, %variance: !f) -> (!e, !f) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !e) input(%x : !e) scale(%scale : !f) mean(%mean : !f)
      variance(%variance : !f) {epsilon = 1.0e-3 : f64, statistics = #bngrad.statistics<global>} : !e, !f, !f
  return %0#0, %0#2 : !e, !f
}

// Large enough for several threads.
!h = tensor<64x3x64x64xf16>
func.func @halves(%dy: !h, %x: !h, %scale: !c, %mean: !c, %variance: !c) -> (!h, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !h) input(%x : !h) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !h, !c, !c
  return %0#0, %0#1, %0#2 : !h, !c, !c
}

// Neighbours that fuse into the loops of the gradient: a factor, and the gradient of another branch. They are in a
// private function, which is not exported.
func.func private @scaled(%dy: !d, %factor: f32) -> !d {
  %splat = tensor.splat %factor : !d
  %0 = arith.mulf %dy, %splat : !d
  return %0 : !d
}
func.func @fused(%dy: !d, %x: !d, %scale: !c, %mean: !c, %variance: !c, %other: !d, %factor: f32)
    -> (!d, !c, !c) {
  %dz = call @scaled(%dy, %factor) : (!d, f32) -> !d
  %0:3 = bngrad.batch_norm_backward grad_output(%dz : !d) input(%x : !d) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !d, !c, !c
  %1 = arith.addf %0#0, %other : !d
  return %1, %0#1, %0#2 : !d, !c, !c
}

// An op of another dialect.
func.func @imported(%x: !d, %scale: !c, %mean: !c, %variance: !c, %dy: !d) -> (!d, !c, !c) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 0.0009765625 : f32, feature_index = 1 : i64}> : (!d, !c, !c, !c, !d) -> (!d, !c, !c)
  return %0#0, %0#1, %0#2 : !d, !c, !c
}

!u = tensor<?x?x?xf32>
!v = tensor<?xf32>
func.func @dynamic(%dy: !u, %x: !u, %scale: !v, %mean: !v, %variance: !v) -> (!u, !v, !v) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !u) input(%x : !u) scale(%scale : !v) mean(%mean : !v)
      variance(%variance : !v) {epsilon = 1.0e-3 : f64} : !u, !v, !v
  return %0#0, %0#1, %0#2 : !u, !v, !v
}

// Channels last in memory, and a result in a strided buffer of the caller.
!s = memref<?x3x?xf32, strided<[?, ?, ?], offset: ?>>
!t = tensor<?x3x?xf32>
func.func @strided(%dy_m: !s, %x_m: !s, %scale: !c, %mean: !c, %variance: !c, %dx_m: !s) -> !c {
  %dy = bufferization.to_tensor %dy_m restrict : !s to !t
  %x = bufferization.to_tensor %x_m restrict : !s to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !t, !c, !c
  bufferization.materialize_in_destination %0#0 in restrict writable %dx_m : (!t, !s) -> ()
  return %0#1 : !c
}

// Every type of scalar, by value: returns 1 if each has the value that the test passes.
func.func @scalars(%b: i1, %i8: i8, %i16: i16, %i32: i32, %i64: i64, %n: index, %h: f16, %bf: bf16, %f: f32, %d: f64)
    -> tensor<i32> {
  %i8w = arith.extsi %i8 : i8 to i64
  %i16w = arith.extsi %i16 : i16 to i64
  %i32w = arith.extsi %i32 : i32 to i64
  %nw = arith.index_cast %n : index to i64
  %s0 = arith.addi %i8w, %i16w : i64
  %s1 = arith.addi %i32w, %i64 : i64
  %s2 = arith.addi %s0, %s1 : i64
  %s3 = arith.addi %s2, %nw : i64
  %hw = arith.extf %h : f16 to f64
  %bfw = arith.extf %bf : bf16 to f64
  %fw = arith.extf %f : f32 to f64
  %t0 = arith.addf %hw, %bfw : f64
  %t1 = arith.addf %fw, %d : f64
  %t2 = arith.addf %t0, %t1 : f64
  %i = arith.constant -11111 : i64
  %x = arith.constant 7.75 : f64
  %c0 = arith.cmpi eq, %s3, %i : i64
  %c1 = arith.cmpf oeq, %t2, %x : f64
  %c2 = arith.andi %c0, %c1 : i1
  %c3 = arith.andi %c2, %b : i1
  %r = arith.extui %c3 : i1 to i32
  %t = tensor.from_elements %r : tensor<i32>
  return %t : tensor<i32>
}

// Ops that become calls of libm, and an array without elements.
func.func @libm(%a: tensor<4xf32>, %none: tensor<0x4xf32>) -> (tensor<4xf32>, tensor<0x4xf32>) {
  %0 = math.erfc %a : tensor<4xf32>
  %1 = math.atan2 %0, %a : tensor<4xf32>
  return %1, %none : tensor<4xf32>, tensor<0x4xf32>
}
