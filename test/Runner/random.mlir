// Element i of a random argument depends only on SEED, LO, HI and i, not on shape, type or role. The default
// range is [-1, 1), or [0.5, 1.5) for a variance or inv_std; an i1 is true half of the time.

// REQUIRES: numpy
// RUN: rm -rf %t
// RUN: mkdir %t

// RUN: bngrad-runner %s --entry=shapes --arg=random:7@24 --arg=random:7 --arg=random:7@2x3x4 --arg=random:7@24 --arg=random:7@5 \
// RUN:   --arg=random:8@24 --arg=random:7:2:4@24 --result=%t/vector.npy --result=%t/static.npy --result=%t/dynamic.npy \
// RUN:   --result=%t/wide.npy --result=%t/short.npy --result=%t/other_seed.npy --result=%t/other_range.npy
func.func @shapes(%0: tensor<?xf32>, %1: tensor<4x6xf32>, %2: tensor<?x?x?xf32>, %3: tensor<?xf64>, %4: tensor<?xf32>, %5: tensor<?xf32>, %6: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<4x6xf32>, tensor<?x?x?xf32>, tensor<?xf64>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  return %0, %1, %2, %3, %4, %5, %6 : tensor<?xf32>, tensor<4x6xf32>, tensor<?x?x?xf32>, tensor<?xf64>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// RUN: bngrad-runner %s --entry=roles --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 --arg=random:6 \
// RUN:   --arg=random:7 --arg=random:8 --result=%t/grad_output.npy --result=%t/input.npy --result=%t/scale.npy --result=%t/mean.npy \
// RUN:   --result=%t/variance.npy --result=%t/inv_std.npy --result=%t/cast_variance.npy --result=%t/mask.npy
!d = tensor<3x1000xf32>
!p = tensor<1000xf32>
func.func @roles(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p, %r: !p, %c: !p, %k: tensor<3x1000xi1>) -> (!d, !d, !p, !p, !p, !p, !p, tensor<3x1000xi1>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p) variance(%v : !p)
      mask(%k : tensor<3x1000xi1>) : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) inv_std(%r : !p) : !d, !p, !p
  %cast = tensor.cast %c : !p to tensor<?xf32>
  %2:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%cast : tensor<?xf32>) : !d, !p, !p
  return %dy, %x, %g, %m, %v, %r, %c, %k : !d, !d, !p, !p, !p, !p, !p, tensor<3x1000xi1>
}

// An explicit range overrides that of the role.
// RUN: bngrad-runner %s --entry=types --arg=random:1:3:5 --arg=random:2:-2:-1 --arg=random:3:1:1.5 --arg=random:4:0:2 \
// RUN:   --result=%t/f16.npy --result=%t/bf16.npy --result=%t/f64.npy --result=%t/given_variance.npy
func.func @types(%a: tensor<1000xf16>, %b: tensor<1000xbf16>, %c: tensor<1000xf64>, %v: !p) -> (tensor<1000xf16>, tensor<1000xbf16>, tensor<1000xf64>, !p) {
  %x = tensor.empty() : !d
  %0:3 = bngrad.batch_norm_backward grad_output(%x : !d) input(%x : !d) mean(%v : !p) variance(%v : !p) : !d, !p, !p
  return %a, %b, %c, %v : tensor<1000xf16>, tensor<1000xbf16>, tensor<1000xf64>, !p
}

// RUN: %python %S/check_random.py %t
