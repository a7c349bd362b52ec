// A step of SGD on scale and offset, with the norm of their gradients clipped to 1.
#c = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @main(%x: tensor<12x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %g: tensor<12x5xf32>, %offset: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %g)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>)
  %zero = arith.constant dense<0.0> : tensor<f32>
  %squares = linalg.generic {indexing_maps = [#c, #c, #none], iterator_types = ["reduction"]}
      ins(%dscale, %doffset : tensor<5xf32>, tensor<5xf32>) outs(%zero : tensor<f32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %aa = arith.mulf %a, %a : f32
    %bb = arith.mulf %b, %b : f32
    %ab = arith.addf %aa, %bb : f32
    %r = arith.addf %s, %ab : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %empty = tensor.empty() : tensor<5xf32>
  %one = arith.constant 1.0 : f32
  %rate = arith.constant 0.1 : f32
  %stepped:2 = linalg.generic {indexing_maps = [#c, #c, #c, #c, #none, #c, #c], iterator_types = ["parallel"]}
      ins(%scale, %dscale, %offset, %doffset, %squares : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>) outs(%empty, %empty : tensor<5xf32>, tensor<5xf32>) {
  ^bb0(%p: f32, %dp: f32, %q: f32, %dq: f32, %s: f32, %o0: f32, %o1: f32):
    %norm = math.sqrt %s : f32
    %ratio = arith.divf %one, %norm : f32
    %factor = arith.minimumf %ratio, %one : f32
    %step = arith.mulf %factor, %rate : f32
    %sp = arith.mulf %dp, %step : f32
    %sq = arith.mulf %dq, %step : f32
    %np = arith.subf %p, %sp : f32
    %nq = arith.subf %q, %sq : f32
    linalg.yield %np, %nq : f32, f32
  } -> (tensor<5xf32>, tensor<5xf32>)
  return %stepped#0, %stepped#1 : tensor<5xf32>, tensor<5xf32>
}
