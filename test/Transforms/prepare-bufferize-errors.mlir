// RUN: bngrad-opt %s --split-input-file --bngrad-prepare-bufferize --verify-diagnostics

func.func @store(%m: memref<4xf32>, %i: index, %x: f32) -> tensor<4xf32> {
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  // expected-error @below {{'memref.store' op expected a buffer that is not written before the last use of its tensor, got a write before 'linalg.exp' reads it}}
  memref.store %x, %m[%i] : memref<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Through views of the buffer and other shapes of the tensor.

func.func @views(%m: memref<8x4xf32>, %other: memref<4xf32>) -> tensor<4xf32> {
  %row = memref.subview %m[2, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: 8>>
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<8x4xf32> to tensor<8x4xf32>
  %s = tensor.extract_slice %t[2, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
  // expected-error @below {{'memref.copy' op expected a buffer that is not written before the last use of its tensor, got a write before 'func.return' reads it}}
  memref.copy %other, %row : memref<4xf32> to memref<4xf32, strided<[1], offset: 8>>
  return %s : tensor<4xf32>
}

// -----

// In a branch, before a reader in a loop.

func.func @nested(%m: memref<4xf32>, %i: index, %x: f32, %c: i1, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  scf.if %c {
    // expected-error @below {{got a write before 'tensor.extract' reads it}}
    memref.store %x, %m[%i] : memref<4xf32>
  }
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%s = %x) -> f32 {
    %e = tensor.extract %t[%j] : tensor<4xf32>
    %next = arith.addf %s, %e : f32
    scf.yield %next : f32
  }
  return %sum : f32
}

// -----

// After the reader, and before it in the next iteration.

func.func @loop(%m: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  scf.for %j = %c0 to %n step %c1 {
    %e = tensor.extract %t[%j] : tensor<4xf32>
    // expected-error @below {{got a write before 'tensor.extract' reads it}}
    memref.store %e, %m[%c0] : memref<4xf32>
  }
  return
}

// -----

// A result written to a buffer that another op reads later.

func.func @materialized(%m: memref<4xf32>, %r: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  // expected-error @below {{'bufferization.materialize_in_destination' op expected a buffer that is not written}}
  bufferization.materialize_in_destination %r in restrict writable %m : (tensor<4xf32>, memref<4xf32>) -> ()
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Valid writes: before the tensor, after all of its readers, to another buffer, to a buffer of the iteration; reading
// a size reads no element.

func.func @good(%m: memref<?xf32>, %other: memref<?xf32>, %i: index, %x: f32, %n: index) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  memref.store %x, %m[%i] : memref<?xf32>
  %t = bufferization.to_tensor %m restrict : memref<?xf32> to tensor<?xf32>
  memref.store %x, %other[%i] : memref<?xf32>
  %size = tensor.dim %t, %c0 : tensor<?xf32>
  %empty = tensor.empty(%size) : tensor<?xf32>
  %0 = linalg.exp ins(%t : tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  memref.store %x, %m[%i] : memref<?xf32>
  %again = tensor.dim %t, %c0 : tensor<?xf32>
  scf.for %j = %c0 to %n step %c1 {
    %alloc = memref.alloc() : memref<4xf32>
    %u = bufferization.to_tensor %alloc restrict : memref<4xf32> to tensor<4xf32>
    %e = tensor.extract %u[%j] : tensor<4xf32>
    memref.store %e, %alloc[%j] : memref<4xf32>
  }
  return %0, %again : tensor<?xf32>, index
}

// -----

// One of two buffers is written.

func.func @chosen(%m: memref<4xf32>, %other: memref<4xf32>, %which: i1, %i: index, %x: f32) -> tensor<4xf32> {
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  %either = arith.select %which, %other, %m : memref<4xf32>
  // expected-error @below {{'memref.store' op expected a buffer that is not written before the last use of its tensor, got a write before 'linalg.exp' reads it}}
  memref.store %x, %either[%i] : memref<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// It may be any buffer.

func.func private @get() -> memref<4xf32>
func.func @unknown(%m: memref<4xf32>, %i: index, %x: f32) -> tensor<4xf32> {
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %m restrict : memref<4xf32> to tensor<4xf32>
  %any = call @get() : () -> memref<4xf32>
  // expected-error @below {{'memref.store' op expected a buffer that is not written}}
  memref.store %x, %any[%i] : memref<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// An element of the part that is read.

func.func @element(%m: memref<16xf32>, %x: f32) -> tensor<4xf32> {
  %c3 = arith.constant 3 : index
  %part = memref.subview %m[0] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1]>>
  // expected-note @below {{the buffer's tensor}}
  %t = bufferization.to_tensor %part restrict : memref<4xf32, strided<[1]>> to tensor<4xf32>
  // expected-error @below {{'memref.store' op expected a buffer that is not written}}
  memref.store %x, %m[%c3] : memref<16xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Other parts of the same buffer, and one of two other buffers.

func.func @apart(%m: memref<16xf32>, %a: memref<4xf32>, %b: memref<4xf32>, %which: i1, %x: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %part = memref.subview %m[0] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1]>>
  %t = bufferization.to_tensor %part restrict : memref<4xf32, strided<[1]>> to tensor<4xf32>
  %rest = memref.subview %m[4] [12] [1] : memref<16xf32> to memref<12xf32, strided<[1], offset: 4>>
  linalg.fill ins(%x : f32) outs(%rest : memref<12xf32, strided<[1], offset: 4>>)
  memref.store %x, %m[%c4] : memref<16xf32>
  %either = arith.select %which, %a, %b : memref<4xf32>
  memref.store %x, %either[%c0] : memref<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%t : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Canonicalization would read before the shape of the buffer.

func.func @negative_dim(%t: tensor<8x8xf32>, %m: memref<8x8xf32>) -> (index, index) {
  %n = arith.constant -1 : index
  // expected-error @below {{'tensor.dim' op expected the index of a dim to be at least 0, got -1}}
  %0 = tensor.dim %t, %n : tensor<8x8xf32>
  %1 = memref.dim %m, %n : memref<8x8xf32>
  return %0, %1 : index, index
}

// -----

func.func @poison(%a: tensor<?xf32>) -> tensor<?xf32> {
  %unused = ub.poison : tensor<4xf32>
  %number = ub.poison : f32
  // expected-error @below {{'ub.poison' op expected a tensor whose elements are defined, got poison of 'tensor<?xf32>'}}
  %0 = ub.poison : tensor<?xf32>
  %1 = arith.addf %a, %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}
