// Its kernels contain most of the rarer instructions: carries in the reduction
// of large angles, undefined halves, and on newer chips mixed precision and
// pairs of integers. TYPE is replaced by the type of the data, PARAMETER by
// that of the statistics.

!t = tensor<64x16xTYPE>
!i = tensor<64x16xi16>
!b = tensor<64x16xi8>
!p = tensor<16xPARAMETER>

func.func @trigonometric(%dz: !t, %x: !t, %mean: !p, %variance: !p) -> (!t, !p) {
  %s = math.sin %dz : !t
  %c = math.cos %x : !t
  %dy = arith.mulf %s, %c : !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) variance(%variance : !p) {epsilon = 1.0e-5 : f64} : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}

func.func @integer(%dy: !t, %x: !t, %mean: !p, %variance: !p) -> (!t, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) variance(%variance : !p) {epsilon = 1.0e-5 : f64} : !t, !p, !p
  %zero = arith.constant dense<0> : !i
  %k = arith.fptosi %x : !t to !i
  %l = arith.fptosi %dy : !t to !i
  %low = arith.minsi %k, %l : !i
  %positive = arith.maxsi %low, %zero : !i
  %most = arith.maxui %k, %l : !i
  %sum = arith.addi %positive, %most : !i
  %byte = arith.trunci %sum : !i to !b
  %n = arith.sitofp %byte : !b to !t
  %1 = arith.mulf %0#0, %n : !t
  return %1, %0#1 : !t, !p
}
