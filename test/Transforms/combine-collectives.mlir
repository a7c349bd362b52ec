// RUN: bngrad-opt %s --split-input-file --bngrad-combine-collectives | FileCheck %s --enable-var-scope
// RUN: bngrad-opt %s --split-input-file --bngrad-to-linalg=stop-after=partition | FileCheck %s --check-prefix=STAGE

// Nothing to combine: one all-reduce, or none.

// CHECK-LABEL: func.func @one(
// CHECK-NEXT: %[[SUM:.+]] = shard.all_reduce %arg0
// CHECK-NEXT: return %[[SUM]]
// CHECK-LABEL: func.func @none(
// CHECK-NEXT: return
shard.grid @grid(shape = 2)
func.func @one(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @none(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// Different shapes become one buffer. All axes are those without a list, in any
// order.

// CHECK-LABEL: func.func @shapes(
// CHECK-SAME: %[[A:[^:]+]]: tensor<2x4xf32>, %[[B:[^:]+]]: tensor<2x3x5xf32>, %[[C:[^:]+]]: tensor<7xf32>, %[[D:[^:]+]]: tensor<f32>
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<46xf32>
// CHECK: %[[FLAT_A:.+]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1]] : tensor<2x4xf32> into tensor<8xf32>
// CHECK: %[[I0:.+]] = tensor.insert_slice %[[FLAT_A]] into %[[EMPTY]][0] [8] [1]
// CHECK: %[[FLAT_B:.+]] = tensor.collapse_shape %[[B]] {{\[\[}}0, 1, 2]] : tensor<2x3x5xf32> into tensor<30xf32>
// CHECK: %[[I1:.+]] = tensor.insert_slice %[[FLAT_B]] into %[[I0]][8] [30] [1]
// CHECK: %[[I2:.+]] = tensor.insert_slice %[[C]] into %[[I1]][38] [7] [1]
// CHECK: %[[FLAT_D:.+]] = tensor.expand_shape %[[D]] [] output_shape [1] : tensor<f32> into tensor<1xf32>
// CHECK: %[[I3:.+]] = tensor.insert_slice %[[FLAT_D]] into %[[I2]][45] [1] [1]
// CHECK: %[[SUM:.+]] = shard.all_reduce %[[I3]] on @grid {{.*}}{bngrad.collective = "first; second"} : tensor<46xf32> -> tensor<46xf32>
// CHECK-NOT: shard.all_reduce
// CHECK: %[[S0:.+]] = tensor.extract_slice %[[SUM]][0] [8] [1] : tensor<46xf32> to tensor<8xf32>
// CHECK: %[[R0:.+]] = tensor.expand_shape %[[S0]] {{\[\[}}0, 1]] output_shape [2, 4]
// CHECK: %[[S1:.+]] = tensor.extract_slice %[[SUM]][8] [30] [1]
// CHECK: %[[R1:.+]] = tensor.expand_shape %[[S1]] {{\[\[}}0, 1, 2]] output_shape [2, 3, 5]
// CHECK: %[[R2:.+]] = tensor.extract_slice %[[SUM]][38] [7] [1]
// CHECK: %[[S3:.+]] = tensor.extract_slice %[[SUM]][45] [1] [1]
// CHECK: %[[R3:.+]] = tensor.collapse_shape %[[S3]] [] : tensor<1xf32> into tensor<f32>
// CHECK: return %[[R0]], %[[R1]], %[[R2]], %[[R3]]
shard.grid @grid(shape = 2x2)
func.func @shapes(%a: tensor<2x4xf32>, %b: tensor<2x3x5xf32>, %c: tensor<7xf32>, %d: tensor<f32>)
    -> (tensor<2x4xf32>, tensor<2x3x5xf32>, tensor<7xf32>, tensor<f32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0, 1] {bngrad.collective = "first"} : tensor<2x4xf32> -> tensor<2x4xf32>
  %1 = shard.all_reduce %b on @grid grid_axes = [1, 0] {bngrad.collective = "second"} : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  %2 = shard.all_reduce %c on @grid : tensor<7xf32> -> tensor<7xf32>
  %3 = shard.all_reduce %d on @grid : tensor<f32> -> tensor<f32>
  return %0, %1, %2, %3 : tensor<2x4xf32>, tensor<2x3x5xf32>, tensor<7xf32>, tensor<f32>
}

// -----

// Other axes, element types, reductions and grids stay apart.

// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-6: shard.all_reduce
// CHECK-NOT: insert_slice
// CHECK: return
shard.grid @grid(shape = 2x2)
shard.grid @other(shape = 2x2)
func.func @apart(%a: tensor<4xf32>, %b: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %1 = shard.all_reduce %a on @grid grid_axes = [1] : tensor<4xf32> -> tensor<4xf32>
  %2 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
  %3 = shard.all_reduce %a on @grid grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
  %4 = shard.all_reduce %a on @other grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %5 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf64>
  return %0, %1, %2, %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>
}

// -----

// One that needs the result of another stays apart from it. The third is
// independent: its operand moves up, before the readers of the first.

// CHECK-LABEL: func.func @dependent(
// CHECK-SAME: %[[A:[^:]+]]: tensor<4xf32>, %[[B:[^:]+]]: tensor<4xf32>
// CHECK: %[[NEG:.+]] = tosa.abs %[[B]]
// CHECK: %[[EMPTY:.+]] = tensor.empty() : tensor<8xf32>
// CHECK: %[[I0:.+]] = tensor.insert_slice %[[A]] into %[[EMPTY]][0] [4] [1]
// CHECK: %[[I1:.+]] = tensor.insert_slice %[[NEG]] into %[[I0]][4] [4] [1]
// CHECK: %[[SUM:.+]] = shard.all_reduce %[[I1]]
// CHECK: %[[R0:.+]] = tensor.extract_slice %[[SUM]][0] [4] [1]
// CHECK: %[[R2:.+]] = tensor.extract_slice %[[SUM]][4] [4] [1]
// CHECK: %[[E:.+]] = tosa.exp %[[R0]]
// CHECK: %[[R1:.+]] = shard.all_reduce %[[E]]
// CHECK: return %[[R1]], %[[R2]]
shard.grid @grid(shape = 2)
func.func @dependent(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %e = tosa.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = shard.all_reduce %e on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %n = tosa.abs %b : (tensor<4xf32>) -> tensor<4xf32>
  %2 = shard.all_reduce %n on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Dynamic sizes; an all-reduce that nothing uses goes.

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[A:[^:]+]]: tensor<2x?xf64>, %[[B:[^:]+]]: tensor<5xf64>
// CHECK: %[[C:.+]] = tensor.dim %[[A]]
// CHECK: %[[N:.+]] = arith.muli %[[C]], %{{.+}} : index
// CHECK: %[[ALL:.+]] = arith.addi %[[N]]
// CHECK: tensor.empty(%[[ALL]]) : tensor<?xf64>
// CHECK: %[[SUM:.+]] = shard.all_reduce
// CHECK-NOT: shard.all_reduce
// CHECK: %[[S0:.+]] = tensor.extract_slice %[[SUM]][0] [%[[N]]] [1] : tensor<?xf64> to tensor<?xf64>
// CHECK: tensor.expand_shape %[[S0]] {{\[\[}}0, 1]] output_shape [2, %[[C]]]
// CHECK: tensor.extract_slice %[[SUM]][%[[N]]] [5] [1] : tensor<?xf64> to tensor<5xf64>
shard.grid @grid(shape = 2)
func.func @dynamic(%a: tensor<2x?xf64>, %b: tensor<5xf64>) -> (tensor<2x?xf64>, tensor<5xf64>) {
  %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<2x?xf64> -> tensor<2x?xf64>
  %1 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<5xf64> -> tensor<5xf64>
  %unused = shard.all_reduce %b on @grid grid_axes = [0] : tensor<5xf64> -> tensor<5xf64>
  return %0, %1 : tensor<2x?xf64>, tensor<5xf64>
}

// -----

// Two independent gradients of a function: both sums of both in one message,
// and both counts in one.

// STAGE-LABEL: func.func @gradients(
// STAGE: bngrad.batch_norm_backward_reduce grad_output(
// STAGE: bngrad.batch_norm_backward_reduce grad_output(
// STAGE: tensor.empty() : tensor<14xf32>
// STAGE: shard.all_reduce {{.*}}{bngrad.collective = "sums of bngrad.batch_norm_backward {{.*}}; sums of bngrad.batch_norm_backward {{.*}}"} : tensor<14xf32> -> tensor<14xf32>
// STAGE: shard.all_reduce {{.*}}{bngrad.collective = "count of {{.*}}; count of {{.*}}"} : tensor<2xi64> -> tensor<2xi64>
// STAGE-NOT: shard.all_reduce
// STAGE: = bngrad.batch_norm_backward_elemt
// STAGE: = bngrad.batch_norm_backward_elemt
shard.grid @grid(shape = 2)
func.func @gradients(%dy: tensor<?x3xf32>, %x: tensor<?x3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>,
                     %dy2: tensor<?x4xf32>, %x2: tensor<?x4xf32>, %m2: tensor<4xf32>, %v2: tensor<4xf32>)
    -> (tensor<?x3xf32>, tensor<?x4xf32>) {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %s : tensor<?x3xf32>
  %x2s = shard.shard %x2 to %s : tensor<?x4xf32>
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x3xf32>) input(%xs : tensor<?x3xf32>)
      mean(%m : tensor<3xf32>) variance(%v : tensor<3xf32>) : tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>
  %1:3 = bngrad.batch_norm_backward grad_output(%dy2 : tensor<?x4xf32>) input(%x2s : tensor<?x4xf32>)
      mean(%m2 : tensor<4xf32>) variance(%v2 : tensor<4xf32>) : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0#0, %1#0 : tensor<?x3xf32>, tensor<?x4xf32>
}
