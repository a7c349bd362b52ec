// Data of bf16 with parameters of f32, converted around the gradient, as TensorFlow has it.
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @main(%x: tensor<4x6x7x5xbf16>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %g: tensor<4x6x7x5xbf16>) -> (tensor<4x6x7x5xbf16>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<4x6x7x5xf32>
  %xf, %gf = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<4x6x7x5xbf16>, tensor<4x6x7x5xbf16>) outs(%empty, %empty : tensor<4x6x7x5xf32>, tensor<4x6x7x5xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o0: f32, %o1: f32):
    %c = arith.extf %a : bf16 to f32
    %d = arith.extf %b : bf16 to f32
    linalg.yield %c, %d : f32, f32
  } -> (tensor<4x6x7x5xf32>, tensor<4x6x7x5xf32>)
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%xf, %scale, %mean, %variance, %gf)
      <{epsilon = 1.0e-5 : f32, feature_index = 3 : i64}>
      : (tensor<4x6x7x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x6x7x5xf32>) -> (tensor<4x6x7x5xf32>, tensor<5xf32>, tensor<5xf32>)
  %short = tensor.empty() : tensor<4x6x7x5xbf16>
  %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%dx : tensor<4x6x7x5xf32>) outs(%short : tensor<4x6x7x5xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4x6x7x5xbf16>
  return %result, %dscale, %doffset : tensor<4x6x7x5xbf16>, tensor<5xf32>, tensor<5xf32>
}
