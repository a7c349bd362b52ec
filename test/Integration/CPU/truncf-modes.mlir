// The other rounding modes of arith.truncf, which no target of LLVM obeys: as in
// truncf.mlir, bitwise.

// REQUIRES: numpy
// RUN: mkdir -p %t

// RUN: %python %S/../../Inputs/truncf.py make f32 bf16 %t/in.npy
// RUN: bngrad-runner %s --entry=f32_to_bf16 --arg=%t/in.npy \
// RUN:   --result=%t/away.npy --result=%t/downward.npy --result=%t/upward.npy --result=%t/zero.npy
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/in.npy %t/away.npy to_nearest_away
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/in.npy %t/downward.npy downward
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/in.npy %t/upward.npy upward
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/in.npy %t/zero.npy toward_zero

// RUN: %python %S/../../Inputs/truncf.py make f32 f16 %t/in.npy
// RUN: bngrad-runner %s --entry=f32_to_f16 --arg=%t/in.npy \
// RUN:   --result=%t/away.npy --result=%t/downward.npy --result=%t/upward.npy --result=%t/zero.npy
// RUN: %python %S/../../Inputs/truncf.py check f32 f16 %t/in.npy %t/away.npy to_nearest_away
// RUN: %python %S/../../Inputs/truncf.py check f32 f16 %t/in.npy %t/downward.npy downward
// RUN: %python %S/../../Inputs/truncf.py check f32 f16 %t/in.npy %t/upward.npy upward
// RUN: %python %S/../../Inputs/truncf.py check f32 f16 %t/in.npy %t/zero.npy toward_zero

// RUN: %python %S/../../Inputs/truncf.py make f64 bf16 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_bf16 --arg=%t/in.npy \
// RUN:   --result=%t/away.npy --result=%t/downward.npy --result=%t/upward.npy --result=%t/zero.npy
// RUN: %python %S/../../Inputs/truncf.py check f64 bf16 %t/in.npy %t/away.npy to_nearest_away
// RUN: %python %S/../../Inputs/truncf.py check f64 bf16 %t/in.npy %t/downward.npy downward
// RUN: %python %S/../../Inputs/truncf.py check f64 bf16 %t/in.npy %t/upward.npy upward
// RUN: %python %S/../../Inputs/truncf.py check f64 bf16 %t/in.npy %t/zero.npy toward_zero

// RUN: %python %S/../../Inputs/truncf.py make f64 f16 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_f16 --arg=%t/in.npy \
// RUN:   --result=%t/away.npy --result=%t/downward.npy --result=%t/upward.npy --result=%t/zero.npy
// RUN: %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/away.npy to_nearest_away
// RUN: %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/downward.npy downward
// RUN: %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/upward.npy upward
// RUN: %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/zero.npy toward_zero

// RUN: %python %S/../../Inputs/truncf.py make f64 f32 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_f32 --arg=%t/in.npy \
// RUN:   --result=%t/away.npy --result=%t/downward.npy --result=%t/upward.npy --result=%t/zero.npy
// RUN: %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/away.npy to_nearest_away
// RUN: %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/downward.npy downward
// RUN: %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/upward.npy upward
// RUN: %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/zero.npy toward_zero

// By the GPU.
// RUN: bngrad-runner %s --entry=f64_to_f32 --arg=%t/in.npy --target=cuda-emulator \
// RUN:   --result=%t/gpu_away.npy --result=%t/gpu_downward.npy --result=%t/gpu_upward.npy --result=%t/gpu_zero.npy
// RUN: cmp %t/away.npy %t/gpu_away.npy
// RUN: cmp %t/downward.npy %t/gpu_downward.npy
// RUN: cmp %t/upward.npy %t/gpu_upward.npy
// RUN: cmp %t/zero.npy %t/gpu_zero.npy

// Each mode differs from the others and from the default.
// RUN: not %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/away.npy
// RUN: not %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/upward.npy downward
// RUN: not %python %S/../../Inputs/truncf.py check f64 f32 %t/in.npy %t/upward.npy toward_zero

func.func @f32_to_bf16(%x: tensor<32768xf32>) -> (tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>) {
  %0 = arith.truncf %x to_nearest_away : tensor<32768xf32> to tensor<32768xbf16>
  %1 = arith.truncf %x downward : tensor<32768xf32> to tensor<32768xbf16>
  %2 = arith.truncf %x upward : tensor<32768xf32> to tensor<32768xbf16>
  %3 = arith.truncf %x toward_zero : tensor<32768xf32> to tensor<32768xbf16>
  return %0, %1, %2, %3 : tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>
}

func.func @f32_to_f16(%x: tensor<32768xf32>) -> (tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>) {
  %0 = arith.truncf %x to_nearest_away : tensor<32768xf32> to tensor<32768xf16>
  %1 = arith.truncf %x downward : tensor<32768xf32> to tensor<32768xf16>
  %2 = arith.truncf %x upward : tensor<32768xf32> to tensor<32768xf16>
  %3 = arith.truncf %x toward_zero : tensor<32768xf32> to tensor<32768xf16>
  return %0, %1, %2, %3 : tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>
}

func.func @f64_to_bf16(%x: tensor<32768xf64>) -> (tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>) {
  %0 = arith.truncf %x to_nearest_away : tensor<32768xf64> to tensor<32768xbf16>
  %1 = arith.truncf %x downward : tensor<32768xf64> to tensor<32768xbf16>
  %2 = arith.truncf %x upward : tensor<32768xf64> to tensor<32768xbf16>
  %3 = arith.truncf %x toward_zero : tensor<32768xf64> to tensor<32768xbf16>
  return %0, %1, %2, %3 : tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>, tensor<32768xbf16>
}

func.func @f64_to_f16(%x: tensor<32768xf64>) -> (tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>) {
  %0 = arith.truncf %x to_nearest_away : tensor<32768xf64> to tensor<32768xf16>
  %1 = arith.truncf %x downward : tensor<32768xf64> to tensor<32768xf16>
  %2 = arith.truncf %x upward : tensor<32768xf64> to tensor<32768xf16>
  %3 = arith.truncf %x toward_zero : tensor<32768xf64> to tensor<32768xf16>
  return %0, %1, %2, %3 : tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>, tensor<32768xf16>
}

func.func @f64_to_f32(%x: tensor<32768xf64>) -> (tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>) {
  %0 = arith.truncf %x to_nearest_away : tensor<32768xf64> to tensor<32768xf32>
  %1 = arith.truncf %x downward : tensor<32768xf64> to tensor<32768xf32>
  %2 = arith.truncf %x upward : tensor<32768xf64> to tensor<32768xf32>
  %3 = arith.truncf %x toward_zero : tensor<32768xf64> to tensor<32768xf32>
  return %0, %1, %2, %3 : tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>
}
