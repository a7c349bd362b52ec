// Classification of numbers, and powers, in scalar and vector loops: MLIR has no lowering for some, and for others only
// one with a uniform exponent (docs/upstream.md).

// REQUIRES: numpy
// RUN: rm -rf %t && split-file %s %t

// DEFINE: %{type} =
// DEFINE: %{classes} = %python %S/classes.py %{type} make %t && sed s/TYPE/%{type}/g %t/classes.mlir > %t/typed.mlir && \
// DEFINE:   bngrad-runner %t/typed.mlir --arg=%t/x.npy --result=%t/isinf.npy --result=%t/isnan.npy \
// DEFINE:     --result=%t/isfinite.npy --result=%t/isnormal.npy --check && \
// DEFINE:   %python %S/classes.py %{type} check %t
// REDEFINE: %{type} = f16
// RUN: %{classes}
// REDEFINE: %{type} = bf16
// RUN: %{classes}
// REDEFINE: %{type} = f32
// RUN: %{classes}
// REDEFINE: %{type} = f64
// RUN: %{classes}

// DEFINE: %{entry} =
// DEFINE: %{target} = cpu
// DEFINE: %{run} = bngrad-runner %t/fused.mlir --entry=%{entry} --arg=random:1 --arg=random:2 --arg=random:3 \
// DEFINE:   --arg=random:4:0.5:1.5
// DEFINE: %{compare} = \
// DEFINE:   %{run} --schedule='#bngrad.schedule<loops>' --result=%t/a.npy --result=%t/b.npy && \
// DEFINE:   %{run} --schedule='#bngrad.schedule<channels>' --result=%t/x.npy --result=%t/y.npy && \
// DEFINE:   %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy && \
// DEFINE:   %{run} --target=cuda-emulator --chip=sm_80 --result=%t/x.npy --result=%t/y.npy && \
// DEFINE:   %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy
// REDEFINE: %{entry} = masked
// RUN: %{compare}
// REDEFINE: %{entry} = integers
// RUN: %{compare}

// In a kernel fpowi is a call of libdevice.
// REDEFINE: %{entry} = powers
// RUN: %{run} --schedule='#bngrad.schedule<loops>' --result=%t/a.npy --result=%t/b.npy
// RUN: %{run} --schedule='#bngrad.schedule<channels>' --result=%t/x.npy --result=%t/y.npy
// RUN: %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy

// RUN: %python %S/classes.py i64 make %t
// RUN: bngrad-runner %t/powers.mlir --arg=%t/x.npy --arg=%t/n.npy --result=%t/power.npy --check
// RUN: %python %S/classes.py i64 check %t

//--- classes.mlir
func.func @classes(%x: tensor<22xTYPE>) -> (tensor<22xi1>, tensor<22xi1>, tensor<22xi1>, tensor<22xi1>) {
  %0 = math.isinf %x : tensor<22xTYPE>
  %1 = math.isnan %x : tensor<22xTYPE>
  %2 = math.isfinite %x : tensor<22xTYPE>
  %3 = math.isnormal %x : tensor<22xTYPE>
  return %0, %1, %2, %3 : tensor<22xi1>, tensor<22xi1>, tensor<22xi1>, tensor<22xi1>
}

//--- powers.mlir
func.func @powers(%x: tensor<?xi64>, %n: tensor<?xi64>) -> tensor<?xi64> {
  %0 = math.ipowi %x, %n : tensor<?xi64>
  return %0 : tensor<?xi64>
}

//--- fused.mlir
!t = tensor<3x9x37xf32>
!i = tensor<3x9x37xi32>
!b = tensor<3x9x37xi1>
!p = tensor<9xf32>
func.func @masked(%dz: !t, %x: !t, %mean: !p, %r: !p) -> (!t, !p) {
  // Includes 1/0, 0/0 and normal numbers.
  %half = arith.constant dense<0.5> : !t
  %zero = arith.constant dense<0.0> : !t
  %size = math.absf %dz : !t
  %is_large = arith.cmpf ogt, %size, %half : !t
  %divisor = arith.select %is_large, %size, %zero : !b, !t
  %odd = arith.divf %x, %divisor : !t
  %is_inf = math.isinf %odd : !t
  %is_normal = math.isnormal %odd : !t
  %a = arith.select %is_inf, %dz, %x : !b, !t
  %dy = arith.select %is_normal, %size, %a : !b, !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}

func.func @integers(%dz: !t, %x: !t, %mean: !p, %r: !p) -> (!t, !p) {
  %eight = arith.constant dense<8.0> : !t
  %scaled = arith.mulf %dz, %eight : !t
  %scaled_x = arith.mulf %x, %eight : !t
  %base = arith.fptosi %scaled : !t to !i
  %exponent = arith.fptosi %scaled_x : !t to !i
  %power = math.ipowi %base, %exponent : !i
  %dy = arith.sitofp %power : !i to !t
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}

func.func @powers(%dz: !t, %x: !t, %mean: !p, %r: !p) -> (!t, !p) {
  %eight = arith.constant dense<8.0> : !t
  %three = arith.constant dense<3> : !i
  %scaled = arith.mulf %x, %eight : !t
  %number = arith.fptosi %scaled : !t to !i
  %exponent = arith.andi %number, %three : !i
  %dy = math.fpowi %dz, %exponent : !t, !i
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) inv_std(%r : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}
