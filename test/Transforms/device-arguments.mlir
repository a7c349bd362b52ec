// With arguments in device memory, host code that would access them is an error, not a crash.

// RUN: bngrad-opt %s --bngrad-cuda-pipeline="device-arguments=true stop-after=apply" --split-input-file --verify-diagnostics
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="stop-after=apply" --split-input-file -o %t

func.func @no_gradient(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'linalg.generic' op expected a kernel to access argument 0, which is in memory of the device, got code of the host; only gradients with something to sum over, and what is fused with them, become kernels}}
  %0 = arith.negf %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
func.func @strided_copy(%dy: !d, %x: !d, %mean: !c, %variance: !c, %to: memref<3xf32, strided<[2]>>) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  // expected-error @below {{'memref.copy' op expected a kernel to access argument 3}}
  bufferization.materialize_in_destination %variance in restrict writable %to : (!c, memref<3xf32, strided<[2]>>) -> ()
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
func.func @chosen(%dy: !d, %x: !d, %y: !d, %mean: !c, %variance: !c, %which: i1) -> !d {
  %either = scf.if %which -> !d {
    // expected-error @below {{'scf.yield' op expected a kernel to access argument 1}}
    scf.yield %x : !d
  } else {
    %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%y : !d) mean(%mean : !c) variance(%variance : !c)
        : !d, !c, !c
    scf.yield %0#0 : !d
  }
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%either : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %0#0 : !d
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
func.func @gradient(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> (!d, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %0#0, %0#1 : !d, !c
}

// -----

!d = tensor<4x3xf32>
!c = tensor<3xf32>
func.func private @callee(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> !d attributes {no_inline} {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %0#0 : !d
}

func.func @caller(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> !d {
  // The result is in a buffer of the caller.
  // expected-error @below {{'func.call' op expected operand 4 to be an argument, in memory of the device, got a buffer of the host}}
  %0 = func.call @callee(%dy, %x, %mean, %variance) : (!d, !d, !c, !c) -> !d
  %1:3 = bngrad.batch_norm_backward grad_output(%0 : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %1#0 : !d
}

// -----

// A kernel writes the sums; the count is copied.
func.func @reduce(%dy: tensor<4x3x2xf32>, %x: tensor<4x3x2xf32>, %mean: tensor<3x2xf32>) -> (tensor<2x3x2xf32>, tensor<i64>) {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : tensor<4x3x2xf32>) input(%x : tensor<4x3x2xf32>)
      mean(%mean : tensor<3x2xf32>) {feature_dims = array<i64: 1, 2>} : tensor<2x3x2xf32>, tensor<i64>
  return %sums, %count : tensor<2x3x2xf32>, tensor<i64>
}

// -----

!d = tensor<?x?x?xf32>
func.func @reduce_dynamic(%dy: !d, %x: !d, %mean: tensor<?x?xf32>) -> (tensor<2x?x?xf32>, tensor<i64>) {
  %sums, %count = bngrad.batch_norm_backward_reduce grad_output(%dy : !d) input(%x : !d) mean(%mean : tensor<?x?xf32>)
      {feature_dims = array<i64: 1, 2>} : tensor<2x?x?xf32>, tensor<i64>
  return %sums, %count : tensor<2x?x?xf32>, tensor<i64>
}

// -----

// A scalar that the function writes is not read by a kernel later on.
!d = tensor<4x3xf32>
!c = tensor<3xf32>
func.func @written(%dy: !d, %x: !d, %mean: !c, %inv_std: !c, %sums: tensor<2x3xf32>, %counts: memref<i64>) -> !d {
  %one = arith.constant 1 : i64
  // expected-error @below {{'memref.load' op expected a kernel to access argument 5}}
  %count = memref.load %counts[] : memref<i64>
  %more = arith.addi %count, %one : i64
  %tensor = tensor.from_elements %more : tensor<i64>
  %0 = bngrad.batch_norm_backward_elemt grad_output(%dy : !d) input(%x : !d) mean(%mean : !c) inv_std(%inv_std : !c)
      sums(%sums : tensor<2x3xf32>) count(%tensor : tensor<i64>) : !d
  memref.store %more, %counts[] : memref<i64>
  return %0 : !d
}

// -----

// An element is not a whole argument.
func.func @element(%to: memref<3xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  // expected-error @below {{'memref.store' op expected a kernel to access argument 0}}
  memref.store %zero, %to[%c0] : memref<3xf32>
  return
}
