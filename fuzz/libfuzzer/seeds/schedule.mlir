func.func @nchw(%dy: tensor<2x3x4x4xf32>, %x: tensor<2x3x4x4xf32>, %g: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<2x3x4x4xf32>) input(%x : tensor<2x3x4x4xf32>) scale(%g : tensor<3xf32>) mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) {epsilon = 1.0e-5 : f64} : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
  return %dx, %dg, %db : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
func.func @nhwc(%dy: tensor<2x4x4x8xbf16>, %x: tensor<2x4x4x8xbf16>, %g: tensor<8xf32>, %m: tensor<8xf32>, %r: tensor<8xf32>) -> (tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>) {
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<2x4x4x8xbf16>) input(%x : tensor<2x4x4x8xbf16>) scale(%g : tensor<8xf32>) mean(%m : tensor<8xf32>) inv_std(%r : tensor<8xf32>) {feature_dims = array<i64: 3>} : tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>
  return %dx, %dg, %db : tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>
}
// -----
func.func @rows(%dy: tensor<16x8xf64>, %x: tensor<16x8xf64>, %m: tensor<8xf64>, %r: tensor<8xf64>) -> (tensor<16x8xf64>, tensor<8xf64>) {
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<16x8xf64>) input(%x : tensor<16x8xf64>) mean(%m : tensor<8xf64>) inv_std(%r : tensor<8xf64>) : tensor<16x8xf64>, tensor<8xf64>, tensor<8xf64>
  return %dx, %db : tensor<16x8xf64>, tensor<8xf64>
}
// -----
func.func @dynamic(%dy: tensor<?x?x?xf16>, %x: tensor<?x?x?xf16>, %m: tensor<?xf32>, %v: tensor<?xf32>, %k: tensor<?x?x?xi1>) -> (tensor<?x?x?xf16>, tensor<?xf32>, tensor<?xf32>) {
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?x?xf16>) input(%x : tensor<?x?x?xf16>) mean(%m : tensor<?xf32>) variance(%v : tensor<?xf32>) mask(%k : tensor<?x?x?xi1>) : tensor<?x?x?xf16>, tensor<?xf32>, tensor<?xf32>
  return %dx, %dg, %db : tensor<?x?x?xf16>, tensor<?xf32>, tensor<?xf32>
}
// -----
func.func @frozen(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> tensor<4x8xf32> {
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<4x8xf32>) input(%x : tensor<4x8xf32>) mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) {statistics = #bngrad.statistics<global>} : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %dx : tensor<4x8xf32>
}
// -----
func.func @per_activation(%dy: tensor<5x2x3xf32>, %x: tensor<5x2x3xf32>, %m: tensor<2x3xf32>, %v: tensor<2x3xf32>) -> tensor<5x2x3xf32> {
  %0 = arith.negf %dy : tensor<5x2x3xf32>
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%0 : tensor<5x2x3xf32>) input(%x : tensor<5x2x3xf32>) mean(%m : tensor<2x3xf32>) variance(%v : tensor<2x3xf32>) {feature_dims = array<i64: 1, 2>} : tensor<5x2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  %1 = arith.addf %dx, %x : tensor<5x2x3xf32>
  return %1 : tensor<5x2x3xf32>
}
// -----
func.func @halves(%dy: tensor<4x2x8xf32>, %x: tensor<4x2x8xf32>, %m: tensor<2xf32>, %r: tensor<2xf32>) -> tensor<4x2x8xf32> {
  %s, %n = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<4x2x8xf32>) input(%x : tensor<4x2x8xf32>) mean(%m : tensor<2xf32>) : tensor<2x2xf32>, tensor<i64>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<4x2x8xf32>) input(%x : tensor<4x2x8xf32>) mean(%m : tensor<2xf32>) inv_std(%r : tensor<2xf32>) sums(%s : tensor<2x2xf32>) count(%n : tensor<i64>) : tensor<4x2x8xf32>
  return %dx : tensor<4x2x8xf32>
}
// -----
func.func @buffers(%dy: memref<2x3x4xf32, strided<[?, ?, ?], offset: ?>>, %x: memref<2x3x4xf32>, %m: memref<3xf32>, %r: memref<3xf32>, %out: memref<2x3x4xf32>) {
  %0 = bufferization.to_tensor %dy restrict : memref<2x3x4xf32, strided<[?, ?, ?], offset: ?>> to tensor<2x3x4xf32>
  %1 = bufferization.to_tensor %x restrict : memref<2x3x4xf32> to tensor<2x3x4xf32>
  %2 = bufferization.to_tensor %m restrict : memref<3xf32> to tensor<3xf32>
  %3 = bufferization.to_tensor %r restrict : memref<3xf32> to tensor<3xf32>
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%0 : tensor<2x3x4xf32>) input(%1 : tensor<2x3x4xf32>) mean(%2 : tensor<3xf32>) inv_std(%3 : tensor<3xf32>) : tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>
  bufferization.materialize_in_destination %dx in restrict writable %out : (tensor<2x3x4xf32>, memref<2x3x4xf32>) -> ()
  return
}
// -----
func.func @training(%x: tensor<2x3x4x4xf32>, %g: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y, %m, %v, %r = bngrad.batch_norm_training input(%x : tensor<2x3x4x4xf32>) scale(%g : tensor<3xf32>) offset(%b : tensor<3xf32>) {epsilon = 1.0e-5 : f64} : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  return %y, %m, %r : tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>
}
// -----
func.func @step(%dy: tensor<2x4x4x8xbf16>, %x: tensor<2x4x4x8xbf16>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<2x4x4x8xbf16>, tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>) {
  %y, %m, %v, %r = bngrad.batch_norm_training input(%x : tensor<2x4x4x8xbf16>) scale(%g : tensor<8xf32>) offset(%b : tensor<8xf32>) {feature_dims = array<i64: 3>, epsilon = 1.0e-3 : f64} : tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x4x8xbf16>
  %relu = arith.maximumf %y, %zero : tensor<2x4x4x8xbf16>
  %k = arith.cmpf ogt, %y, %zero : tensor<2x4x4x8xbf16>
  %dx, %dg, %db = bngrad.batch_norm_backward grad_output(%dy : tensor<2x4x4x8xbf16>) input(%x : tensor<2x4x4x8xbf16>) scale(%g : tensor<8xf32>) mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) mask(%k : tensor<2x4x4x8xi1>) {feature_dims = array<i64: 3>, epsilon = 1.0e-3 : f64} : tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>
  return %relu, %dx, %dg, %db : tensor<2x4x4x8xbf16>, tensor<2x4x4x8xbf16>, tensor<8xf32>, tensor<8xf32>
}
// -----
func.func @training_dynamic(%x: tensor<?x?x?xf64>) -> (tensor<?x?x?xf64>, tensor<?xf64>) {
  %y, %m, %v, %r = bngrad.batch_norm_training input(%x : tensor<?x?x?xf64>) {epsilon = 1.0e-5 : f64} : tensor<?x?x?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
  return %y, %v : tensor<?x?x?xf64>, tensor<?xf64>
}
// -----
func.func @inference(%x: tensor<16x8xf16>, %g: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> tensor<16x8xf16> {
  %y = bngrad.batch_norm_inference input(%x : tensor<16x8xf16>) scale(%g : tensor<8xf32>) offset(%b : tensor<8xf32>) mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) {epsilon = 1.0e-5 : f64} : tensor<16x8xf16>
  return %y : tensor<16x8xf16>
}
// -----
func.func @part(%x: tensor<4x2x8xf32>, %k: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<i64>) {
  %s, %q, %n = bngrad.batch_norm_training_reduce input(%x : tensor<4x2x8xf32>) shift(%k : tensor<2xf32>) : tensor<2xf32>, tensor<2xf32>, tensor<i64>
  return %s, %q, %n : tensor<2xf32>, tensor<2xf32>, tensor<i64>
}
