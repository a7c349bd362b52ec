func.func @f(%dy: tensor<?x?xf16>, %x: tensor<?x?xf16>, %mean: tensor<?xf32>, %variance: tensor<?xf32>) -> tensor<?x?xf16> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?xf16>) input(%x : tensor<?x?xf16>) mean(%mean : tensor<?xf32>) variance(%variance : tensor<?xf32>) : tensor<?x?xf16>, tensor<?xf32>, tensor<?xf32>
  return %dx : tensor<?x?xf16>
}
