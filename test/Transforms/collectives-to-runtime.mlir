// RUN: bngrad-opt %s --split-input-file --bngrad-collectives-to-runtime | FileCheck %s --enable-var-scope

// Without collectives only grids go, which nothing lowers.

// CHECK-LABEL: module
// CHECK-NOT: shard.grid
// CHECK: func.func @nothing(
// CHECK-NEXT: tosa.abs
// CHECK-NEXT: return
shard.grid @grid(shape = 2)
func.func @nothing(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The constant of the collective; a copy of the operand is summed; independent
// work is between start and wait, and the status comes before any use.

// CHECK-LABEL: module
// CHECK-NOT: shard.
// CHECK-DAG: func.func private @bngrad_collective_status(%[[STATUS:.+]]: i32) -> i32 attributes {bngrad.returns_status}
// CHECK-DAG: func.func private @bngradAllReduceStart(!llvm.ptr, !llvm.ptr, i64) -> i64
// CHECK-DAG: func.func private @bngradAllReduceWait(i64) -> i32
// CHECK-DAG: llvm.mlir.global internal constant @[[TEXT:.+]]("sums of it\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[PLACE:.+]]("model.mlir:12:8\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[GRID:.+]](dense<[2, 3, 4]> : tensor<3xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @[[AXES:.+]](dense<[0, 2]> : tensor<2xi64>)
// CHECK: llvm.mlir.global internal constant @[[COLLECTIVE:bngrad_collective]]() {addr_space = 0 : i32} : !llvm.struct<(i64, ptr, ptr, i64, i64, ptr, i64, ptr)>
// CHECK: %[[SIZE:.+]] = llvm.mlir.constant(64 : i64) : i64
// CHECK: %[[TEXT_P:.+]] = llvm.mlir.addressof @[[TEXT]]
// CHECK: %[[PLACE_P:.+]] = llvm.mlir.addressof @[[PLACE]]
// CHECK: %[[DTYPE:.+]] = llvm.mlir.constant(0 : i64) : i64
// CHECK: %[[RANK:.+]] = llvm.mlir.constant(3 : i64) : i64
// CHECK: %[[GRID_P:.+]] = llvm.mlir.addressof @[[GRID]]
// CHECK: %[[NUM_AXES:.+]] = llvm.mlir.constant(2 : i64) : i64
// CHECK: %[[AXES_P:.+]] = llvm.mlir.addressof @[[AXES]]
// CHECK: llvm.insertvalue %[[SIZE]], %{{.+}}[0]
// CHECK: llvm.insertvalue %[[TEXT_P]], %{{.+}}[1]
// CHECK: llvm.insertvalue %[[PLACE_P]], %{{.+}}[2]
// CHECK: llvm.insertvalue %[[DTYPE]], %{{.+}}[3]
// CHECK: llvm.insertvalue %[[RANK]], %{{.+}}[4]
// CHECK: llvm.insertvalue %[[GRID_P]], %{{.+}}[5]
// CHECK: llvm.insertvalue %[[NUM_AXES]], %{{.+}}[6]
// CHECK: llvm.insertvalue %[[AXES_P]], %{{.+}}[7]
// CHECK: func.func @overlap(
// CHECK-SAME: %[[A:[^:]+]]: tensor<2x3xf32>, %[[B:[^:]+]]: tensor<2x3xf32>
// CHECK: %[[OPERAND:.+]] = tosa.exp %[[A]]
// CHECK-NEXT: %[[COPY:.+]] = bufferization.alloc_tensor() copy(%[[OPERAND]]) : tensor<2x3xf32>
// CHECK-NEXT: %[[BUFFER:.+]] = bufferization.to_buffer %[[COPY]] : tensor<2x3xf32> to memref<2x3xf32>
// CHECK-NEXT: %[[INDEX:.+]] = memref.extract_aligned_pointer_as_index %[[BUFFER]]
// CHECK-NEXT: %[[ADDRESS:.+]] = arith.index_cast %[[INDEX]] : index to i64
// CHECK-NEXT: %[[DATA:.+]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[N:.+]] = arith.constant 6 : i64
// CHECK-NEXT: %[[C:.+]] = llvm.mlir.addressof @[[COLLECTIVE]]
// CHECK-NEXT: %[[REQUEST:.+]] = call @bngradAllReduceStart(%[[C]], %[[DATA]], %[[N]])
// CHECK-NEXT: %[[WORK:.+]] = tosa.abs %[[B]]
// CHECK-NEXT: %[[WAIT:.+]] = call @bngradAllReduceWait(%[[REQUEST]])
// CHECK-NEXT: call @bngrad_collective_status(%[[WAIT]])
// CHECK-NEXT: %[[SUM:.+]] = bufferization.to_tensor %[[BUFFER]] restrict writable
// CHECK-NEXT: %[[USE:.+]] = tosa.add %[[SUM]], %[[B]]
// CHECK-NEXT: return %[[USE]], %[[WORK]]
shard.grid @grid(shape = 2x3x4)
func.func @overlap(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %e = tosa.exp %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = shard.all_reduce %e on @grid grid_axes = [2, 0] {bngrad.collective = "sums of it"} : tensor<2x3xf32> -> tensor<2x3xf32> loc("model.mlir":12:8)
  %1 = tosa.add %0, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tosa.abs %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Sums and a count of dynamic size start together; both have ended when a
// status is looked at, and the first error counts.

// CHECK-LABEL: func.func @together(
// CHECK-SAME: %[[SUMS:[^:]+]]: tensor<2x?x?xf64>, %[[COUNT:[^:]+]]: tensor<i64>
// CHECK: bufferization.alloc_tensor() copy(%[[SUMS]])
// CHECK: %[[D1:.+]] = tensor.dim %[[SUMS]], %c1
// CHECK: %[[N1:.+]] = arith.index_cast %[[D1]]
// CHECK: %[[D2:.+]] = tensor.dim %[[SUMS]], %c2
// CHECK: %[[N2:.+]] = arith.index_cast %[[D2]]
// CHECK: %[[PRODUCT:.+]] = arith.muli %[[N1]], %[[N2]] : i64
// CHECK: %[[TWO:.+]] = arith.constant 2 : i64
// CHECK: %[[N:.+]] = arith.muli %[[PRODUCT]], %[[TWO]] : i64
// CHECK: %[[R0:.+]] = call @bngradAllReduceStart(%{{.+}}, %{{.+}}, %[[N]])
// CHECK: %[[ONE:.+]] = arith.constant 1 : i64
// CHECK: %[[R1:.+]] = call @bngradAllReduceStart(%{{.+}}, %{{.+}}, %[[ONE]])
// CHECK: %[[S0:.+]] = call @bngradAllReduceWait(%[[R0]])
// CHECK: %[[S1:.+]] = call @bngradAllReduceWait(%[[R1]])
// CHECK: %[[IS_SUCCESS:.+]] = arith.cmpi eq, %[[S0]]
// CHECK: %[[STATUS:.+]] = arith.select %[[IS_SUCCESS]], %[[S1]], %[[S0]]
// CHECK: call @bngrad_collective_status(%[[STATUS]])
// CHECK: %[[ALL:.+]] = bufferization.to_tensor
// CHECK: %[[ALL_COUNT:.+]] = bufferization.to_tensor
// CHECK: return %[[ALL]], %[[ALL_COUNT]]
shard.grid @grid(shape = 2)
func.func @together(%sums: tensor<2x?x?xf64>, %count: tensor<i64>) -> (tensor<2x?x?xf64>, tensor<i64>) {
  %0 = shard.all_reduce %sums on @grid grid_axes = [0] : tensor<2x?x?xf64> -> tensor<2x?x?xf64>
  %1 = shard.all_reduce %count on @grid grid_axes = [0] : tensor<i64> -> tensor<i64>
  return %0, %1 : tensor<2x?x?xf64>, tensor<i64>
}

// -----

// One that needs the sum of another starts after the wait. Without a list of
// axes all are reduced; without a text, it is that of the op; without a
// location, none.

// CHECK-LABEL: module
// CHECK-DAG: ("shard.all_reduce tensor<4xf32>\00")
// CHECK-DAG: llvm.mlir.global internal constant @{{.+}}("\00")
// CHECK-DAG: (dense<[0, 1]> : tensor<2xi64>)
// CHECK: func.func @chain(
// CHECK: call @bngradAllReduceStart
// CHECK: call @bngradAllReduceWait
// CHECK: call @bngrad_collective_status
// CHECK: call @bngradAllReduceStart
// CHECK: call @bngradAllReduceWait
// CHECK: call @bngrad_collective_status
// CHECK-NOT: bngradAllReduce
// CHECK: return
shard.grid @grid(shape = 2x2)
func.func @chain(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %a on @grid : tensor<4xf32> -> tensor<4xf32> loc(unknown)
  %1 = shard.all_reduce %0 on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %unused = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// The order of effects stays: the store is before the load.

// CHECK-LABEL: func.func @effects(
// CHECK: call @bngradAllReduceStart
// CHECK: call @bngradAllReduceWait
// CHECK: memref.store
// CHECK: memref.load
shard.grid @grid(shape = 2)
func.func @effects(%a: tensor<f32>, %m: memref<f32>) -> f32 {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<f32> -> tensor<f32>
  %1 = tensor.extract %0[] : tensor<f32>
  memref.store %1, %m[] : memref<f32>
  %2 = memref.load %m[] : memref<f32>
  return %2 : f32
}

// -----

// The place of a process, row-major, for the ops that upstream partitions.

// CHECK-LABEL: func.func private @bngradProcessIndex(!llvm.ptr) -> i64
// CHECK: func.func @index(
// CHECK: %[[L:.+]] = call @bngradProcessIndex
// CHECK: %[[LINEAR:.+]] = arith.index_cast %[[L]]
// CHECK: %[[M:.+]] = call @bngradProcessIndex
// CHECK: %[[I:.+]] = arith.index_cast %[[M]]
// CHECK: %[[SIZE1:.+]] = arith.constant 3 : index
// CHECK: %[[COORDINATE1:.+]] = arith.remsi %[[I]], %[[SIZE1]]
// CHECK: %[[REST:.+]] = arith.divsi %[[I]], %[[SIZE1]]
// CHECK: %[[SIZE0:.+]] = arith.constant 2 : index
// CHECK: %[[COORDINATE0:.+]] = arith.remsi %[[REST]], %[[SIZE0]]
// CHECK: return %[[LINEAR]], %[[COORDINATE1]], %[[COORDINATE0]]
shard.grid @grid(shape = 2x3)
func.func @index() -> (index, index, index) {
  %0 = shard.process_linear_index on @grid : index
  %1:2 = shard.process_multi_index on @grid axes = [1, 0] : index, index
  return %0, %1#0, %1#1 : index, index, index
}
