// The same C program, with no code for GPUs, calls functions compiled for one: here the emulator, which exports the
// functions of libBNGradCudaRuntime.

// UNSUPPORTED: sanitizer

// DEFINE: %{source} = %S/Inputs/gradients.mlir
// DEFINE: %{cc} = %llvm_prefix/bin/clang -std=c11 -Wall -Wextra -pedantic -Werror -O1 -I%t
// DEFINE: %{emulator} = -L%bngrad_obj_root/lib -lBNGradCudaEmulator -Wl,-rpath,%bngrad_obj_root/lib -lm

// RUN: rm -rf %t && mkdir %t
// RUN: bngrad-compile %{source} -o %t/gradients.o --header=%t/gradients.h --target=cuda
// RUN: %{cc} %S/Inputs/check.c %t/gradients.o %{emulator} -o %t/linked
// RUN: %t/linked | FileCheck %s
// CHECK: {{^}}0 failed{{$}}

// A shared object uses the emulator if it is already loaded; clang compiles the kernels and host code of LLVM IR.
// RUN: bngrad-compile %{source} -o %t/gradients.so --target=cuda --chip=sm_80
// RUN: %{cc} -DBNGRAD_DLOPEN %S/Inputs/check.c -Wl,--no-as-needed %{emulator} -o %t/loading
// RUN: %t/loading %t/gradients.so first | FileCheck %s
// RUN: sed -e '/^!b/,$d' %{source} > %t/first.mlir
// RUN: env LD_PRELOAD=%bngrad_obj_root/lib/libBNGradCudaEmulator.so %t/loading %t/gradients.so first | FileCheck %s
// RUN: bngrad-compile %t/first.mlir -o %t/first.ll --target=cuda
// RUN: %llvm_prefix/bin/clang -shared -fPIC -O0 -Wno-override-module %t/first.ll -o %t/first.so -lm
// RUN: %t/loading %t/first.so first | FileCheck %s

// It needs the runtime and libc, finds the runtime in its own folder or in the build, and needs no MLIR or LLVM.
// RUN: %llvm_prefix/bin/llvm-readelf --needed-libs --dynamic-table %t/gradients.so | FileCheck %s --check-prefix=NEEDED -DSO=%bngrad_soversion
// RUN: ldd %t/gradients.so | FileCheck %s --check-prefix=LDD -DSO=%bngrad_soversion
// RUN: cp %bngrad_obj_root/lib/libBNGradCudaRuntime.so.%bngrad_soversion %t
// RUN: ldd %t/gradients.so | FileCheck %s --check-prefix=BESIDE -DFOLDER=%t -DSO=%bngrad_soversion
// NEEDED: (RUNPATH) {{.*}}[$ORIGIN:{{/.*}}]
// NEEDED: NeededLibraries [
// NEEDED-NEXT: libBNGradCudaRuntime.so.[[SO]]
// NEEDED-NEXT: libc.so
// NEEDED-NEXT: libm.so
// NEEDED-NEXT: ]
// LDD-NOT: {{MLIR|LLVM|mlir|libomp|not found}}
// LDD: libBNGradCudaRuntime.so.[[SO]] => {{/.*}}
// LDD-NOT: {{MLIR|LLVM|mlir|libomp|not found}}
// BESIDE: libBNGradCudaRuntime.so.[[SO]] => [[FOLDER]]/libBNGradCudaRuntime.so.[[SO]]

// With several chips, the one of the device is used; the other texts are not even valid PTX here.
// RUN: bngrad-compile %t/first.mlir -o %t/several.so --target=cuda --chip=sm_80,sm_90,sm_100
// RUN: env PTX_EMULATOR_CHIP=sm_80 %t/loading %t/several.so first | FileCheck %s
// RUN: env PTX_EMULATOR_CHIP=sm_90 %t/loading %t/several.so first | FileCheck %s
// RUN: sed -e '/^\.version/{N;s/^\.version\(.*sm_80\)/.wersion\1/;s/^\.version\(.*sm_100\)/.wersion\1/;}' %t/several.so > %t/broken.so
// RUN: env PTX_EMULATOR_CHIP=sm_90 %t/loading %t/broken.so first | FileCheck %s
// RUN: env PTX_EMULATOR_CHIP=sm_89 not %t/loading %t/broken.so first 2>&1 | FileCheck %s --check-prefix=BROKEN
// BROKEN: ptx-emulator: error: {{.*}}wersion
// RUN: bngrad-compile %t/first.mlir -o %t/several.ll --target=cuda --chip=sm_80,sm_90
// RUN: FileCheck %s --input-file=%t/several.ll --check-prefix=SEVERAL
// SEVERAL: @llvm.global_ctors = {{.*}}@nchw_{{.*}}_load
// SEVERAL: call {{.*}}@bngradCudaModuleLoad(ptr {{.*}}@nchw_{{.*}}_images, i64 2)
// The first launch of a module loads all its kernels.
// SEVERAL: call {{.*}}@mgpuModuleGetFunction(ptr {{.*}}@nchw_{{.*}}_kernel{{[^_]*$}}
// SEVERAL: call {{.*}}@mgpuModuleGetFunction(ptr {{.*}}@nchw_{{.*}}_kernel{{[^_]*$}}

// The program detects a wrong computation and a missing GPU.
// RUN: sed -e 's/1.0e-3 : f64}/1.0e-2 : f64}/' %t/first.mlir > %t/wrong.mlir
// RUN: bngrad-compile %t/wrong.mlir -o %t/wrong.so --target=cuda
// RUN: not %t/loading %t/wrong.so first | FileCheck %s --check-prefix=WRONG
// WRONG: FAILED: nchw grad_input: expected {{.*}}, got
// RUN: %{cc} -DBNGRAD_DLOPEN %S/Inputs/check.c -lm -o %t/plain
// RUN: env BNGRAD_CUDA_DRIVER=%t/none.so not %t/plain %t/gradients.so 2>&1 | FileCheck %s --check-prefix=NONE
// NONE-DAG: bngrad: error: cannot load {{.*}}none.so: {{.*}}; expected an NVIDIA driver
// NONE-DAG: FAILED: nchw returns 0
