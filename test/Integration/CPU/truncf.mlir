// Compiled code rounds once, to nearest even: midpoints of two numbers and
// their neighbours, subnormals, overflow, NaN, and values of f64 that would be
// rounded twice through f32. The expected bits come from rational arithmetic in
// truncf.py.

// REQUIRES: numpy
// RUN: mkdir -p %t

// RUN: %python %S/../../Inputs/truncf.py make f32 bf16 %t/in.npy
// RUN: bngrad-runner %s --entry=f32_to_bf16 --arg=%t/in.npy --result=%t/out.npy
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/in.npy %t/out.npy

// Vectors, whose conversion instruction flushes subnormals.
// RUN: %python %S/../../Inputs/truncf.py make f32 bf16 %t/column.npy column
// RUN: %python -c "import numpy; numpy.save(r'%t/one.npy', numpy.ones(1, numpy.float32))"
// RUN: bngrad-runner %s --entry=vectors_to_bf16 --arg=%t/column.npy --arg=%t/one.npy --result=%t/out.npy \
// RUN:   --schedule='#bngrad.schedule<rows, vector_bits = 512>'
// RUN: %python %S/../../Inputs/truncf.py check f32 bf16 %t/column.npy %t/out.npy

// RUN: %python %S/../../Inputs/truncf.py make f64 bf16 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_bf16 --arg=%t/in.npy --result=%t/out.npy
// RUN: %python %S/../../Inputs/truncf.py check f64 bf16 %t/in.npy %t/out.npy

// RUN: %python %S/../../Inputs/truncf.py make f64 f16 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_f16 --arg=%t/in.npy --result=%t/out.npy
// RUN: %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/out.npy

// The conversions of the machine round once, too.
// RUN: %python %S/../../Inputs/truncf.py make f32 f16 %t/in.npy
// RUN: bngrad-runner %s --entry=f32_to_f16 --arg=%t/in.npy --result=%t/out.npy
// RUN: %python %S/../../Inputs/truncf.py check f32 f16 %t/in.npy %t/out.npy

// The check is effective: an f64 rounded to f32 and then to f16 is wrong.
// RUN: %python %S/../../Inputs/truncf.py make f64 f16 %t/in.npy
// RUN: bngrad-runner %s --entry=f64_to_f16_twice --arg=%t/in.npy --result=%t/out.npy
// RUN: not %python %S/../../Inputs/truncf.py check f64 f16 %t/in.npy %t/out.npy | FileCheck %s
// CHECK: 32768 values from f64 to f16, {{[1-9][0-9]+}} wrong

func.func @f32_to_bf16(%x: tensor<32768xf32>) -> tensor<32768xbf16> {
  %0 = arith.truncf %x : tensor<32768xf32> to tensor<32768xbf16>
  return %0 : tensor<32768xbf16>
}

func.func @vectors_to_bf16(%x: tensor<32768x1xf32>, %one: tensor<1xf32>) -> (tensor<32768x1xbf16>, tensor<1xf32>) {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%x : tensor<32768x1xf32>) input(%x : tensor<32768x1xf32>)
    mean(%one : tensor<1xf32>) inv_std(%one : tensor<1xf32>) {statistics = #bngrad.statistics<global>}
    : tensor<32768x1xbf16>, tensor<1xf32>, tensor<1xf32>
  return %dx, %doffset : tensor<32768x1xbf16>, tensor<1xf32>
}

func.func @f64_to_bf16(%x: tensor<32768xf64>) -> tensor<32768xbf16> {
  %0 = arith.truncf %x : tensor<32768xf64> to tensor<32768xbf16>
  return %0 : tensor<32768xbf16>
}

func.func @f64_to_f16(%x: tensor<32768xf64>) -> tensor<32768xf16> {
  %0 = arith.truncf %x : tensor<32768xf64> to tensor<32768xf16>
  return %0 : tensor<32768xf16>
}

func.func @f32_to_f16(%x: tensor<32768xf32>) -> tensor<32768xf16> {
  %0 = arith.truncf %x : tensor<32768xf32> to tensor<32768xf16>
  return %0 : tensor<32768xf16>
}

func.func @f64_to_f16_twice(%x: tensor<32768xf64>) -> tensor<32768xf16> {
  %0 = arith.truncf %x : tensor<32768xf64> to tensor<32768xf32>
  %1 = arith.truncf %0 : tensor<32768xf32> to tensor<32768xf16>
  return %1 : tensor<32768xf16>
}
