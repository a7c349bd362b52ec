// Element-wise neighbours of a gradient are fused into its two loops, and the
// results are correct. Every function is compiled with and without CSE between
// the stages, which merges inits.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=bufferize | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=decompose | bngrad-opt --cse \
// RUN:   | bngrad-opt --bngrad-cpu-pipeline=stop-after=fuse | bngrad-opt --cse \
// RUN:   | bngrad-opt --bngrad-cpu-pipeline=stop-after=group | bngrad-opt --cse \
// RUN:   | bngrad-opt --bngrad-cpu-pipeline=stop-after=bufferize | FileCheck %s

// RUN: bngrad-runner %s --entry=relu_residual_consumer --check \
// RUN:   --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 --arg=random:6 --arg=random:7 --arg=random:8 \
// RUN:   | FileCheck %s --check-prefix=RUN-RELU
// RUN-RELU: result 0 value {{.*}} ok
// RUN-RELU-NEXT: result 1 grad_scale {{.*}} ok
// RUN-RELU-NEXT: result 2 grad_offset {{.*}} ok
// RUN-RELU-NEXT: result 3 value {{.*}} ok

// CHECK-LABEL: func.func @relu_residual_consumer(
// The masked gradient is also a result: the reduction stores it, and the
// element-wise loop reads it.
// CHECK-NOT: memref.alloc{{.*}}8x4x6x10
// CHECK-NOT: memref.copy
// CHECK: scf.execute_region
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction", "reduction"]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// CHECK-NOT: linalg.generic
// CHECK: return
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @relu_residual_consumer(
    %dz: tensor<8x4x6x10xf32>, %y: tensor<8x4x6x10xf32>, %res: tensor<8x4x6x10xf32>, %x: tensor<8x4x6x10xf32>,
    %scale: tensor<4xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>, %other: tensor<8x4x6x10xf32>)
    -> (tensor<8x4x6x10xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4x6x10xf32>) {
  %e = tensor.empty() : tensor<8x4x6x10xf32>
  %sum = linalg.add ins(%dz, %res : tensor<8x4x6x10xf32>, tensor<8x4x6x10xf32>) outs(%e : tensor<8x4x6x10xf32>) -> tensor<8x4x6x10xf32>
  %zero = arith.constant 0.0 : f32
  %dy = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sum, %y : tensor<8x4x6x10xf32>, tensor<8x4x6x10xf32>) outs(%e : tensor<8x4x6x10xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.cmpf ogt, %b, %zero : f32
    %s = arith.select %p, %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x4x6x10xf32>
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4x6x10xf32>) input(%x : tensor<8x4x6x10xf32>)
      scale(%scale : tensor<4xf32>) mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x6x10xf32>, tensor<4xf32>, tensor<4xf32>
  %out = arith.addf %dx, %other : tensor<8x4x6x10xf32>
  return %out, %ds, %do, %dy : tensor<8x4x6x10xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4x6x10xf32>
}

// RUN: bngrad-runner %s --entry=chain --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 --arg=random:6 \
// RUN:   | FileCheck %s --check-prefix=RUN-CHAIN
// RUN-CHAIN: result 0 grad_input {{.*}} ok
// RUN-CHAIN-NEXT: result 1 grad_scale {{.*}} ok

// CHECK-LABEL: func.func @chain(
// One group per gradient; the first passes its grad_input, multiplied, to the
// second in the only buffer between them.
// CHECK: memref.alloc() {{.*}} : memref<8x4x60xf32>
// CHECK: scf.execute_region
// CHECK-COUNT-3: linalg.generic
// CHECK: scf.execute_region
// CHECK-NOT: memref.alloc{{.*}}8x4x60
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK-NOT: memref.copy
// CHECK: return
func.func @chain(%dz: tensor<8x4x60xf32>, %x: tensor<8x4x60xf32>, %x2: tensor<8x4x60xf32>, %y: tensor<8x4x60xf32>,
                 %mean: tensor<4xf32>, %inv_std: tensor<4xf32>) -> (tensor<8x4x60xf32>, tensor<4xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dz : tensor<8x4x60xf32>) input(%x : tensor<8x4x60xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<8x4x60xf32>, tensor<4xf32>, tensor<4xf32>
  %c = arith.mulf %0#0, %y : tensor<8x4x60xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%c : tensor<8x4x60xf32>) input(%x2 : tensor<8x4x60xf32>)
      mean(%mean : tensor<4xf32>) inv_std(%inv_std : tensor<4xf32>) : tensor<8x4x60xf32>, tensor<4xf32>, tensor<4xf32>
  return %1#0, %1#1 : tensor<8x4x60xf32>, tensor<4xf32>
}

// RUN: bngrad-runner %s --entry=through_reshapes --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 \
// RUN:   | FileCheck %s --check-prefix=RUN-RESHAPE
// RUN-RESHAPE: result 0 value {{.*}} ok

// CHECK-LABEL: func.func @through_reshapes(
// CHECK-NOT: memref.alloc{{.*}}x{{[0-9]+}}x
// CHECK-NOT: memref.copy
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @through_reshapes(%dz: tensor<2x3x5x7xbf16>, %y: tensor<2x3x5x7xbf16>, %x: tensor<2x3x35xbf16>, %mean: tensor<3xf32>,
                            %inv_std: tensor<3xf32>) -> tensor<2x3x5x7xf32> {
  %dy = arith.mulf %dz, %y : tensor<2x3x5x7xbf16>
  %flat = tensor.collapse_shape %dy [[0], [1], [2, 3]] : tensor<2x3x5x7xbf16> into tensor<2x3x35xbf16>
  %0:3 = bngrad.batch_norm_backward grad_output(%flat : tensor<2x3x35xbf16>) input(%x : tensor<2x3x35xbf16>)
      mean(%mean : tensor<3xf32>) inv_std(%inv_std : tensor<3xf32>) : tensor<2x3x35xbf16>, tensor<3xf32>, tensor<3xf32>
  %image = tensor.expand_shape %0#0 [[0], [1], [2, 3]] output_shape [2, 3, 5, 7] : tensor<2x3x35xbf16> into tensor<2x3x5x7xbf16>
  %wide = arith.extf %image : tensor<2x3x5x7xbf16> to tensor<2x3x5x7xf32>
  return %wide : tensor<2x3x5x7xf32>
}

// RUN: bngrad-runner %s --entry=scaled_and_dequantized --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 \
// RUN:   | FileCheck %s --check-prefix=RUN-SCALED
// RUN-SCALED: result 0 value {{.*}} ok
// RUN-SCALED-NEXT: result 1 value {{.*}} ok

// Two consumers: grad_input itself is not stored, its readers share one loop.
// CHECK-LABEL: func.func @scaled_and_dequantized(
// CHECK-NOT: memref.alloc{{.*}}9x5
// CHECK-NOT: memref.copy
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
#data = affine_map<(n, c) -> (n, c)>
#channel = affine_map<(n, c) -> (c)>
func.func @scaled_and_dequantized(%q: tensor<9x5xf16>, %s: tensor<5xf32>, %x: tensor<9x5xf32>, %mean: tensor<5xf32>,
                                  %inv_std: tensor<5xf32>) -> (tensor<9x5xf32>, tensor<9x5xf32>) {
  %e = tensor.empty() : tensor<9x5xf32>
  %dy = linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<9x5xf16>, tensor<5xf32>) outs(%e : tensor<9x5xf32>) {
  ^bb0(%a: f16, %b: f32, %o: f32):
    %w = arith.extf %a : f16 to f32
    %p = arith.mulf %w, %b : f32
    linalg.yield %p : f32
  } -> tensor<9x5xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<9x5xf32>) input(%x : tensor<9x5xf32>)
      mean(%mean : tensor<5xf32>) inv_std(%inv_std : tensor<5xf32>) : tensor<9x5xf32>, tensor<5xf32>, tensor<5xf32>
  %n = arith.negf %0#0 : tensor<9x5xf32>
  %d = arith.addf %0#0, %x : tensor<9x5xf32>
  return %n, %d : tensor<9x5xf32>, tensor<9x5xf32>
}

// RUN: bngrad-runner %s --entry=uniform_grad_output --check --arg=random:1 --arg=random:2 --arg=random:3 | FileCheck %s --check-prefix=RUN-UNIFORM
// RUN: bngrad-runner %s --entry=uniform_grad_output --check --arg=random:1 --arg=random:2 --arg=random:3 --target=cuda-emulator \
// RUN:   | FileCheck %s --check-prefix=RUN-UNIFORM
// RUN-UNIFORM: result 0 grad_input {{.*}} ok
// RUN-UNIFORM-NEXT: result 1 grad_scale {{.*}} ok
// RUN-UNIFORM-NEXT: result 2 grad_offset {{.*}} ok

// CHECK-LABEL: func.func @uniform_grad_output(
// The loops read the input alone.
// CHECK-NOT: memref.get_global
// CHECK: linalg.generic {{.*}} ins(%[[X:[^ ,]+]], %{{[^ ,]+}} : memref<8x4x15xf32>, memref<4xf32>) outs({{.*}} : memref<4xf32>, memref<4xf32>)
// CHECK: return
func.func @uniform_grad_output(%x: tensor<8x4x15xf32>, %mean: tensor<4xf32>, %variance: tensor<4xf32>)
    -> (tensor<8x4x15xf32>, tensor<4xf32>, tensor<4xf32>) {
  %dy = arith.constant dense<0.75> : tensor<8x4x15xf32>
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4x15xf32>) input(%x : tensor<8x4x15xf32>)
      mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x15xf32>, tensor<4xf32>, tensor<4xf32>
  return %dx, %ds, %do : tensor<8x4x15xf32>, tensor<4xf32>, tensor<4xf32>
}

// RUN: bngrad-runner %s --entry=relu_bf16 --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5 \
// RUN:   | FileCheck %s --check-prefix=RUN-BF16
// RUN-BF16: result 0 grad_input {{.*}} ok
// RUN-BF16-NEXT: result 1 grad_scale {{.*}} ok
// RUN-BF16-NEXT: result 2 grad_offset {{.*}} ok

// CHECK-LABEL: func.func @relu_bf16(
// CHECK-NOT: memref.get_global
// CHECK: return
func.func @relu_bf16(%dz: tensor<8x4x700xbf16>, %y: tensor<8x4x700xbf16>, %x: tensor<8x4x700xbf16>, %mean: tensor<4xf32>, %variance: tensor<4xf32>)
    -> (tensor<8x4x700xbf16>, tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x4x700xbf16>
  %p = arith.cmpf ogt, %y, %zero : tensor<8x4x700xbf16>
  %dy = arith.select %p, %dz, %zero : tensor<8x4x700xi1>, tensor<8x4x700xbf16>
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<8x4x700xbf16>) input(%x : tensor<8x4x700xbf16>)
      mean(%mean : tensor<4xf32>) variance(%variance : tensor<4xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<8x4x700xbf16>, tensor<4xf32>, tensor<4xf32>
  return %dx, %ds, %do : tensor<8x4x700xbf16>, tensor<4xf32>, tensor<4xf32>
}

// RUN: bngrad-runner %s --entry=uniform_frozen --check --arg=random:1 --arg=random:2 --arg=random:3 \
// RUN:   | FileCheck %s --check-prefix=RUN-FROZEN
// RUN-FROZEN: result 0 grad_input {{.*}} ok
// RUN-FROZEN-NEXT: result 1 grad_scale {{.*}} ok
// RUN-FROZEN-NEXT: result 2 grad_offset {{.*}} ok

// grad_input has one value for a channel, and is computed as a scalar.
// CHECK-LABEL: func.func @uniform_frozen(
func.func @uniform_frozen(%x: tensor<4x3x700xbf16>, %mean: tensor<3xf32>, %variance: tensor<3xf32>)
    -> (tensor<4x3x700xbf16>, tensor<3xf32>, tensor<3xf32>) {
  %dy = arith.constant dense<0.75> : tensor<4x3x700xbf16>
  %dx, %ds, %do = bngrad.batch_norm_backward grad_output(%dy : tensor<4x3x700xbf16>) input(%x : tensor<4x3x700xbf16>)
      mean(%mean : tensor<3xf32>) variance(%variance : tensor<3xf32>)
      {epsilon = 1.0e-5 : f64, statistics = #bngrad.statistics<global>}
      : tensor<4x3x700xbf16>, tensor<3xf32>, tensor<3xf32>
  return %dx, %ds, %do : tensor<4x3x700xbf16>, tensor<3xf32>, tensor<3xf32>
}
