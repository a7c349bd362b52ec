// Exported and required symbols of the outputs.

// DEFINE: %{nm} = %llvm_prefix/bin/llvm-nm --format=just-symbols
// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/a.so
// RUN: %{nm} -D --defined-only %t/a.so | sort | FileCheck %s --check-prefix=EXPORTED --match-full-lines
// RUN: bngrad-compile %s -o %t/a.o
// RUN: %{nm} --defined-only --extern-only %t/a.o | sort | FileCheck %s --check-prefix=EXPORTED --match-full-lines
// EXPORTED: _mlir_ciface_calling
// EXPORTED-NEXT: _mlir_ciface_dynamic
// EXPORTED-NEXT: _mlir_ciface_gradient
// EXPORTED-NEXT: calling
// EXPORTED-NEXT: calling_checked
// EXPORTED-NEXT: calling_diagnose
// EXPORTED-NEXT: calling_workspace
// EXPORTED-NEXT: dynamic_checked
// EXPORTED-NEXT: dynamic_diagnose
// EXPORTED-NEXT: dynamic_workspace
// EXPORTED-NEXT: gradient
// EXPORTED-NEXT: gradient_checked
// EXPORTED-NEXT: gradient_diagnose
// EXPORTED-NEXT: gradient_workspace
// EXPORTED-NOT: {{.+}}

// The C libraries alone: OpenMP is loaded when threads are needed.
// RUN: %llvm_prefix/bin/llvm-readelf --needed-libs %t/a.so | FileCheck %s --check-prefix=NEEDED
// RUN: ldd %t/a.so | FileCheck %s --check-prefix=LDD
// NEEDED: NeededLibraries [
// NEEDED-NEXT: libc.so
// NEEDED-NEXT: libm.so
// NEEDED-NEXT: ]
// LDD-NOT: {{MLIR|LLVM|mlir|omp|libgcc|not found}}

// RUN: %{nm} --undefined-only %t/a.o | not grep -vE '^(dlopen|dlsym|expf|free|getenv|madvise|malloc|memcpy|memset|mmap|munmap|snprintf)$'
// Only memory that a call returns is allocated, here by @exp.
// RUN: bngrad-compile %s -o %t/gradients.o --entry=gradient --entry=dynamic
// RUN: %{nm} --undefined-only %t/gradients.o | FileCheck %s --check-prefix=UNDEFINED
// UNDEFINED-NOT: {{alloc|free|omp|kmp}}
// UNDEFINED: mmap
// UNDEFINED-NOT: {{alloc|free|omp|kmp}}
// A static shape needs no memory but its frame.
// RUN: bngrad-compile %s -o %t/gradient.o --entry=gradient
// RUN: %{nm} --undefined-only %t/gradient.o | not grep -vE '^(dlopen|dlsym|getenv|memset|snprintf)$'

// The name in DT_NEEDED of programs that link it.
// RUN: %llvm_prefix/bin/llvm-readelf -d %t/a.so | FileCheck %s --check-prefix=SONAME
// SONAME: SONAME{{.*}}[a.so]

!d = tensor<8x4x600xf32>
!c = tensor<4xf32>
func.func @gradient(%dy: !d, %x: !d, %mean: !c, %variance: !c) -> !d {
  %0 = call @malloc(%dy) : (!d) -> !d
  %1:3 = bngrad.batch_norm_backward grad_output(%0 : !d) input(%x : !d) mean(%mean : !c) variance(%variance : !c)
      : !d, !c, !c
  return %1#0 : !d
}

!u = tensor<?x?xf32>
!v = tensor<?xf32>
func.func @dynamic(%dy: !u, %x: !u, %mean: !v, %variance: !v) -> !u {
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !u) input(%x : !u) mean(%mean : !v) variance(%variance : !v)
      {feature_dims = array<i64: 1>} : !u, !v, !v
  return %1#0 : !u
}

// Private functions may have any name.
func.func private @malloc(%a: !d) -> !d {
  %0 = arith.addf %a, %a : !d
  return %0 : !d
}
// Not inlined, as the region may have only one block.
func.func @calling(%flag: i1, %a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = scf.if %flag -> tensor<2xf32> {
    %1 = func.call @exp(%flag, %a) : (i1, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    scf.yield %a : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
func.func private @exp(%flag: i1, %a: tensor<2xf32>) -> tensor<2xf32> {
  cf.cond_br %flag, ^exp, ^return(%a : tensor<2xf32>)
^exp:
  %0 = math.exp %a : tensor<2xf32>
  cf.br ^return(%0 : tensor<2xf32>)
^return(%1: tensor<2xf32>):
  return %1 : tensor<2xf32>
}
