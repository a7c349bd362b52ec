//===- Passes.td - groups to loops and kernels ----------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_APPLY_PASSES_TD
#define BNGRAD_TRANSFORMS_APPLY_PASSES_TD

include "mlir/Pass/PassBase.td"

def BNGradApplySchedulePass
    : Pass<"bngrad-apply-schedule", "::mlir::func::FuncOp"> {
  let summary = "Turn scheduled linalg ops on buffers into loops";
  let description = [{
    Needs: `linalg.generic` ops on memrefs with the attribute `bngrad.schedule`.
    Gives: the loops of the schedule (see `#bngrad.schedule`), with the element's
           computation cloned from the generics' regions. Strided operands are
           tested for dense forms at run time; each form has its own loops. A
           sum adds short chains, and carries the rounding error of adding them
           (TwoSum), so its error does not grow with its length. The order of
           summation depends only on the shape and the schedule, not on the
           number of threads. The `scf.execute_region` of a group may be inlined
           from now on.
    Fails: if members of a group have different schedules; if a `chip` is
           unknown, lacks the clusters of `one_pass`, or has too little shared
           memory for its tiles; with `device-arguments`, if host code still
           accesses an argument. A generic that cannot be cloned is left to
           upstream's loops, and a group without vector loops gets scalar loops;
           a remark states the reason.

    Before:

    ```mlir
    #data = affine_map<(d0, d1) -> (d0, d1)>
    func.func @f(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
      linalg.generic {indexing_maps = [#data, #data],
                      iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>)
          attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
      ^bb0(%e: f32, %out: f32):
        %0 = arith.negf %e : f32
        linalg.yield %0 : f32
      }
      return
    }
    ```

    After:

    ```mlir
    func.func @f(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
        scf.for %j = %c0 to %c4 step %c1 {
          %0 = memref.load %a[%i, %j] : memref<8x4xf32>
          %1 = arith.negf %0 : f32
          memref.store %1, %b[%i, %j] : memref<8x4xf32>
        }
        scf.reduce
      }
      return
    }
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_90\"",
           "Target: NVIDIA GPUs, comma-separated, whose shared memory limits "
           "one_pass">,
    Option<"deviceArguments", "device-arguments", "bool", /*default=*/"false",
           "Arguments of functions are in device memory, where GPU kernels use "
           "them in place">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bngrad::BNGradDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def BNGradExpandCopiesPass
    : Pass<"bngrad-expand-copies", "::mlir::func::FuncOp"> {
  let summary = "Convert copies between strided buffers to linalg";
  let description = [{
    Needs: memrefs.
    Gives: a `memref.copy` with a buffer that is not contiguous becomes a
           `linalg.generic`; upstream would call its own runtime library. Other
           copies become memcpy later.
    Fails: never.

    Before:

    ```mlir
    func.func @f(%a: memref<2xf32, strided<[3]>>, %b: memref<2xf32>) {
      memref.copy %a, %b : memref<2xf32, strided<[3]>> to memref<2xf32>
      return
    }
    ```

    After:

    ```mlir
    #data = affine_map<(d0) -> (d0)>
    func.func @f(%a: memref<2xf32, strided<[3]>>, %b: memref<2xf32>) {
      linalg.generic {indexing_maps = [#data, #data],
                      iterator_types = ["parallel"]}
          ins(%a : memref<2xf32, strided<[3]>>) outs(%b : memref<2xf32>) {
      ^bb0(%e: f32, %out: f32):
        linalg.yield %e : f32
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def BNGradLinalgToLoopsPass
    : Pass<"bngrad-linalg-to-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower ops that have no schedule to loops";
  let description = [{
    Needs: linalg on memrefs.
    Gives: upstream's loops (`--convert-linalg-to-loops`). LLVM may unroll only
           the innermost loop of an op. Without the annotation, it would also
           unroll the loops around it, up to a thousand stores, and compile them
           in quadratic time.
    Fails: never; an op on tensors is unchanged.

    Before:

    ```mlir
    func.func @f(%value: f32, %a: memref<8x4xf32>) {
      linalg.fill ins(%value : f32) outs(%a : memref<8x4xf32>)
      return
    }
    ```

    After:

    ```mlir
    func.func @f(%value: f32, %a: memref<8x4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      scf.for %i = %c0 to %c8 step %c1 {
        scf.for %j = %c0 to %c4 step %c1 {
          memref.store %value, %a[%i, %j] : memref<8x4xf32>
        }
      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

#endif // BNGRAD_TRANSFORMS_APPLY_PASSES_TD
