// Training reads its input twice, not three times: a block of elements is read for its mean and, from a cache, for the sums
// about that; the blocks are joined in f64.

// RUN: bngrad-opt %s --bngrad-cpu-pipeline="threads=1 vector-bits=256 fma=true last-level-bytes=0 stop-after=apply schedule=#bngrad.schedule<channels,vector_bits=256>" \
// RUN:   --mlir-print-local-scope | FileCheck %s --check-prefix=CHANNELS
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="threads=1 vector-bits=256 fma=true last-level-bytes=0 stop-after=apply schedule=#bngrad.schedule<split,vector_bits=256>" \
// RUN:   --mlir-print-local-scope | FileCheck %s --check-prefix=SPLIT
// RUN: bngrad-opt %s --bngrad-cpu-pipeline="threads=1 vector-bits=256 fma=true last-level-bytes=0 stop-after=apply schedule=#bngrad.schedule<rows,vector_bits=256>" \
// RUN:   --mlir-print-local-scope | FileCheck %s --check-prefix=ROWS

// A row of 10000 elements is cut into three parts of 3360, 3360 and 3280 elements. The center of a part is the channel's first
// element and the mean of the differences from it, unless it is not finite.
// CHANNELS-LABEL: func.func @long_rows
// CHANNELS-SAME:    (%[[X:[a-z0-9]+]]: memref<2x5x10000xf32>
// CHANNELS:         %[[FLAT:.+]] = memref.collapse_shape %[[X]]
// CHANNELS:         scf.for {{.*}} to %c5
// CHANNELS:           memref.load %[[X]][%c0, %{{.+}}, %c0]
// CHANNELS:           %[[FIRST:.+]] = memref.load
// CHANNELS:           scf.for {{.*}} to %c2 step %c1 iter_args({{.*}}) -> (f64, f64, f64)
// CHANNELS:             scf.for {{.*}} to %c10000 step %c3360 iter_args({{.*}}) -> (f64, f64, f64)
// CHANNELS:               vector.load %[[FLAT]]
// CHANNELS:               arith.divf %{{.+}}, %{{.+}} : f32
// CHANNELS-NEXT:          %[[MEAN:.+]] = arith.addf %[[FIRST]], %{{.+}} : f32
// CHANNELS:               %[[FINITE:.+]] = arith.cmpf ord
// CHANNELS-NEXT:          %[[CENTER:.+]] = arith.select %[[FINITE]], %[[MEAN]], %[[FIRST]] : f32
// CHANNELS:               vector.load %[[FLAT]]
// CHANNELS-NEXT:          vector.broadcast %[[CENTER]]
// CHANNELS:               scf.yield %{{.+}} : f64, f64, f64
// The sums of both stages follow, then the output.
// CHANNELS:           arith.truncf %{{.+}} : f64 to f32
// CHANNELS:           arith.truncf %{{.+}} : f64 to f32
// CHANNELS:           math.sqrt
// CHANNELS:           vector.load %[[FLAT]]
// CHANNELS-NOT:       vector.load %[[FLAT]]{{.*}}vector<32xf32>
// CHANNELS:         return

// The threads share segments, whose moments are joined in order.
// SPLIT-LABEL: func.func @long_rows
// SPLIT:         scf.for {{.*}} to %c10 step %c1
// SPLIT:           scf.for {{.*}} -> (f64, f64, f64)
// SPLIT:           memref.store {{.*}}xf64>
// SPLIT:           memref.store {{.*}}xf64>
// SPLIT:         scf.for {{.*}} to %c5 step %c1
// SPLIT:           scf.for {{.*}} to %c2 step %c1 iter_args({{.*}}) -> (f64, f64, f64)
// SPLIT:             memref.load {{.*}}xf64>
// SPLIT:             memref.load {{.*}}xf64>
// SPLIT:         return
func.func @long_rows(%x: tensor<2x5x10000xf32>) -> tensor<2x5x10000xf32> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x5x10000xf32>) {epsilon = 1.0e-5 : f64}
      : tensor<2x5x10000xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  return %0#0 : tensor<2x5x10000xf32>
}

// The sums of f64 data are not joined in f64: each stage reads the channel, which may be in a cache.
// CHANNELS-LABEL: func.func @f64
// CHANNELS-NOT:     iter_args({{.*}}) -> (f64, f64, f64)
// CHANNELS:         return
func.func @f64(%x: tensor<2x5x10000xf64>) -> tensor<2x5x10000xf64> {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<2x5x10000xf64>) {epsilon = 1.0e-5 : f64}
      : tensor<2x5x10000xf64>, tensor<5xf64>, tensor<5xf64>, tensor<5xf64>
  return %0#0 : tensor<2x5x10000xf64>
}

// Of each block, which has 672 rows at most, the first stage reads two halves in turns, whole rows with prefetches. The second
// stage finds the block in a cache: it keeps the sums of a third of the columns in registers, and prefetches nothing.
// ROWS-LABEL: func.func @rows_in_memory
// ROWS:         scf.for {{.*}} step %c672
// ROWS:           scf.for {{.*}} step %c32
// ROWS:             scf.for %[[ROW:.+]] = {{.*}} step %c1
// ROWS:               %[[NUMBER:.+]] = arith.subi %[[ROW]]
// ROWS:               %[[TURN:.+]] = arith.remui %[[NUMBER]], %c2
// ROWS-NEXT:          arith.muli %[[TURN]]
// ROWS:               %[[HALVES:.+]] = arith.cmpi ult, %[[NUMBER]]
// ROWS-NEXT:          arith.select %[[HALVES]], %{{.+}}, %[[NUMBER]]
// ROWS:               memref.prefetch
// ROWS:           arith.divf {{.*}} : vector<8xf32>
// ROWS-NOT:       memref.prefetch
// ROWS:           scf.for {{.*}} to %c96 step %c32
// ROWS:             scf.for {{.*}} step %c1 iter_args({{.*}}) -> (vector<32xf32>, vector<32xf32>)
// ROWS-NOT:       arith.remui
// ROWS-NOT:       memref.prefetch
// ROWS:         return
func.func @rows_in_memory(%x: tensor<100000x96xf32>) -> (tensor<96xf32>, tensor<96xf32>) {
  %0:4 = bngrad.batch_norm_training input(%x : tensor<100000x96xf32>) {feature_dims = array<i64: 1>, epsilon = 1.0e-5 : f64}
      : tensor<100000x96xf32>, tensor<96xf32>, tensor<96xf32>, tensor<96xf32>
  return %0#1, %0#3 : tensor<96xf32>, tensor<96xf32>
}
