// RUN: bngrad-opt %s --bngrad-lower-allocations --split-input-file --verify-diagnostics

func.func @region(%n: index) {
  omp.parallel {
    // expected-error @below {{'memref.alloc' op expected in a function or in a loop, as memory is allocated here, got in 'omp.parallel'}}
    %0 = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %0 : memref<?xf32>
    omp.terminator
  }
  return
}

// -----

// expected-error @below {{expected no symbol called 'malloc', which allocates or frees memory, got 'func.func'}}
func.func private @malloc(%n: index) {
  return
}
func.func @f(%n: index) {
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}

// -----

// expected-error @below {{expected no symbol called 'abort', which ends the process, got 'func.func'}}
func.func private @abort(%n: index) {
  return
}
func.func @f(%n: index) {
  %0 = memref.alloc(%n) : memref<?xf32>
  memref.dealloc %0 : memref<?xf32>
  return
}
