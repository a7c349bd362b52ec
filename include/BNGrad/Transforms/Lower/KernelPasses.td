//===- KernelPasses.td - passes that lower kernels to PTX -- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_LOWER_KERNELPASSES_TD
#define BNGRAD_TRANSFORMS_LOWER_KERNELPASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradAttachChipsPass
    : Pass<"bngrad-attach-chips", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Attach the GPUs for which kernels are compiled";
  let description = [{
    Needs: kernels.
    Gives: an `#nvvm.target` for each chip and, if there are several, the handler
           `#bngrad.select_by_device`.
    Fails: if a chip is unknown or too old, or does not support `features`.

    Before:

    ```mlir
    gpu.module @kernels {
    }
    ```

    After (`chip=sm_80,sm_90`):

    ```mlir
    gpu.module @kernels <#bngrad.select_by_device> [
        #nvvm.target<chip = "sm_80", features = "+ptx80", O = 3>,
        #nvvm.target<chip = "sm_90", features = "+ptx80", O = 3>] {
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_90\"",
           "GPUs, comma-separated">,
    Option<"features", "features", "std::string", /*default=*/"\"\"",
           "Version of PTX for all chips, such as +ptx80; empty: ptx80, or the "
           "first version that supports the chip">,
    Option<"optLevel", "opt-level", "unsigned", /*default=*/"3",
           "Optimization, 0 to 3">
  ];
  let dependentDialects = [
    "::mlir::bngrad::BNGradDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def BNGradBoundRegistersPass
    : Pass<"bngrad-bound-registers", "::mlir::ModuleOp"> {
  let summary = "Bound the registers of kernels by their resident blocks";
  let description = [{
    Needs: kernels that are launched, with the chips for which they are compiled.
    Gives: kernels with `nvvm.minctasm`, the number of blocks that share a
           multiprocessor. `ptxas` then bounds the registers per thread by this
           number instead of a guess that may cause spills. The number is computed
           from the size of the grid and from the shared memory of a block, which
           must be known and partly dynamic. It is set only if it leaves each
           thread 128 registers. With several chips, the largest number is taken;
           with several launches, the smallest. Kernels that already have the
           attribute keep it.
    Fails: never.

    Before:

    ```mlir
    module attributes {gpu.container_module} {
      func.func @g() {
        %c1 = arith.constant 1 : index
        %c128 = arith.constant 128 : index
        %c512 = arith.constant 512 : index
        %bytes = arith.constant 100352 : i32
        gpu.launch_func @kernels::@f blocks in (%c128, %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %bytes
        return
      }
      gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
        gpu.func @f() kernel {
          gpu.return
        }
      }
    }
    ```

    After:

    ```mlir
    module attributes {gpu.container_module} {
      func.func @g() {
        %c1 = arith.constant 1 : index
        %c128 = arith.constant 128 : index
        %c512 = arith.constant 512 : index
        %bytes = arith.constant 100352 : i32
        gpu.launch_func @kernels::@f blocks in (%c128, %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %bytes
        return
      }
      gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
        gpu.func @f() kernel attributes {nvvm.minctasm = 1 : i32} {
          gpu.return
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect"];
}

def BNGradRequireClustersPass
    : Pass<"bngrad-require-clusters", "::mlir::ModuleOp"> {
  let summary = "Declare the cluster size of kernels";
  let description = [{
    Needs: kernels that are launched.
    Gives: kernels with a known cluster size, if all their launches have the same
           constant cluster size. PTX then requires this size at each launch, so
           the code that `ptxas` generates need not test at run time whether the
           kernel was launched with clusters. Kernels that already have a size
           keep it.
    Fails: never.

    Before:

    ```mlir
    module attributes {gpu.container_module} {
      func.func @g() {
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %c512 = arith.constant 512 : index
        gpu.launch_func @kernels::@f clusters in (%c8, %c1, %c1) blocks in (%c512, %c1, %c1) threads in (%c512, %c1, %c1)
        return
      }
      gpu.module @kernels {
        gpu.func @f() kernel {
          gpu.return
        }
      }
    }
    ```

    After:

    ```mlir
    module attributes {gpu.container_module} {
      func.func @g() {
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %c512 = arith.constant 512 : index
        gpu.launch_func @kernels::@f clusters in (%c8, %c1, %c1) blocks in (%c512, %c1, %c1) threads in (%c512, %c1, %c1)
        return
      }
      gpu.module @kernels {
        gpu.func @f() kernel attributes {known_cluster_size = array<i32: 8, 1, 1>} {
          gpu.return
        }
      }
    }
    ```
  }];
}

def BNGradOverlapLaunchesPass
    : Pass<"bngrad-overlap-launches", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Let a kernel start before the preceding kernel has ended";
  let description = [{
    Needs: kernels, with the chips for which they are compiled.
    Gives: kernels that wait for the preceding kernel of their stream before they
           access global memory. They can therefore be launched, and set up shared
           memory, while that kernel still runs. A symbol of the module tells the
           runtime library to launch them this way. Nothing changes if a chip is
           older than sm_90.
    Fails: never.

    Before:

    ```mlir
    gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
      gpu.func @f() kernel {
        gpu.return
      }
    }
    ```

    After:

    ```mlir
    gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
      llvm.mlir.global external @bngrad_kernels_wait(1 : i8) {addr_space = 1 : i32, alignment = 1 : i64} : i8
      gpu.func @f() kernel {
        nvvm.griddepcontrol wait
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def BNGradLayOutSharedMemoryPass
    : Pass<"bngrad-lay-out-shared-memory", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Align shared memory, and make dynamic shared memory external";
  let description = [{
    Needs: kernels in the LLVM dialect.
    Gives: shared memory that is aligned to 16 bytes, as vector accesses require,
           and dynamic shared memory with external linkage. With internal linkage,
           dynamic shared memory would be a static variable of size 0.
    Fails: never.

    Before:

    ```mlir
    gpu.module @kernels {
      llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32} : !llvm.array<0 x i8>
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def BNGradLowerStreamingStoresPass
    : Pass<"bngrad-lower-streaming-stores", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower nontemporal stores to PTX stores with evict-first policy";
  let description = [{
    Needs: kernels in the LLVM dialect, before NVVM is lowered.
    Gives: nontemporal stores of vectors become inline PTX with the cache operator
           `.cs`, which LLVM does not emit. The vectors must consist of whole
           words, and the address must be known to be in global memory, either
           from its type or because it is derived from an argument of the kernel.
           Other stores are unchanged.
    Fails: never.

    Before:

    ```mlir
    gpu.module @kernels {
      llvm.func @f(%v: vector<2xf32>, %p: !llvm.ptr<1>) {
        llvm.store %v, %p {alignment = 8 : i64, nontemporal} : vector<2xf32>, !llvm.ptr<1>
        llvm.return
      }
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      llvm.func @f(%v: vector<2xf32>, %p: !llvm.ptr<1>) {
        %c1 = llvm.mlir.constant(1 : i32) : i32
        %c0 = llvm.mlir.constant(0 : i32) : i32
        %words = llvm.bitcast %v : vector<2xf32> to vector<2xi32>
        %0 = llvm.extractelement %words[%c0 : i32] : vector<2xi32>
        %1 = llvm.extractelement %words[%c1 : i32] : vector<2xi32>
        nvvm.inline_ptx "st.global.cs.v2.b32 [$0], {$1, $2};" ro(%p, %0, %1 : !llvm.ptr<1>, i32, i32)
        llvm.return
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"
  ];
}

def BNGradLowerKernelMathPass
    : Pass<"bngrad-lower-kernel-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower math in kernels to correctly rounded instructions";
  let description = [{
    Needs: kernels.
    Gives: square roots, and other functions for which PTX has correctly rounded
           instructions, become LLVM intrinsics. Upstream's conversion would call
           libdevice, whose functions round differently and require the CUDA
           toolkit; all other functions are left to that conversion. Vectors of
           bf16 are widened to f32 in pairs, with one instruction per element.
    Fails: if a function needs libdevice and libdevice is not found.

    Before:

    ```mlir
    gpu.module @kernels {
      func.func @f(%x: f32) -> f32 {
        %0 = math.sqrt %x : f32
        return %0 : f32
      }
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      func.func @f(%x: f32) -> f32 {
        %0 = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
        return %0 : f32
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def BNGradVerifyKernelsPass
    : Pass<"bngrad-verify-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Reject kernels that PTX cannot express";
  let description = [{
    Needs: kernels in the LLVM dialect, and their `#nvvm.target`.
    Gives: the same IR.
    Fails: if the parameters of a kernel take more than 4096 bytes, or 32764
           bytes with PTX 8.1 or later (error at the kernel).
  }];
}

#endif // BNGRAD_TRANSFORMS_LOWER_KERNELPASSES_TD
