// relu(batch_norm(x) + skip): the mask is y > 0, and the gradient of the skip is returned.
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#image = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

func.func @main(%x: tensor<4x5x6x7xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %y: tensor<4x5x6x7xf32>, %g: tensor<4x5x6x7xf32>) -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x7xf32>) {
  %empty = tensor.empty() : tensor<4x5x6x7xf32>
  %zero = arith.constant 0.0 : f32
  %dy = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %g : tensor<4x5x6x7xf32>, tensor<4x5x6x7xf32>) outs(%empty : tensor<4x5x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %is = arith.cmpf ogt, %a, %zero : f32
    %r = arith.select %is, %b, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x5x6x7xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x7xf32>) -> (tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset, %dy : tensor<4x5x6x7xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4x5x6x7xf32>
}
