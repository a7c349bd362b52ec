// The kernel of `one_pass`: how data come onto the chip, and how long its vectors are.

// RUN: bngrad-opt %s --bngrad-apply-schedule=device-arguments=true --canonicalize --cse --mlir-print-local-scope | FileCheck %s

#last = affine_map<(r, c) -> (r, c)>
#channel_of_last = affine_map<(r, c) -> (c)>

// Channels are innermost, and fill whole vectors.
// CHECK-LABEL: func @channels_last(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           vector.load %{{.+}} : memref<64x8xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK:           vector.store %{{.+}} : memref<64x32xf32>, vector<4xf32>
// CHECK:         return
func.func @channels_last(%x: memref<64x32xf32>, %sum: memref<32xf32>, %y: memref<64x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x32xf32>) outs(%sum : memref<32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<64x32xf32>, memref<32xf32>) outs(%y : memref<64x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#rows = affine_map<(n, c, s) -> (n, c, s)>
#channel = affine_map<(n, c, s) -> (c)>

// Rows of 7 elements: the 7 pieces of 4 rows lie in a row of 28, and have elements of two channels. A thread loads the
// values of its channels before the loop over samples, and no loop is unrolled again. The sums of 4 channels and their
// results are in one buffer.
// CHECK-LABEL: func @flat_rows(
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %{{.+}} {{\[\[}}0], [1, 2]] : memref<9x8x7xf32> into memref<9x56xf32>
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-SAME:      workgroup(%[[CHANNELS:.+]] : memref<8xf32, #gpu.address_space<workgroup>>, %[[SCRATCH:.+]] : memref<108xf32, #gpu.address_space<workgroup>>)
// CHECK:           memref.view {{.*}} to memref<9x28xf32, #gpu.address_space<workgroup>>
// CHECK:             nvvm.cp.async.bulk.shared.cluster.global
// CHECK-NEXT:        arith.addi
// CHECK-NEXT:        arith.addi
// CHECK:             scf.yield
// CHECK-NEXT:      } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
// CHECK:           vector.load %{{.+}} : memref<9x28xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK:         } {loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
// CHECK:           memref.store %{{.+}}, %[[SCRATCH]]
// CHECK:           gpu.barrier
// CHECK:           memref.store %{{.+}}, %[[CHANNELS]][%{{.+}}]
// CHECK:           gpu.barrier
// CHECK:           memref.store %{{.+}}, %[[CHANNELS]][%{{.+}}]
// CHECK:           gpu.barrier
// CHECK:           memref.store %{{.+}}, %{{.+}} : memref<8xf32>
// CHECK-NOT:       gpu.barrier
// CHECK:           %[[FIRST:.+]] = memref.load %[[CHANNELS]]
// CHECK:           %[[LAST:.+]] = memref.load %[[CHANNELS]]
// CHECK-COUNT-3:   arith.select %{{.+}}, %[[FIRST]], %[[LAST]] : f32
// CHECK:           scf.for
// CHECK-NOT:         memref.load
// CHECK:             vector.store %{{.+}}, %[[FLAT]][%{{.+}}] {alignment = 16 : i64} : memref<9x56xf32>, vector<4xf32>
// CHECK:         return
func.func @flat_rows(%x: memref<9x8x7xf32>, %sum: memref<8xf32>, %y: memref<9x8x7xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<9x8x7xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<9x8x7xf32>, memref<8xf32>) outs(%y : memref<9x8x7xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Each step of 9 rows of threads is a stage: it is added up once it is there. The eighth has one row. Of the 8 steps, 4
// are a chunk, and the others the rest.
// CHECK-LABEL: func @stages(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           %[[BARRIERS:.+]] = nvgpu.mbarrier.create -> <memorySpace = #gpu.address_space<workgroup>, num_barriers = 8>
// CHECK:           nvgpu.mbarrier.arrive.expect_tx %[[BARRIERS]][%c0], %c1008 :
// CHECK:           nvgpu.mbarrier.arrive.expect_tx %[[BARRIERS]][%c6], %c1008 :
// CHECK:           nvgpu.mbarrier.arrive.expect_tx %[[BARRIERS]][%c7], %c112 :
// CHECK:           scf.for %{{.+}} = %c0 to %c64 step %c1 iter_args(%[[FROM:.+]] = %{{.+}}, %[[TO:.+]] = %{{.+}}, %[[STAGE:.+]] = %{{.+}}, %[[ROW:.+]] = %c0_i32)
// CHECK:             %[[NEXT_TO:.+]] = arith.addi %[[TO]], %c112
// CHECK:             %[[NEXT_ROW:.+]] = arith.addi %[[ROW]], %c1_i32
// CHECK:             %[[IS_NEXT:.+]] = arith.cmpi uge, %[[NEXT_ROW]], %c9_i32
// CHECK:             %[[NEXT_STAGE:.+]] = arith.addi %[[STAGE]], %c8
// CHECK:             arith.select %[[IS_NEXT]], %[[NEXT_STAGE]], %[[STAGE]]
// CHECK:             arith.addi %[[ROW]], %c-8_i32
// CHECK:             arith.addi %[[FROM]], %c224
// CHECK-NOT:       vector.load
// CHECK:           nvgpu.mbarrier.get %[[BARRIERS]][%c0]
// CHECK:           nvvm.mbarrier.try_wait
// CHECK:           vector.load
// CHECK:           nvgpu.mbarrier.get %[[BARRIERS]][%c1]
// CHECK:           nvvm.mbarrier.try_wait
// CHECK:           vector.load
// CHECK:           nvgpu.mbarrier.get %[[BARRIERS]][%c2]
// CHECK:           nvvm.mbarrier.try_wait
// CHECK:           vector.load
// CHECK:           nvgpu.mbarrier.get %[[BARRIERS]][%c3]
// CHECK:           nvvm.mbarrier.try_wait
// CHECK:           vector.load
// CHECK:           scf.for %{{.+}} = %{{.+}} to %c64 step %c9 iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %[[STEP:.+]] = %c4)
// CHECK-NEXT:        nvgpu.mbarrier.get %[[BARRIERS]][%[[STEP]]]
// CHECK:             nvvm.mbarrier.try_wait
// CHECK:             vector.load
// CHECK-NOT:       nvvm.mbarrier.try_wait
// CHECK:         return
func.func @stages(%x: memref<64x8x7xf32>, %sum: memref<8xf32>, %y: memref<64x8x7xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<64x8x7xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<64x8x7xf32>, memref<8xf32>) outs(%y : memref<64x8x7xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// An operand whose samples and channels are exchanged has no flat rows.
// CHECK-LABEL: func @turned_rows(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:       vector<
// CHECK:           gpu.terminator
func.func @turned_rows(%x: memref<9x8x7xf32>, %turned: memref<8x9x7xf32>, %sum: memref<8xf32>, %y: memref<9x8x7xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<9x8x7xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#rows, affine_map<(n, c, s) -> (c, n, s)>, #channel, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %turned, %sum : memref<9x8x7xf32>, memref<8x9x7xf32>, memref<8xf32>) outs(%y : memref<9x8x7xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 4>} {
    ^bb0(%e: f32, %t: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      %1 = arith.mulf %0, %t : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// Tiles that are no multiple of a vector have none.
// CHECK-LABEL: func @odd_tiles(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:       vector<
// CHECK:           gpu.terminator
func.func @odd_tiles(%x: memref<64x36xf32>, %sum: memref<36xf32>, %y: memref<64x36xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x36xf32>) outs(%sum : memref<36xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 6>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<64x36xf32>, memref<36xf32>) outs(%y : memref<64x36xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 6>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// A row of 128 pieces is longer than a step of 64 threads: its halves are copied one by one. The block adds up the pieces
// in the order that they have on the chip.
// CHECK-LABEL: func @parts_of_rows(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           %[[BARRIERS:.+]] = nvgpu.mbarrier.create -> <memorySpace = #gpu.address_space<workgroup>, num_barriers = 6>
// CHECK-COUNT-6:   nvgpu.mbarrier.arrive.expect_tx %[[BARRIERS]][%{{.+}}], %c1024 :
// CHECK:           scf.for %{{.+}} = %c0 to %c3 step %c1 iter_args(%[[FROM:.+]] = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %c0_i32)
// CHECK:             scf.for %{{.+}} = %c0 to %c2 step %c1 iter_args(%[[PART:.+]] = %[[FROM]], {{.+}})
// CHECK:               nvvm.cp.async.bulk.shared.cluster.global
// CHECK:               arith.addi %[[PART]], %c1024
// CHECK:             arith.addi %[[FROM]], %c16384
// CHECK:           vector.load %{{.+}} : memref<1536xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK:           vector.load %{{.+}} : memref<3x1x512xf32, #gpu.address_space<workgroup>>, vector<4xf32>
// CHECK:         return
func.func @parts_of_rows(%x: memref<3x8x512xf32>, %sum: memref<8xf32>, %y: memref<3x8x512xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#rows, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<3x8x512xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#rows, #channel, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<3x8x512xf32>, memref<8xf32>) outs(%y : memref<3x8x512xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#data = affine_map<(n, c, s) -> (n, c, s)>

// A result with steps is stored element by element. It is tested for no alignment, and nothing tells then whether its
// input is aligned as bulk copies need: that is copied by element.
// All blocks read the initial value of a sum, before they add; the first one overwrites it after the others have arrived:
// not relaxed.
// CHECK-LABEL: func @result_with_steps(
// CHECK-SAME:    %[[SUM:[a-z0-9]+]]: memref<8xf32>
// CHECK-NOT:     memref.extract_aligned_pointer_as_index
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:       nvgpu.mbarrier
// CHECK:           memref.load %{{.+}} : memref<4x8x32xf32>
// CHECK-NOT:       vector<
// CHECK:           memref.load %[[SUM]]
// CHECK-NOT:       memref.load %[[SUM]]
// CHECK:           nvvm.cluster.wait
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK-NOT:       vector<
// CHECK-NOT:       memref.store %{{.+}}, %[[SUM]]
// CHECK:           nvvm.cluster.wait
// CHECK:           memref.store %{{.+}}, %[[SUM]]
// CHECK:           gpu.terminator
func.func @result_with_steps(%x: memref<4x8x32xf32>, %sum: memref<8xf32>, %y: memref<4x8x32xf32, strided<[512, 64, 2]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<4x8x32xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<4x8x32xf32>, memref<8xf32>) outs(%y : memref<4x8x32xf32, strided<[512, 64, 2]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Data that are read in another order have no vectors.
// CHECK-LABEL: func @turned(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:       vector<
// CHECK:           gpu.terminator
func.func @turned(%x: memref<4x8x32xf32>, %turned: memref<4x32x8xf32>, %sum: memref<8xf32>, %y: memref<4x8x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<4x8x32xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, affine_map<(n, c, s) -> (n, s, c)>, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %turned, %sum : memref<4x8x32xf32>, memref<4x32x8xf32>, memref<8xf32>) outs(%y : memref<4x8x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %t: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      %1 = arith.mulf %0, %t : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// Data that are aligned in one branch need not be in the other, which accesses elements, even of what is aligned.
// CHECK-LABEL: func @either_branch(
// CHECK:         %[[X:.+]] = arith.cmpi eq
// CHECK:         %[[Y:.+]] = arith.cmpi eq
// CHECK:         %[[BOTH:.+]] = arith.andi %[[X]], %[[Y]]
// CHECK:         scf.if %[[BOTH]] {
// CHECK:           gpu.launch {{.*}} function(@one_pass)
// CHECK:           gpu.launch {{.*}} function(@reduce)
// CHECK-NOT:       vector<
// CHECK:           gpu.launch {{.*}} function(@finish)
// CHECK-NOT:       vector<
// CHECK:           gpu.launch {{.*}} function(@apply)
// CHECK-NOT:       vector<
// CHECK:         return
func.func @either_branch(%x: memref<4x8x32xf32>, %sum: memref<8xf32>, %y: memref<4x8x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<4x8x32xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<4x8x32xf32>, memref<8xf32>) outs(%y : memref<4x8x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 2>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Of 10 rows, the first two of 4 blocks have 3 each, and the others 2. All blocks have 2 of 8 rows.
// CHECK-LABEL: func @uneven_rows(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           %[[RANK:.+]] = arith.remui %{{.+}}, %c4
// CHECK:           %[[IS_LARGER:.+]] = arith.cmpi ult, %[[RANK]], %c2
// CHECK:           %[[ROWS:.+]] = arith.select %[[IS_LARGER]], %c3, %c2
// CHECK:           %[[FIRST:.+]] = arith.muli %[[RANK]], %c2
// CHECK:           %[[BEFORE:.+]] = arith.minsi %[[RANK]], %c2
// CHECK:           arith.addi %[[FIRST]], %[[BEFORE]]
// CHECK:           gpu.terminator
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           %[[RANK:.+]] = arith.remui %{{.+}}, %c4
// CHECK-NOT:       arith.select
// CHECK:           nvvm.elect.sync
// CHECK:           scf.for %{{.+}} = %c0 to %c2 step %c1 iter_args(
// CHECK:           gpu.terminator
func.func @uneven_rows(%x: memref<10x8x32xf32>, %even: memref<8x8x32xf32>, %sum: memref<8xf32>, %y: memref<10x8x32xf32>,
                       %z: memref<8x8x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<10x8x32xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<10x8x32xf32>, memref<8xf32>) outs(%y : memref<10x8x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 4>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%even : memref<8x8x32xf32>) outs(%sum : memref<8xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%even, %sum : memref<8x8x32xf32>, memref<8xf32>) outs(%z : memref<8x8x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, cluster_blocks = 4>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Five blocks of a cluster have no rows, and copy nothing.
// CHECK-LABEL: func @blocks_without_rows(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           %[[HAS_ROWS:.+]] = arith.cmpi ugt, %{{.+}}, %c0 : index
// CHECK-NEXT:      scf.if %[[HAS_ROWS]] {
// CHECK:             nvvm.cp.async.bulk.shared.cluster.global
// CHECK:           gpu.terminator
func.func @blocks_without_rows(%x: memref<3x16xf32>, %sum: memref<16xf32>, %y: memref<3x16xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<3x16xf32>) outs(%sum : memref<16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 16, cluster_blocks = 8>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<3x16xf32>, memref<16xf32>) outs(%y : memref<3x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 16, cluster_blocks = 8>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#identity = affine_map<(c) -> (c)>

// The sums read the mean that a per-channel result overwrites, and the elements read the result. No block overwrites it
// before the others have read it. The elements read a result with steps from dense shared memory.
// CHECK-LABEL: func @updated_mean(
// CHECK-SAME:    %[[MEAN:[a-z0-9]+]]: memref<32xf32, strided<[2]>>
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-SAME:      workgroup(%[[CHANNELS:[a-z0-9]+]] : memref<24xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-4:   memref.load %[[MEAN]]
// CHECK:           memref.store %{{.+}}, %[[CHANNELS]]
// CHECK:           nvvm.cluster.wait
// CHECK-NOT:       memref.store %{{.+}}, %[[MEAN]]
// CHECK:           nvvm.cluster.arrive {aligned}
// CHECK:           vector.load %[[CHANNELS]][%{{.+}}] {{.*}}, vector<4xf32>
// CHECK-NOT:       %[[MEAN]]
// CHECK:           nvvm.cluster.wait
// CHECK:           memref.store %{{.+}}, %[[MEAN]]
// CHECK:           gpu.terminator
func.func @updated_mean(%x: memref<64x32xf32>, %mean: memref<32xf32, strided<[2]>>, %sum: memref<32xf32>, %y: memref<64x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x, %mean : memref<64x32xf32>, memref<32xf32, strided<[2]>>) outs(%sum : memref<32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8, cluster_blocks = 2>} {
    ^bb0(%e: f32, %m: f32, %acc: f32):
      %0 = arith.subf %e, %m : f32
      %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel"]}
        ins(%sum : memref<32xf32>) outs(%mean : memref<32xf32, strided<[2]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8, cluster_blocks = 2>} {
    ^bb0(%s: f32, %out: f32):
      %0 = arith.mulf %s, %s : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %mean : memref<64x32xf32>, memref<32xf32, strided<[2]>>) outs(%y : memref<64x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8, cluster_blocks = 2>} {
    ^bb0(%e: f32, %m: f32, %out: f32):
      %0 = arith.subf %e, %m : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Elements that read a view of a result do not find it in shared memory: two passes.
// CHECK-LABEL: func @view_of_result(
// CHECK:         gpu.launch {{.*}} function(@reduce)
// CHECK-NOT:     function(@one_pass)
// CHECK:         return
func.func @view_of_result(%x: memref<64x32xf32>, %sum: memref<32xf32>, %y: memref<64x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x32xf32>) outs(%sum : memref<32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    %view = memref.cast %sum : memref<32xf32> to memref<32xf32, strided<[?], offset: ?>>
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %view : memref<64x32xf32>, memref<32xf32, strided<[?], offset: ?>>) outs(%y : memref<64x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Results of other types have no form in shared memory.
// CHECK-LABEL: func @index_result(
// CHECK:         gpu.launch {{.*}} function(@reduce)
// CHECK-NOT:     function(@one_pass)
// CHECK:         return
func.func @index_result(%x: memref<64x32xf32>, %sum: memref<32xf32>, %count: memref<32xindex>, %y: memref<64x32xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x32xf32>) outs(%sum : memref<32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#identity, #identity], iterator_types = ["parallel"]}
        ins(%sum : memref<32xf32>) outs(%count : memref<32xindex>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%s: f32, %out: index):
      %0 = arith.fptosi %s : f32 to i64
      %1 = arith.index_cast %0 : i64 to index
      linalg.yield %1 : index
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<64x32xf32>, memref<32xf32>) outs(%y : memref<64x32xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 8>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// The threads of a block take as many whole chunks each, here four of the 1024 vectors of a tile. The channels of a
// thread are those of its column.
// CHECK-LABEL: func @whole_chunks(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK:           scf.for %{{.+}} = %c0 to %c4 step %c1 iter_args({{.+}}) -> (index) {
// CHECK-COUNT-4:     vector.store %{{.+}} : memref<64x64xf32>, vector<4xf32>
// CHECK:           gpu.terminator
func.func @whole_chunks(%x: memref<64x64xf32>, %sum: memref<64xf32>, %y: memref<64x64xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#last, #channel_of_last], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x64xf32>) outs(%sum : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 64>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#last, #channel_of_last, #last], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<64x64xf32>, memref<64xf32>) outs(%y : memref<64x64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 64>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#turned = affine_map<(n, c, s) -> (s, c, n)>

// Data on chip that are also read in another order: the sums walk through rows.
// CHECK-LABEL: func @two_orders(
// CHECK:         gpu.launch {{.*}} function(@one_pass)
// CHECK-NOT:       memref<1024xf32, #gpu.address_space<workgroup>>, vector
// CHECK:           memref.load %{{.+}} : memref<16x4x16xf32>
// CHECK:         return
func.func @two_orders(%x: memref<16x4x16xf32>, %sum: memref<4xf32>, %y: memref<16x4x16xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #turned, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x, %x : memref<16x4x16xf32>, memref<16x4x16xf32>) outs(%sum : memref<4xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 1>} {
    ^bb0(%e: f32, %t: f32, %acc: f32):
      %0 = arith.mulf %e, %t : f32
      %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<16x4x16xf32>, memref<4xf32>) outs(%y : memref<16x4x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 1>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Elements that are read where another thread, or block, has written them: a kernel for each generic.
// CHECK-LABEL: func @elements_of_others(
// CHECK-NOT:     function(@one_pass)
// CHECK:         gpu.launch {{.*}} function(@reduce)
// CHECK:         gpu.launch {{.*}} function(@finish)
// CHECK:         gpu.launch {{.*}} function(@apply)
// CHECK:         gpu.launch {{.*}} function(@apply)
// CHECK:         return
func.func @elements_of_others(%x: memref<16x4x16xf32>, %sum: memref<4xf32>, %y: memref<16x4x16xf32>, %z: memref<16x4x16xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #channel], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<16x4x16xf32>) outs(%sum : memref<4xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 1>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #channel, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %sum : memref<16x4x16xf32>, memref<4xf32>) outs(%y : memref<16x4x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 1>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.subf %e, %s : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #turned, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %y : memref<16x4x16xf32>, memref<16x4x16xf32>) outs(%z : memref<16x4x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 64, block_channels = 1>} {
    ^bb0(%e: f32, %t: f32, %out: f32):
      %0 = arith.subf %e, %t : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}
