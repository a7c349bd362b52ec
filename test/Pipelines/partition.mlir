// An annotated program in the pipelines: the calls of the runtime are the same
// for all targets, and a status that is not 0 ends the function.

// RUN: bngrad-opt %s --bngrad-to-linalg | FileCheck %s --check-prefix=LINALG
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=group | FileCheck %s --check-prefix=GROUP
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=stop-after=apply | FileCheck %s --check-prefix=CPU
// RUN: bngrad-opt %s --bngrad-cpu-pipeline=export-c | FileCheck %s --check-prefix=LLVM
// RUN: bngrad-opt %s --bngrad-cpu-pipeline | FileCheck %s --check-prefix=ABORT
// RUN: bngrad-opt %s --bngrad-cuda-pipeline=stop-after=apply | FileCheck %s --check-prefix=CUDA
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="stop-after=apply device-arguments=true" | FileCheck %s --check-prefix=DEVICE
// RUN: bngrad-opt %s --bngrad-cuda-pipeline="export-c device-arguments=true" | FileCheck %s --check-prefix=LLVM
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="stop-after=apply" --dump-pass-pipeline 2>&1 >/dev/null | FileCheck %s --check-prefix=DUMP
// RUN: bngrad-opt %s --bngrad-to-linalg --convert-shard-to-mpi | FileCheck %s --check-prefix=MPI

// LINALG-LABEL: func.func @gradient(
// LINALG: linalg.generic
// LINALG: shard.all_reduce
// LINALG: shard.all_reduce
// LINALG: linalg.generic

// GROUP: scf.execute_region
// GROUP: shard.all_reduce
// GROUP: shard.all_reduce
// GROUP: scf.execute_region

// CPU-LABEL: func.func @gradient(
// CPU-SAME: memref<?x3x5xf32> {bngrad.split_axes
// CPU: scf.for
// CPU: %[[R0:.+]] = call @bngradAllReduceStart
// CPU: %[[R1:.+]] = call @bngradAllReduceStart
// CPU: call @bngradAllReduceWait(%[[R0]])
// CPU: call @bngradAllReduceWait(%[[R1]])
// CPU: call @bngrad_collective_status
// CPU: scf.for

// LLVM: llvm.mlir.global internal constant @bngrad_collective_op
// LLVM-NOT: shard.
// LLVM: llvm.call @bngradAllReduceStart
// LLVM: llvm.call @bngradAllReduceStart
// LLVM: llvm.call @bngradAllReduceWait
// LLVM: llvm.call @bngradAllReduceWait
// LLVM: %[[STATUS:.+]] = llvm.call @bngrad_collective_status.impl
// LLVM-NEXT: %[[FAILED:.+]] = llvm.icmp "ne" %[[STATUS]], %{{.+}} : i32
// LLVM-NEXT: llvm.cond_br %[[FAILED]], ^[[END:.+]](%[[STATUS]] : i32), ^{{.+}}
// LLVM: ^[[END]](%[[RETURNED:.+]]: i32):
// LLVM: llvm.return %[[RETURNED]] : i32

// ABORT: llvm.call @bngrad_collective_status
// ABORT: llvm.call @abort

// The sums come to the host, and go back after the wait.

// CUDA-LABEL: func.func @gradient(
// CUDA: gpu.launch
// CUDA: gpu.memcpy
// CUDA: gpu.wait [
// CUDA: call @bngradAllReduceStart
// CUDA: call @bngradAllReduceWait
// CUDA: call @bngrad_collective_status
// CUDA: gpu.memcpy
// CUDA: gpu.launch

// grad_scale and grad_offset are results of a kernel, too.

// DEVICE-LABEL: func.func @gradient(
// DEVICE: call @bngradAllReduceWait
// DEVICE-NOT: linalg.generic
// DEVICE: gpu.launch
// DEVICE: gpu.launch
// DEVICE-NOT: linalg.generic
// DEVICE: return

// DUMP: bngrad-partition,
// DUMP: bngrad-combine-collectives
// DUMP: bngrad-decompose
// DUMP: bngrad-group{
// DUMP: bngrad-collectives-to-runtime,
// DUMP-NEXT: func.func(
// DUMP-NEXT: bngrad-prepare-bufferize

// MPI-LABEL: func.func @gradient(
// MPI: mpi.allreduce
// MPI-NOT: shard.all_reduce

shard.grid @grid(shape = 2) {sym_visibility = "private"}
func.func @gradient(%dy: tensor<?x3x5xf32>, %x: tensor<?x3x5xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>,
                    %var: tensor<3xf32>) -> (tensor<?x3x5xf32>, tensor<3xf32>, tensor<3xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3x5xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3x5xf32>) input(%xs : tensor<?x3x5xf32>)
      scale(%scale : tensor<3xf32>) mean(%mean : tensor<3xf32>) variance(%var : tensor<3xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<?x3x5xf32>, tensor<3xf32>, tensor<3xf32>
  return %0#0, %0#1, %0#2 : tensor<?x3x5xf32>, tensor<3xf32>, tensor<3xf32>
}
