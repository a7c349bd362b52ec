// Reshapes and slices next to gradients for which upstream's lowering crashes or fails (docs/upstream.md), in the
// compiled program and in the reference of --check.

// DEFINE: %{target} = cpu
// DEFINE: %{run} = bngrad-runner %s --target=%{target} --check
// DEFINE: %{all} = \
// DEFINE:   %{run} --entry=unflatten --arg=random:1@6x8 --arg=random:2@6x8 --arg=random:3 --arg=random:4 --arg=random:5@2 \
// DEFINE:     | FileCheck %s --check-prefix=UNFLATTEN && \
// DEFINE:   %{run} --entry=flatten --arg=random:1@6x8 --arg=random:2@2x3x8 --arg=random:3@8 --arg=random:4@8 \
// DEFINE:     --arg=random:5@2x8 | FileCheck %s --check-prefix=FLATTEN && \
// DEFINE:   %{run} --entry=step --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 \
// DEFINE:     | FileCheck %s --check-prefix=SLICE && \
// DEFINE:   %{run} --entry=slice --arg=random:1@4x8 --arg=random:2@6x4x3x8 --arg=random:3@8 --arg=random:4@8 \
// DEFINE:     | FileCheck %s --check-prefix=SLICE && \
// DEFINE:   %{run} --entry=beside --arg=random:1@6x8 --arg=random:2@6x4x3x8 --arg=random:3@8 --arg=random:4@8 \
// DEFINE:     --arg=random:5@2 | FileCheck %s --check-prefix=BESIDE

// RUN: %{all}
// REDEFINE: %{target} = cuda-emulator
// RUN: %{all}

// UNFLATTEN: result 0 value {{.+}} ok
// UNFLATTEN-NEXT: result 1 grad_scale {{.+}} ok
// UNFLATTEN-NOT: {{.}}
// FLATTEN: result 0 grad_input {{.+}} ok
// FLATTEN-NOT: {{.}}
// SLICE: result 0 grad_input {{.+}} ok
// SLICE-NEXT: result 1 value max_error 0 bound 0 ok
// SLICE-NOT: {{.}}
// BESIDE: result 0 grad_input {{.+}} ok
// BESIDE-NEXT: result 1 value max_error 0 bound 0 ok
// BESIDE-NEXT: result 2 value max_error 0 bound 0 ok
// BESIDE-NOT: {{.}}

func.func @unflatten(%dy: tensor<?x8xf32>, %x: tensor<?x8xf32>, %mean: tensor<8xf32>, %r: tensor<8xf32>,
                     %groups: tensor<?xf32>) -> (tensor<?x?x8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %groups, %c0 : tensor<?xf32>
  %rows = tensor.dim %x, %c0 : tensor<?x8xf32>
  %m = arith.divui %rows, %n : index
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x8xf32>) input(%x : tensor<?x8xf32>)
      mean(%mean : tensor<8xf32>) inv_std(%r : tensor<8xf32>) : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  %e = tensor.expand_shape %0#0 [[0, 1], [2]] output_shape [%n, %m, 8] : tensor<?x8xf32> into tensor<?x?x8xf32>
  return %e, %0#1 : tensor<?x?x8xf32>, tensor<8xf32>
}

// Fusion creates the same expand.
func.func @flatten(%dy: tensor<?x?xf32>, %x: tensor<?x?x?xf32>, %mean: tensor<?xf32>, %r: tensor<?xf32>,
                   %sums: tensor<2x?xf32>) -> tensor<?x?xf32> {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
  %dx = bngrad.batch_norm_backward_elemt grad_output(%dy : tensor<?x?xf32>) input(%c : tensor<?x?xf32>)
      mean(%mean : tensor<?xf32>) inv_std(%r : tensor<?xf32>) sums(%sums : tensor<2x?xf32>) : tensor<?x?xf32>
  return %dx : tensor<?x?xf32>
}

// Drops a unit dim with a step.
func.func @step(%dy: tensor<4x8xf32>, %t: tensor<4x1x2x8xf32>, %mean: tensor<8xf32>, %r: tensor<8xf32>)
    -> (tensor<4x8xf32>, tensor<4x1x8xf32>) {
  %s = tensor.extract_slice %t[0, 0, 1, 0] [4, 1, 1, 8] [1, 2, 1, 1] : tensor<4x1x2x8xf32> to tensor<4x1x8xf32>
  %x = tensor.collapse_shape %s [[0, 1], [2]] : tensor<4x1x8xf32> into tensor<4x8xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<4x8xf32>) input(%x : tensor<4x8xf32>)
      mean(%mean : tensor<8xf32>) inv_std(%r : tensor<8xf32>) : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %0#0, %s : tensor<4x8xf32>, tensor<4x1x8xf32>
}

// Drops one of two unit dims; the strides do not determine which.
func.func @slice(%dy: tensor<?x?xf32>, %t: tensor<6x?x?x?xf32>, %mean: tensor<?xf32>, %r: tensor<?xf32>)
    -> (tensor<?x?xf32>, tensor<1x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %t, %c1 : tensor<6x?x?x?xf32>
  %k = tensor.dim %t, %c3 : tensor<6x?x?x?xf32>
  %s = tensor.extract_slice %t[2, 0, 1, 0] [1, %n, 1, %k] [1, 1, 1, 1] : tensor<6x?x?x?xf32> to tensor<1x?x?xf32>
  %x = tensor.collapse_shape %s [[0, 1], [2]] : tensor<1x?x?xf32> into tensor<?x?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%mean : tensor<?xf32>) inv_std(%r : tensor<?xf32>) : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %s : tensor<?x?xf32>, tensor<1x?x?xf32>
}

// Next to a gradient, and inserted into another tensor.
func.func @beside(%x: tensor<?x8xf32>, %t: tensor<6x?x?x?xf32>, %mean: tensor<8xf32>, %r: tensor<8xf32>,
                  %groups: tensor<?xf32>) -> (tensor<?x8xf32>, tensor<?x?x8xf32>, tensor<6x?x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %groups_size = tensor.dim %groups, %c0 : tensor<?xf32>
  %rows = tensor.dim %x, %c0 : tensor<?x8xf32>
  %m = arith.divui %rows, %groups_size : index
  %e = tensor.expand_shape %x [[0, 1], [2]] output_shape [%groups_size, %m, 8] : tensor<?x8xf32> into tensor<?x?x8xf32>
  %n = tensor.dim %t, %c1 : tensor<6x?x?x?xf32>
  %k = tensor.dim %t, %c3 : tensor<6x?x?x?xf32>
  %s = tensor.extract_slice %t[2, 0, 1, 0] [1, %n, 1, %k] [1, 1, 1, 1] : tensor<6x?x?x?xf32> to tensor<1x?x?xf32>
  %i = tensor.insert_slice %s into %t[5, 0, 0, 0] [1, %n, 1, %k] [1, 1, 1, 1] : tensor<1x?x?xf32> into tensor<6x?x?x?xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%x : tensor<?x8xf32>) input(%x : tensor<?x8xf32>)
      mean(%mean : tensor<8xf32>) inv_std(%r : tensor<8xf32>) : tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>
  return %0#0, %e, %i : tensor<?x8xf32>, tensor<?x?x8xf32>, tensor<6x?x?x?xf32>
}
