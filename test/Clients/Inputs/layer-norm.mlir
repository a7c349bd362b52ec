// The gradient of a layer norm behind a batch norm. Reductions have the iterators
// [parallel, reduction] with a permuted input, as StableHLO's legalization writes them.
#id = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#first = affine_map<(d0, d1) -> (d0)>
#second = affine_map<(d0, d1) -> (d1)>

func.func @main(%x: tensor<12x5xf32>, %scale: tensor<5xf32>, %mean: tensor<5xf32>, %variance: tensor<5xf32>, %normal: tensor<12x5xf32>, %deviation: tensor<12xf32>, %g: tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %empty = tensor.empty() : tensor<12x5xf32>
  %turned = tensor.empty() : tensor<5x12xf32>
  %gt = linalg.transpose ins(%g : tensor<12x5xf32>) outs(%turned : tensor<5x12xf32>) permutation = [1, 0]
  %zero = arith.constant dense<0.0> : tensor<12xf32>
  %first_sum = linalg.generic {indexing_maps = [#transposed, #first], iterator_types = ["parallel", "reduction"]}
      ins(%gt : tensor<5x12xf32>) outs(%zero : tensor<12xf32>) {
  ^bb0(%e: f32, %s: f32):
    %r = arith.addf %s, %e : f32
    linalg.yield %r : f32
  } -> tensor<12xf32>
  %product = linalg.mul ins(%g, %normal : tensor<12x5xf32>, tensor<12x5xf32>) outs(%empty : tensor<12x5xf32>) -> tensor<12x5xf32>
  %second_init = arith.constant dense<0.0> : tensor<12xf32>
  %second = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel", "reduction"]}
      ins(%product : tensor<12x5xf32>) outs(%second_init : tensor<12xf32>) {
  ^bb0(%e: f32, %sum: f32):
    %r = arith.addf %sum, %e : f32
    linalg.yield %r : f32
  } -> tensor<12xf32>
  %rows = tensor.expand_shape %second [[0, 1]] output_shape [12, 1] : tensor<12xf32> into tensor<12x1xf32>
  %five = arith.constant 5.0 : f32
  %dy = linalg.generic {indexing_maps = [#id, #id, #first, affine_map<(d0, d1) -> (d0, 0)>, #first, #id],
                        iterator_types = ["parallel", "parallel"]}
      ins(%g, %normal, %first_sum, %rows, %deviation : tensor<12x5xf32>, tensor<12x5xf32>, tensor<12xf32>, tensor<12x1xf32>, tensor<12xf32>) outs(%empty : tensor<12x5xf32>) {
  ^bb0(%a: f32, %n: f32, %s: f32, %t: f32, %d: f32, %out: f32):
    %s5 = arith.divf %s, %five : f32
    %t5 = arith.divf %t, %five : f32
    %c = arith.subf %a, %s5 : f32
    %nt = arith.mulf %n, %t5 : f32
    %e = arith.subf %c, %nt : f32
    %r = arith.divf %e, %d : f32
    linalg.yield %r : f32
  } -> tensor<12x5xf32>
  %dx, %dscale, %doffset = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-5 : f32, feature_index = 1 : i64}>
      : (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<12x5xf32>) -> (tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dscale, %doffset : tensor<12x5xf32>, tensor<5xf32>, tensor<5xf32>
}
