// The kernels of `two_pass`: the number of blocks, their shared memory, the length of vectors.

// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --cse --mlir-print-local-scope | FileCheck %s
// RUN: bngrad-opt %s --bngrad-apply-schedule | FileCheck %s --check-prefix=RAW
// RUN: bngrad-opt %s --bngrad-apply-schedule=device-arguments=true --canonicalize --cse | FileCheck %s --check-prefix=DEVICE

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>
#c = affine_map<(c) -> (c)>

// Columns of 8 numbers, 64 bytes for the two sums of each: 40 KB hold 53 rows of 12 columns. Of the 85 rows that
// a block has threads for, four at least are 97 blocks. A thread for each number adds the sums of all rows.
// CHECK-LABEL: func @rows_that_fit(
// CHECK:         gpu.launch {{.*}} in (%{{.+}} = %c97, {{.*}} function(@reduce) workgroup(%[[SUMS:.+]] : memref<5088xf32, #gpu.address_space<workgroup>>, %{{.+}} : memref<5088xf32, #gpu.address_space<workgroup>>)
// CHECK:           arith.cmpi ult, %{{.+}}, %c12 : index
// CHECK-NEXT:      arith.cmpi ult, %{{.+}}, %c53 : index
// CHECK-NOT:       gpu.shuffle
// CHECK:           vector.store %{{.+}}, %[[SUMS]][%{{.+}}] : memref<5088xf32, #gpu.address_space<workgroup>>, vector<8xf32>
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:           memref.load %[[SUMS]]
// CHECK:         gpu.launch {{.*}} function(@finish)
// CHECK-NOT:       nvvm.griddepcontrol
// CHECK:         return
func.func @rows_that_fit(%x: memref<32768x96xf16>, %y: memref<32768x96xf16>, %sum0: memref<96xf32>, %sum1: memref<96xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %y : memref<32768x96xf16>, memref<32768x96xf16>) outs(%sum0, %sum1 : memref<96xf32>, memref<96xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 1024, block_accesses = 12, sum_blocks = 1000>} {
  ^bb0(%e: f16, %f: f16, %acc0: f32, %acc1: f32):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.extf %f : f16 to f32
    %2 = arith.addf %acc0, %0 fastmath<reassoc> : f32
    %3 = arith.addf %acc1, %1 fastmath<reassoc> : f32
    linalg.yield %2, %3 : f32, f32
  }
  return
}

// Four rows of 8 columns are a warp, whose sums do not need memory: 40 KB hold more rows than the block has.
// CHECK-LABEL: func @rows_of_warps(
// CHECK:         gpu.launch {{.*}} function(@reduce) workgroup(%[[SUMS:.+]] : memref<2048xf32, #gpu.address_space<workgroup>>, %{{.+}} : memref<2048xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-8:   gpu.shuffle xor %{{.+}}, %c8_i32
// CHECK-COUNT-8:   gpu.shuffle xor %{{.+}}, %c16_i32
// CHECK:           vector.store %{{.+}}, %[[SUMS]]
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// Of 32 groups of rows, each of 4 threads adds 8:
// CHECK-COUNT-8:   memref.load %[[SUMS]]
// CHECK:           gpu.shuffle xor %{{.+}}, %c2_i32
// CHECK:           gpu.shuffle xor %{{.+}}, %c1_i32
// CHECK-NOT:       memref.load %[[SUMS]]
// CHECK:         gpu.launch {{.*}} function(@finish)
func.func @rows_of_warps(%x: memref<32768x64xf16>, %y: memref<32768x64xf16>, %sum0: memref<64xf32>, %sum1: memref<64xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %y : memref<32768x64xf16>, memref<32768x64xf16>) outs(%sum0, %sum1 : memref<64xf32>, memref<64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 1024, block_accesses = 8, sum_blocks = 1000>} {
  ^bb0(%e: f16, %f: f16, %acc0: f32, %acc1: f32):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.extf %f : f16 to f32
    %2 = arith.addf %acc0, %0 fastmath<reassoc> : f32
    %3 = arith.addf %acc1, %1 fastmath<reassoc> : f32
    linalg.yield %2, %3 : f32, f32
  }
  return
}

// As many columns as 40 KB hold, one row of them.
// CHECK-LABEL: func @columns_that_fit(
// CHECK:         gpu.launch {{.*}} function(@reduce) workgroup(%{{.+}} : memref<5120xf32, #gpu.address_space<workgroup>>, %{{.+}} : memref<5120xf32, #gpu.address_space<workgroup>>)
func.func @columns_that_fit(%x: memref<64x8192xf16>, %y: memref<64x8192xf16>, %sum0: memref<8192xf32>, %sum1: memref<8192xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %y : memref<64x8192xf16>, memref<64x8192xf16>) outs(%sum0, %sum1 : memref<8192xf32>, memref<8192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 1024, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f16, %f: f16, %acc0: f32, %acc1: f32):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.extf %f : f16 to f32
    %2 = arith.addf %acc0, %0 fastmath<reassoc> : f32
    %3 = arith.addf %acc1, %1 fastmath<reassoc> : f32
    linalg.yield %2, %3 : f32, f32
  }
  return
}

// Elements of two widths: vectors that fill a register with the narrow ones, and two with the wide ones. Without sums
// nothing is finished.
// RAW-LABEL:   func.func @two_widths(
// RAW-NOT:       function(@finish)
// RAW:           return
// CHECK-LABEL: func @two_widths(
// CHECK:         gpu.launch {{.*}}blocks(%[[BLOCK:[^,]+]],{{.*}} in (%{{.+}} = %c64, {{.*}} function(@apply)
// The last block first, and one whole chunk for each:
// CHECK:           arith.subi %c63, %[[BLOCK]] : index
// CHECK-NOT:       scf.for
// CHECK:           vector.load %{{.+}} : memref<4096x64xf16>, vector<8xf16>
// CHECK:           vector.store %{{.+}} {alignment = 16 : i64, nontemporal = true} : memref<4096x64xf32>, vector<8xf32>
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @two_widths(%x: memref<4096x64xf16>, %f: memref<64xf32>, %y: memref<4096x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4096x64xf16>, memref<64xf32>) outs(%y : memref<4096x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f16, %g: f32, %out: f32):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.mulf %0, %g : f32
    linalg.yield %1 : f32
  }
  return
}

#image = affine_map<(n, c, s, d, t) -> (n, c, s, d, t)>
#channel = affine_map<(n, c, s, d, t) -> (c, d)>

// A block for each channel, which is a pair of indices.
// CHECK-LABEL: func @two_dims_of_channels(
// CHECK:         gpu.launch {{.*}}blocks(%[[BLOCK:[^,]+]],{{.*}} function(@reduce)
// CHECK:           %[[D:.+]] = arith.remui %[[BLOCK]], %c5
// CHECK:           %[[C:.+]] = arith.divui %[[BLOCK]], %c5
// CHECK:           memref.load %{{.+}}[%{{.+}}, %[[C]], %{{.+}}, %[[D]], %{{.+}}] : memref<2x3x4x5x6xf32>
// CHECK:         gpu.launch {{.*}} function(@finish)
func.func @two_dims_of_channels(%x: memref<2x3x4x5x6xf32>, %sum: memref<3x5xf32>) {
  linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "parallel", "reduction"]}
      ins(%x : memref<2x3x4x5x6xf32>) outs(%sum : memref<3x5xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 1>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// The kernels of each group are in a module of their own.
// CHECK-LABEL: func @two_groups(
// CHECK:         gpu.launch {{.*}} module(@two_groups_group_0)
// CHECK:         gpu.launch {{.*}} module(@two_groups_group_1)
func.func @two_groups(%x: memref<4096x64xf32>, %f: memref<64xf32>, %y: memref<4096x64xf32>, %z: memref<4096x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4096x64xf32>, memref<64xf32>) outs(%y : memref<4096x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4096x64xf32>, memref<64xf32>) outs(%z : memref<4096x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.addf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

#rows = affine_map<(n, c, s) -> (n, c, s)>
#row_channel = affine_map<(n, c, s) -> (c)>

// Rows of 5001 elements have no vectors. Each of 4 x 8 rows is three parts, of a block each, which loads the value of
// its channel once.
// CHECK-LABEL: func @parts_of_rows(
// CHECK:         gpu.launch {{.*}}blocks(%[[BLOCK:[^,]+]],{{.*}} in (%{{.+}} = %c96, {{.*}} function(@apply)
// CHECK:           %[[NUMBER:.+]] = arith.subi %c95, %[[BLOCK]]
// CHECK:           %[[ROW:.+]] = arith.divui %[[NUMBER]], %c3
// CHECK:           %[[C:.+]] = arith.remui %[[ROW]], %c8
// CHECK:           %[[N:.+]] = arith.divui %[[ROW]], %c8
// CHECK:           %[[PART:.+]] = arith.remui %[[NUMBER]], %c3
// CHECK:           arith.muli %[[PART]], %c1667
// CHECK:           memref.load %{{.+}}[%[[C]]] : memref<8xf32>
// CHECK:           scf.for
// CHECK-COUNT-4:     memref.load %{{.+}}[%[[N]], %[[C]], %{{.+}}] : memref<4x8x5001xf32>
// CHECK-NOT:       memref.load %{{.+}} : memref<8xf32>
// CHECK:         return
func.func @parts_of_rows(%x: memref<4x8x5001xf32>, %f: memref<8xf32>, %y: memref<4x8x5001xf32>) {
  linalg.generic {indexing_maps = [#rows, #row_channel, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<4x8x5001xf32>, memref<8xf32>) outs(%y : memref<4x8x5001xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// Of 256 threads, 247 are 19 rows of 13 channels: each loads the value of its own once. A block has 8 such rows for each.
// CHECK-LABEL: func @odd_channels(
// CHECK:         gpu.launch {{.*}} threads(%[[THREAD:[^,]+]],{{.*}} in (%{{.+}} = %c256, {{.*}} function(@apply)
// CHECK:           arith.muli %{{.+}}, %c152
// CHECK:           %[[ROW:.+]] = arith.divui %[[THREAD]], %c13
// CHECK:           %[[C:.+]] = arith.remui %[[THREAD]], %c13
// CHECK:           %[[ACTIVE:.+]] = arith.cmpi ult, %[[ROW]], %c19
// CHECK:           scf.if %[[ACTIVE]]
// CHECK:             memref.load %{{.+}}[%[[C]]] : memref<13xf32>
// CHECK:             scf.for
// CHECK-COUNT-4:       memref.load %{{.+}}[%{{.+}}, %[[C]]] : memref<4096x13xf32>
// CHECK-NOT:           memref.load %{{.+}} : memref<13xf32>
// CHECK:         return
func.func @odd_channels(%x: memref<4096x13xf32>, %f: memref<13xf32>, %y: memref<4096x13xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4096x13xf32>, memref<13xf32>) outs(%y : memref<4096x13xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// Data that the next kernel reads may stay in the cache.
// CHECK-LABEL: func @two_kernels(
// CHECK:         gpu.launch {{.*}} function(@apply)
// CHECK:           vector.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : memref<4096x64xf32>
// CHECK:         gpu.launch {{.*}} function(@apply)
// CHECK:           vector.store %{{.+}}, %{{.+}} {alignment = 16 : i64, nontemporal = true} : memref<4096x64xf32>
// CHECK:         return
func.func @two_kernels(%x: memref<4096x64xf32>, %f: memref<64xf32>, %y: memref<4096x64xf32>, %z: memref<4096x64xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<4096x64xf32>, memref<64xf32>) outs(%y : memref<4096x64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%y, %f : memref<4096x64xf32>, memref<64xf32>) outs(%z : memref<4096x64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.addf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Several blocks for each channel: blocks beside each other have shares of the same one.
// CHECK-LABEL: func @shares_of_a_channel(
// CHECK:         gpu.launch {{.*}}blocks(%[[BLOCK:[^,]+]],{{.*}} in (%{{.+}} = %c12, {{.*}} function(@reduce)
// CHECK:           %[[CHANNEL:.+]] = arith.divui %[[BLOCK]], %c4
// CHECK:           %[[SHARE:.+]] = arith.remui %[[BLOCK]], %c4
// They alternate: 256 pieces are 64 of each share. Of 2048 pieces, each thread has two whole chunks.
// CHECK:           %[[FIRST:.+]] = arith.muli %[[SHARE]], %c64
// CHECK:           %[[TO:.+]] = arith.maxsi %[[FIRST]], %c2240
// CHECK:           %[[PIECES:.+]] = arith.subi %[[TO]], %[[FIRST]]
// CHECK:           %[[CHUNKS:.+]] = arith.divui %[[PIECES]], %c1024
// CHECK:           scf.for %{{.+}} = %c0 to %[[CHUNKS]]
// Each step adds four vectors to the sum:
// CHECK:           %[[V0:.+]] = vector.load
// CHECK:           %[[V1:.+]] = vector.load
// CHECK:           %[[V2:.+]] = vector.load
// CHECK:           %[[V3:.+]] = vector.load
// CHECK:           %[[TWO:.+]] = arith.addf %[[V0]], %[[V1]]
// CHECK-NEXT:      %[[THREE:.+]] = arith.addf %[[TWO]], %[[V2]]
// CHECK-NEXT:      arith.addf %[[THREE]], %[[V3]]
// CHECK:           memref.store %{{.+}}, %{{.+}}[%[[SHARE]], %[[CHANNEL]]]
// CHECK:         gpu.launch {{.*}} function(@finish)
func.func @shares_of_a_channel(%x: memref<3x8192xf32>, %sum: memref<3xf32>) {
  linalg.generic {indexing_maps = [#data, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x8192xf32>) outs(%sum : memref<3xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 12>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Tiles of columns for each of the outer channels.
// CHECK-LABEL: func @outer_channels(
// CHECK:         gpu.launch {{.*}} in (%{{.+}} = %c24, {{.*}} function(@reduce)
// CHECK:         gpu.launch {{.*}} function(@finish)
func.func @outer_channels(%x: memref<6x40x64xf32>, %sum: memref<6x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, r, d) -> (c, r, d)>, affine_map<(c, r, d) -> (c, d)>], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : memref<6x40x64xf32>) outs(%sum : memref<6x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 4, sum_blocks = 1>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Memory of the device that a caller gives may start anywhere: vectors only where all of it is aligned.
// DEVICE-LABEL: func @aligned_arguments(
// DEVICE-SAME:    %[[X:[^:,]+]]: memref<4096x64xf32>, %{{[^:,]+}}: memref<64xf32>, %[[Y:[^:,]+]]: memref<4096x64xf32>)
// DEVICE-DAG:     %[[ADDRESS_X:.+]] = memref.extract_aligned_pointer_as_index %[[X]]
// DEVICE-DAG:     %[[REST_X:.+]] = arith.remui %[[ADDRESS_X]], %c16
// DEVICE-DAG:     %[[IS_X:.+]] = arith.cmpi eq, %[[REST_X]], %c0
// DEVICE-DAG:     %[[ADDRESS_Y:.+]] = memref.extract_aligned_pointer_as_index %[[Y]]
// DEVICE:         scf.if
// DEVICE:           gpu.launch {{.*}} function(@apply)
// DEVICE:             vector.load %[[X]]{{.+}} {alignment = 16 : i64}
// DEVICE:         } else {
// DEVICE:           gpu.launch {{.*}} function(@apply)
// DEVICE-NOT:         vector.load
// DEVICE:             memref.load %[[X]]
// DEVICE:         return
func.func @aligned_arguments(%x: memref<4096x64xf32>, %f: memref<64xf32>, %y: memref<4096x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4096x64xf32>, memref<64xf32>) outs(%y : memref<4096x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// A result that is read through another view is stored first, and not loaded before the sums.
// DEVICE-LABEL: func @result_by_a_view(
// DEVICE-SAME:    %[[A:[a-z0-9]+]]: memref<64xf32>, %{{[a-z0-9]+}}: memref<64xf32>, %{{[a-z0-9]+}}: memref<4096x64xf32>)
// DEVICE:         gpu.launch {{.*}} function(@finish)
// DEVICE-NOT:       memref.load %[[A]]
// DEVICE:           memref.store %{{.+}}, %[[A]]
// DEVICE:           memref.load %[[A]]
// DEVICE:         gpu.launch {{.*}} function(@apply)
// DEVICE:         return
func.func @result_by_a_view(%x: memref<4096x64xf32>, %sum: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %y: memref<4096x64xf32>) {
  %view = memref.reinterpret_cast %a to offset: [0], sizes: [64], strides: [1] : memref<64xf32> to memref<64xf32>
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4096x64xf32>) outs(%sum : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#c, #c], iterator_types = ["parallel"]}
        ins(%sum : memref<64xf32>) outs(%a : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %out: f32):
      %0 = arith.negf %e : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#c, #c], iterator_types = ["parallel"]}
        ins(%view : memref<64xf32>) outs(%b : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %out: f32):
      %0 = arith.mulf %e, %e : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %b : memref<4096x64xf32>, memref<64xf32>) outs(%y : memref<4096x64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<two_pass, sum_blocks = 16>} {
    ^bb0(%e: f32, %f: f32, %out: f32):
      %0 = arith.mulf %e, %f : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}
