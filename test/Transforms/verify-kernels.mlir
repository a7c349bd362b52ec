// RUN: bngrad-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(bngrad-verify-kernels))"

// 4096 bytes, including padding: no error.
gpu.module @fits [#nvvm.target<chip = "sm_90", features = "+ptx80">] {
  llvm.func @all(%a: i8, %b: i64, %c: !llvm.array<508 x i64>, %d: !llvm.ptr, %e: i16, %f: f32) attributes {nvvm.kernel} {
    llvm.return
  }
  // Called functions have no limit.
  llvm.func @called(%a: !llvm.array<5000 x i64>) {
    llvm.return
  }
}

// -----

gpu.module @module [#nvvm.target<chip = "sm_90", features = "+ptx81">,
                    #nvvm.target<chip = "sm_80", features = "+ptx80">] {
  // expected-error @below {{expected parameters of kernel @module::@kernel to take at most 4096 bytes on sm_80 (+ptx80), got 4097}}
  llvm.func @kernel(%a: i8, %b: !llvm.array<511 x i64>, %c: i8) attributes {nvvm.kernel} {
    llvm.return
  }
}

// -----

gpu.module @newer [#nvvm.target<chip = "sm_90", features = "+ptx81">] {
  llvm.func @fits(%a: !llvm.array<4095 x i64>, %b: i32) attributes {nvvm.kernel} {
    llvm.return
  }
  // expected-error @below {{expected parameters of kernel @newer::@kernel to take at most 32764 bytes on sm_90 (+ptx81), got 32768}}
  llvm.func @kernel(%a: !llvm.array<4096 x i64>) attributes {nvvm.kernel} {
    llvm.return
  }
}

// -----

// Without a target, nothing is compiled.
gpu.module @none {
  llvm.func @kernel(%a: !llvm.array<5000 x i64>) attributes {nvvm.kernel} {
    llvm.return
  }
}
