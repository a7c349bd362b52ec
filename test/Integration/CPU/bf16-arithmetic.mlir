// Arithmetic on bf16 next to a gradient keeps subnormals, which the conversion
// instruction of CPUs flushes to 0; inside and outside of the loops of a
// gradient, for functions of math, on a CPU and in kernels.

// REQUIRES: numpy
// RUN: mkdir -p %t
// RUN: %python -c "import numpy; numpy.save(r'%t/five.npy', numpy.full((64, 3), 5, numpy.uint16).view('V2')); numpy.save(r'%t/three.npy', numpy.full((64, 3), 3, numpy.uint16).view('V2'))"

// RUN: bngrad-runner %s --entry=sum --arg=%t/five.npy --arg=%t/three.npy --result=%t/sum.npy --result=%t/root.npy
// RUN: %python -c "import numpy; assert (numpy.load(r'%t/sum.npy').view(numpy.uint16) == 8).all()"
// RUN: %python -c "import numpy; assert (numpy.load(r'%t/root.npy').view(numpy.uint16) == 5).all()"
func.func @sum(%a: tensor<64x3xbf16>, %b: tensor<64x3xbf16>) -> (tensor<64x3xbf16>, tensor<64x3xbf16>) {
  %0 = arith.addf %a, %b : tensor<64x3xbf16>
  %1 = math.tanh %a : tensor<64x3xbf16>
  return %0, %1 : tensor<64x3xbf16>, tensor<64x3xbf16>
}

// grad_output is also subnormal, with factor 1: grad_input is the sum.
// RUN: bngrad-runner %s --entry=fused --arg=%t/five.npy --arg=%t/three.npy --result=%t/sum.npy
// RUN: %python -c "import numpy; assert (numpy.load(r'%t/sum.npy').view(numpy.uint16) == 8).all()"
// RUN: bngrad-runner %s --target=cuda-emulator --chip=sm_80 --entry=fused --arg=%t/five.npy --arg=%t/three.npy --result=%t/sum.npy
// RUN: %python -c "import numpy; assert (numpy.load(r'%t/sum.npy').view(numpy.uint16) == 8).all()"
func.func @fused(%a: tensor<64x3xbf16>, %b: tensor<64x3xbf16>) -> tensor<64x3xbf16> {
  %dy = arith.addf %a, %b : tensor<64x3xbf16>
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %one = arith.constant dense<1.0> : tensor<3xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<64x3xbf16>) input(%a : tensor<64x3xbf16>)
      mean(%zero : tensor<3xf32>) inv_std(%one : tensor<3xf32>) {statistics = #bngrad.statistics<global>}
      : tensor<64x3xbf16>, tensor<3xf32>, tensor<3xf32>
  return %0#0 : tensor<64x3xbf16>
}
