// RUN: bngrad-opt %s --bngrad-lower-allocations --split-input-file --verify-diagnostics

func.func @region(%n: index) {
  memref.alloca_scope {
    // expected-error @below {{'memref.alloc' op expected parent op to be a function or bngrad.parallel, because memory may run out here, got 'memref.alloca_scope'}}
    %0 = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %0 : memref<?xf32>
  }
  return
}

// -----

// expected-error @below {{expected no symbol called 'malloc', the name of a function needed to allocate or free memory, got 'func.func'}}
func.func private @malloc(%n: index) {
  return
}
func.func @f(%n: index) {
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}

// -----

// expected-error @below {{expected no symbol called 'abort', the name of a function needed to end the process, got 'func.func'}}
func.func private @abort(%n: index) {
  return
}
func.func @f(%n: index) {
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}

// -----

func.func @element_without_llvm_type(%n: index) {
  // expected-error @below {{'memref.alloc' op expected element type to have an LLVM type, got 'tf32'}}
  %0 = memref.alloc(%n) : memref<?xtf32>
  memref.dealloc %0 : memref<?xtf32>
  return
}
