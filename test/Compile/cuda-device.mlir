// Arrays in device memory: nothing is copied. The header states where they are.

// UNSUPPORTED: sanitizer

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %s -o %t/gradient.o --header=%t/gradient.h --target=cuda --device-arguments
// RUN: %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%bngrad_src_root/include \
// RUN:   %S/Inputs/use_device.c %t/gradient.o -L%bngrad_obj_root/lib -lBNGradCudaEmulator \
// RUN:   -Wl,-rpath,%bngrad_obj_root/lib -lm -o %t/use
// RUN: %t/use | FileCheck %s
// CHECK: launches without a stream of the caller: 0 failed
// CHECK: launches in a stream of the caller: 0 failed
// CHECK: a pointer of the host: status -1
// CHECK: afterwards: 0 failed
// RUN: %llvm_prefix/bin/llvm-nm --undefined-only %t/gradient.o | FileCheck %s --check-prefix=CALLS
// CALLS-NOT: mgpuMemcpy
// CALLS: mgpuModuleLoadJIT
// CALLS-NOT: mgpuMemcpy

// RUN: FileCheck %s --input-file=%t/gradient.h --check-prefix=HEADER
// RUN: bngrad-compile %s -o %t/host.o --header=%t/host.h --target=cuda
// RUN: FileCheck %s --input-file=%t/host.h --check-prefix=HOST
// RUN: %llvm_prefix/bin/clang++ -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c++ %t/gradient.h
// HEADER: Arrays are in memory of the GPU
// HEADER: (a CUresult, or -1)
// HEADER: bngradCudaSetStream
// HEADER-NOT: OpenMP
// HEADER: int32_t gradient(const float *grad_output, const float *input,
// HEADER: Unchecked entries
// HEADER: bngradCudaTakeStatus()
// HOST: Arrays are in memory of the host; they are copied to the GPU and back.

// Only the text of the kernels.
// RUN: bngrad-compile %s -o %t/gradient.ptx --target=cuda --chip=sm_80 --schedule='#bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>'
// RUN: FileCheck %s --input-file=%t/gradient.ptx --check-prefix=PTX
// PTX: .target sm_80
// PTX: .visible .entry
// RUN: %python -c "import sys; sys.exit(b'\0' in open(sys.argv[1], 'rb').read())" %t/gradient.ptx

!d = tensor<4x3x5xf32>
!c = tensor<3xf32>
func.func @gradient(%dy: !d, %x: !d, %scale: !c, %mean: !c, %variance: !c) -> (!d, !c, !c) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%scale : !c) mean(%mean : !c)
      variance(%variance : !c) {epsilon = 1.0e-3 : f64} : !d, !c, !c
  return %0#0, %0#1, %0#2 : !d, !c, !c
}
