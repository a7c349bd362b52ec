// RUN: env CUDA_ROOT=%t bngrad-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(bngrad-lower-kernel-math))" | FileCheck %s

// A function with a PTX instruction becomes an intrinsic. The reciprocal square root, of which PTX only has an
// approximation, becomes a root and a division.
// CHECK-LABEL: gpu.func @instructions(
// CHECK:         llvm.call_intrinsic "llvm.sqrt"(%{{.+}}) : (f32) -> f32
// CHECK:         %[[ROOT:.+]] = llvm.call_intrinsic "llvm.sqrt"(%{{.+}}) : (vector<4xf64>) -> vector<4xf64>
// CHECK:         %[[ONE:.+]] = arith.constant dense<1.000000e+00> : vector<4xf64>
// CHECK:         arith.divf %[[ONE]], %[[ROOT]] : vector<4xf64>
// CHECK:         llvm.call_intrinsic "llvm.fma"
// CHECK:         llvm.call_intrinsic "llvm.fabs"
// CHECK:         llvm.call_intrinsic "llvm.copysign"
// CHECK:         llvm.call_intrinsic "llvm.floor"
// CHECK:         llvm.call_intrinsic "llvm.ceil"
// CHECK:         llvm.call_intrinsic "llvm.trunc"
// CHECK:         llvm.call_intrinsic "llvm.roundeven"
// CHECK-NOT:     math.
gpu.module @kernels {
  gpu.func @instructions(%a: f32, %b: vector<4xf64>, %o: memref<7xf32>, %p: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sqrt = math.sqrt %a : f32
    memref.store %sqrt, %o[%c0] : memref<7xf32>
    %rsqrt = math.rsqrt %b : vector<4xf64>
    vector.store %rsqrt, %p[%c0] : memref<4xf64>, vector<4xf64>
    %fma = math.fma %a, %sqrt, %a : f32
    %abs = math.absf %fma : f32
    %copysign = math.copysign %abs, %a : f32
    %floor = math.floor %copysign : f32
    %ceil = math.ceil %floor : f32
    %trunc = math.trunc %ceil : f32
    %even = math.roundeven %trunc : f32
    memref.store %even, %o[%c1] : memref<7xf32>
    gpu.return
  }
}

// -----

// bf16 is computed in f32, with one rounding after each step; LLVM does the same for f16 if necessary.
// CHECK-LABEL: gpu.func @halves(
// CHECK-SAME:    %[[A:.+]]: f16, %[[B:.+]]: vector<4xbf16>,
// CHECK:         %[[ROOT:.+]] = llvm.call_intrinsic "llvm.sqrt"(%[[A]]) : (f16) -> f16
// CHECK:         %[[ONE:.+]] = arith.constant 1.000000e+00 : f16
// CHECK:         arith.divf %[[ONE]], %[[ROOT]] : f16
// CHECK:         %[[WORDS:.+]] = vector.bitcast %[[B]] : vector<4xbf16> to vector<2xi32>
// CHECK:         %[[WIDE:.+]] = arith.bitcast %{{.+}} : vector<4xi32> to vector<4xf32>
// CHECK:         %[[ROOTS:.+]] = llvm.call_intrinsic "llvm.sqrt"(%[[WIDE]]) : (vector<4xf32>) -> vector<4xf32>
// CHECK:         %[[NARROW:.+]] = arith.truncf %[[ROOTS]] : vector<4xf32> to vector<4xbf16>
// CHECK:         %[[ONES:.+]] = arith.constant dense<1.000000e+00> : vector<4xbf16>
// CHECK:         arith.divf %[[ONES]], %[[NARROW]] : vector<4xbf16>
// CHECK-COUNT-3: vector.bitcast
// CHECK:         llvm.call_intrinsic "llvm.fma"(%{{.+}}) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK:         arith.truncf
gpu.module @kernels {
  gpu.func @halves(%a: f16, %b: vector<4xbf16>, %o: memref<f16>, %p: memref<4xbf16>) kernel {
    %c0 = arith.constant 0 : index
    %scalar = math.rsqrt %a : f16
    memref.store %scalar, %o[] : memref<f16>
    %vector = math.rsqrt %b : vector<4xbf16>
    %fma = math.fma %vector, %b, %b : vector<4xbf16>
    vector.store %fma, %p[%c0] : memref<4xbf16>, vector<4xbf16>
    gpu.return
  }
}

// -----

// Nothing to do.
// CHECK-LABEL: gpu.func @none(
// CHECK-NEXT:    gpu.return
gpu.module @kernels {
  gpu.func @none() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @function(%a: f32, %o: memref<f32>) kernel {
    // expected-error @below {{expected libdevice of the CUDA toolkit at '}}
    %exp = math.exp %a : f32
    memref.store %exp, %o[] : memref<f32>
    gpu.return
  }
}

// -----

// bf16 are widened in words of two. An odd number, and other types, are left to LLVM.
// CHECK-LABEL: gpu.func @wide(
// CHECK-SAME:    %[[A:.+]]: vector<4xbf16>, %[[B:.+]]: vector<3xbf16>, %[[C:.+]]: vector<4xf16>,
// CHECK:         %[[WORDS:.+]] = vector.bitcast %[[A]] : vector<4xbf16> to vector<2xi32>
// CHECK:         %[[BITS:.+]] = arith.constant dense<16> : vector<2xi32>
// CHECK:         %[[LOWER:.+]] = arith.shli %[[WORDS]], %[[BITS]]
// CHECK:         %[[MASK:.+]] = arith.constant dense<-65536> : vector<2xi32>
// CHECK:         %[[UPPER:.+]] = arith.andi %[[WORDS]], %[[MASK]]
// CHECK:         %[[BOTH:.+]] = vector.interleave %[[LOWER]], %[[UPPER]] : vector<2xi32> -> vector<4xi32>
// CHECK:         %[[WIDE:.+]] = arith.bitcast %[[BOTH]] : vector<4xi32> to vector<4xf32>
// CHECK:         arith.extf %[[B]] : vector<3xbf16> to vector<3xf32>
// CHECK:         arith.extf %[[C]] : vector<4xf16> to vector<4xf32>
// CHECK:         arith.extf %[[A]] : vector<4xbf16> to vector<4xf64>
// CHECK:         vector.store %[[WIDE]]
gpu.module @kernels {
  gpu.func @wide(%a: vector<4xbf16>, %b: vector<3xbf16>, %c: vector<4xf16>, %o: memref<4xf32>, %p: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.extf %a : vector<4xbf16> to vector<4xf32>
    %1 = arith.extf %b : vector<3xbf16> to vector<3xf32>
    %2 = arith.extf %c : vector<4xf16> to vector<4xf32>
    %3 = arith.extf %a : vector<4xbf16> to vector<4xf64>
    vector.store %0, %o[%c0] : memref<4xf32>, vector<4xf32>
    vector.store %1, %o[%c0] : memref<4xf32>, vector<3xf32>
    vector.store %2, %o[%c0] : memref<4xf32>, vector<4xf32>
    vector.store %3, %p[%c0] : memref<4xf64>, vector<4xf64>
    gpu.return
  }
}
