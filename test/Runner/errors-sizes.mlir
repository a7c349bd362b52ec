// Sizes that are known at run time only, and that the ops do not allow, are one line each; nothing runs.

// REQUIRES: numpy

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{concat} = bngrad-runner %s --entry=concat --check --arg=random:1@3x4
// DEFINE: %{expand} = bngrad-runner %s --entry=expand --check --arg=random:1@12x8
// DEFINE: %{pad} = bngrad-runner %s --entry=pad --check --arg=random:1@4
// DEFINE: %{insert} = bngrad-runner %s --entry=insert --check --arg=random:1@10
// DEFINE: %{reshape} = bngrad-runner %s --entry=reshape --check --arg=random:1@6x4
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy, sys; [numpy.save(f'{sys.argv[1]}/{name}.npy', numpy.array(value)) for name, value in [('minus', -1), ('0', 0), ('1', 1), ('8', 8), ('large', 1 << 40), ('3x8', [3, 8]), ('wraps', [1 << 32, 1 << 32]), ('3x9', [3, 9])]]" %t

// The runs below fail for the reason they state and no other.
// RUN: %{concat} --arg=random:2@5x4
// RUN: %{expand} --arg=random:2@3x4
// RUN: %{pad} --arg=%t/1.npy
// RUN: %{insert} --arg=random:2@3 --arg=%t/1.npy
// RUN: %{insert} --arg=random:2@0 --arg=%t/1.npy
// RUN: %{reshape} --arg=%t/3x8.npy

// RUN: %{fails} "...: expected dim 1 of input 1 to have the size of dim 1 of input 0, 4, got 5" %{concat} --arg=random:2@3x5
// RUN: %{fails} "...: expected product of the elements of output_shape for dim 0 of src to be the size of that dim, 12, got 20" %{expand} --arg=random:2@5x4
// RUN: %{fails} "...: expected product of the elements of output_shape for dim 0 of src to be the size of that dim, 12, got 0" %{expand} --arg=random:2@0x12
// RUN: %{fails} "...: expected low padding of dim 0 to be at least 0, got -1" %{pad} --arg=%t/minus.npy
// RUN: %{fails} "...: expected dim 0 to have the size of the result type after padding, 5, got 12" %{pad} --arg=%t/8.npy
// RUN: %{fails} "...: expected end of the slice in dim 0 to be at most the size of dest, 10, got 11" %{insert} --arg=random:2@10 --arg=%t/1.npy
// RUN: %{fails} "...: expected offset of the slice in dim 0 to be at most the size of dest, 10, got 1099511627776" %{insert} --arg=random:2@0 --arg=%t/large.npy
// RUN: %{fails} "...: expected offset of the slice in dim 0 to be at most the size of dest, 10, got -1" %{insert} --arg=random:2@3 --arg=%t/minus.npy
// RUN: %{fails} "...: expected product of the elements of shape to be the number of elements of source, 24, got 27" %{reshape} --arg=%t/3x9.npy
// RUN: %{fails} "...: expected product of the elements of shape to be the number of elements of source, 24, got 9223372036854775807" %{reshape} --arg=%t/wraps.npy

func.func @concat(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

func.func @expand(%a: tensor<?x8xf32>, %like: tensor<?x?xf32>) -> tensor<?x?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %like, %c0 : tensor<?x?xf32>
  %k = tensor.dim %like, %c1 : tensor<?x?xf32>
  %0 = tensor.expand_shape %a [[0, 1], [2]] output_shape [%n, %k, 8] : tensor<?x8xf32> into tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}

func.func @pad(%a: tensor<?xf32>, %low: tensor<i64>) -> tensor<5xf32> {
  %i = tensor.extract %low[] : tensor<i64>
  %k = arith.index_cast %i : i64 to index
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %a low[%k] high[0] {
  ^bb0(%j: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<5xf32>
  return %0 : tensor<5xf32>
}

func.func @insert(%a: tensor<?xf32>, %b: tensor<?xf32>, %at: tensor<i64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %i = tensor.extract %at[] : tensor<i64>
  %k = arith.index_cast %i : i64 to index
  %n = tensor.dim %b, %c0 : tensor<?xf32>
  %0 = tensor.insert_slice %b into %a[%k] [%n] [1] : tensor<?xf32> into tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @reshape(%a: tensor<?x4xf32>, %shape: tensor<2xi64>) -> tensor<?x?xf32> {
  %0 = tensor.reshape %a(%shape) : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// The error ends the run at once, not after 2^40 rows.
// RUN: %{fails} "...: expected index of dim 0 of tensor.extract to be at most 9, got 10" bngrad-runner %s --entry=rows --arg=random:1@10x4 --arg=%t/large.npy
func.func @rows(%a: tensor<?x4xf32>, %count: tensor<i64>) -> tensor<?x4xf32> {
  %i = tensor.extract %count[] : tensor<i64>
  %n = arith.index_cast %i : i64 to index
  %0 = tensor.generate %n {
  ^bb0(%row: index, %column: index):
    %x = tensor.extract %a[%row, %column] : tensor<?x4xf32>
    tensor.yield %x : f32
  } : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
