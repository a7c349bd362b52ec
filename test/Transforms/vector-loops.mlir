// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --cse --split-input-file --verify-diagnostics --mlir-print-local-scope \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule | FileCheck %s

// No branch is made that is never taken, or always.
// RUN: bngrad-opt %s --bngrad-apply-schedule --split-input-file 2>/dev/null | FileCheck %s --check-prefix=BRANCHES \
// RUN:   --implicit-check-not="scf.if %true" --implicit-check-not="scf.if %false"
// BRANCHES: scf.if

// The loops verify and lower, for registers of any length.
// RUN: bngrad-opt %s --split-input-file --bngrad-cpu-pipeline -o /dev/null

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>
#channel = affine_map<(c) -> (c)>

// A group with `channels`: each thread takes a share of the channels. It adds the terms of rows in chains of 32 vectors
// of four registers. The remainder of a row precedes the first vector, each element in the lane it would have in
// another vector. Then it computes the per-channel values, and reads the channel again, in the same order, as the next
// channel is prefetched.
// CHECK-LABEL: func @channels
// CHECK-SAME:    (%[[X:.+]]: memref<8x6x3100xf32>, %[[SUM:.+]]: memref<6xf32>, %[[FACTOR:.+]]: memref<6xf32>, %[[DX:.+]]: memref<8x6x3100xf32>)
// CHECK-DAG:     %[[FLAT_X:.+]] = memref.collapse_shape %[[X]] {{\[\[}}0, 1, 2]]
// CHECK-DAG:     %[[FLAT_DX:.+]] = memref.collapse_shape %[[DX]] {{\[\[}}0, 1, 2]]
// CHECK:         scf.parallel (%[[SHARE:.+]]) = (%c0) to (%c3) step (%c1) {
// CHECK:           scf.for %[[C:.+]] = %{{.+}} to %{{.+}} step %c1 {
// CHECK:             scf.for %{{.+}} = %c0 to %c8 step %c1
// CHECK:               scf.for %{{.+}} = %c0 to %c3072 step %c2048
// CHECK:                   %[[PART:.+]] = vector.extract_strided_slice %[[SUMS:.+]] {offsets = [0], sizes = [16], strides = [1]}
// CHECK:                   %[[REST:.+]] = vector.load %[[FLAT_X]]
// CHECK-NEXT:              %[[TERM:.+]] = arith.addf %[[PART]], %[[REST]] : vector<16xf32>
// CHECK-NEXT:              vector.insert_strided_slice %[[TERM]], %[[SUMS]] {offsets = [0], strides = [1]}
// CHECK:                   %[[REST:.+]] = vector.maskedload %[[FLAT_X]]
// CHECK-NEXT:              %[[TERM:.+]] = arith.addf %{{.+}}, %[[REST]] : vector<16xf32>
// CHECK-NEXT:              %[[NEXT:.+]] = arith.select %{{.+}}, %[[TERM]], %{{.+}} : vector<16xi1>, vector<16xf32>
// CHECK-NEXT:              vector.insert_strided_slice %[[NEXT]], %{{.+}} {offsets = [16], strides = [1]}
// CHECK:                 scf.for {{.+}} step %c64
// CHECK:                   vector.load %[[FLAT_X]][%{{.+}}] : memref<148800xf32>, vector<64xf32>
// CHECK-NEXT:              arith.addf %{{.+}}, %{{.+}} : vector<64xf32>
// CHECK:                   llvm.loop_annotation
// The lanes are added by halves.
// CHECK:             %[[LOWER:.+]] = vector.extract_strided_slice %[[LANES:.+]] {offsets = [0], sizes = [32], strides = [1]}
// CHECK:             %[[UPPER:.+]] = vector.extract_strided_slice %[[LANES]] {offsets = [32], sizes = [32], strides = [1]}
// CHECK:             arith.addf %[[LOWER]], %[[UPPER]] : vector<32xf32>
// CHECK:             arith.addf {{.+}} : vector<1xf32>
// CHECK:             memref.store %{{.+}}, %[[SUM]][%[[C]]]
// CHECK:             math.sqrt
// CHECK:             memref.store %{{.+}}, %[[FACTOR]][%[[C]]]
// CHECK:             %[[F:.+]] = memref.load %[[FACTOR]][%[[C]]]
// CHECK:             scf.for %[[ROW:.+]] = %c0 to %c8 step %c1
// CHECK-NEXT:          arith.muli %[[ROW]], %c6
// Up to the first whole line of the result, masked:
// CHECK:               memref.extract_aligned_pointer_as_index %[[FLAT_DX]]
// CHECK:               vector.maskedstore %[[FLAT_DX]]
// Whole lines, by streaming stores; data of the next channel are prefetched:
// CHECK:               scf.for
// CHECK:                 memref.prefetch %[[FLAT_X]][%{{.+}}], read, locality<2>, data
// CHECK:                 %[[V:.+]] = vector.load %[[FLAT_X]]
// CHECK:                 vector.broadcast %[[F]]
// CHECK-NOT:             vector.maskedstore
// CHECK:                 vector.store %{{.+}}, %[[FLAT_DX]][%{{.+}}] {alignment = 64 : i64, nontemporal = true}
// The remainder, masked:
// CHECK:               vector.maskedstore %[[FLAT_DX]]
// CHECK:           llvm.fence seq_cst
// CHECK-NOT:     linalg.generic
func.func @channels(%x: memref<8x6x3100xf32>, %sum: memref<6xf32>, %factor: memref<6xf32>, %dx: memref<8x6x3100xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<8x6x3100xf32>) outs(%sum : memref<6xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 600000>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
        ins(%sum : memref<6xf32>) outs(%factor : memref<6xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 600000>} {
    ^bb0(%e: f32, %out: f32):
      %0 = math.sqrt %e : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %factor : memref<8x6x3100xf32>, memref<6xf32>) outs(%dx : memref<8x6x3100xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 600000>} {
    ^bb0(%e: f32, %f: f32, %out: f32):
      %0 = arith.mulf %e, %f : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Rows of which up to 128 KiB are read are prefetched, from all tensors; and of the result, a line of each page.
// CHECK-LABEL: func @rows_of_128_kib
// CHECK-COUNT-9: memref.prefetch
// CHECK:         return
func.func @rows_of_128_kib(%x: memref<2x6x16384xf32>, %y: memref<2x6x16384xf32>, %a: memref<6xf32>, %dx: memref<2x6x16384xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %a : memref<2x6x16384xf32>, memref<2x6x16384xf32>, memref<6xf32>) outs(%dx : memref<2x6x16384xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 600000>} {
  ^bb0(%e: f32, %f: f32, %factor: f32, %out: f32):
    %0 = arith.mulf %e, %factor : f32
    %1 = arith.addf %0, %f : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func @longer_rows
// CHECK-COUNT-1: memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @longer_rows(%x: memref<2x6x16385xf32>, %y: memref<2x6x16385xf32>, %a: memref<6xf32>, %dx: memref<2x6x16385xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %a : memref<2x6x16385xf32>, memref<2x6x16385xf32>, memref<6xf32>) outs(%dx : memref<2x6x16385xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 600000>} {
  ^bb0(%e: f32, %f: f32, %factor: f32, %out: f32):
    %0 = arith.mulf %e, %factor : f32
    %1 = arith.addf %0, %f : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func @three_tensors
// CHECK-COUNT-11: memref.prefetch
// CHECK:          return
func.func @three_tensors(%x: memref<2x6x13107xf32>, %y: memref<2x6x13107xf32>, %z: memref<2x6x13107xf16>, %a: memref<6xf32>, %dx: memref<2x6x13107xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %z, %a : memref<2x6x13107xf32>, memref<2x6x13107xf32>, memref<2x6x13107xf16>, memref<6xf32>) outs(%dx : memref<2x6x13107xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 600000>} {
  ^bb0(%e: f32, %f: f32, %g: f16, %factor: f32, %out: f32):
    %0 = arith.extf %g : f16 to f32
    %1 = arith.mulf %e, %factor : f32
    %2 = arith.addf %1, %0 : f32
    %3 = arith.addf %2, %f : f32
    linalg.yield %3 : f32
  }
  return
}

// CHECK-LABEL: func @longer_rows_of_three_tensors
// CHECK-COUNT-1: memref.prefetch
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @longer_rows_of_three_tensors(%x: memref<2x6x13108xf32>, %y: memref<2x6x13108xf32>, %z: memref<2x6x13108xf16>, %a: memref<6xf32>, %dx: memref<2x6x13108xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %z, %a : memref<2x6x13108xf32>, memref<2x6x13108xf32>, memref<2x6x13108xf16>, memref<6xf32>) outs(%dx : memref<2x6x13108xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 600000>} {
  ^bb0(%e: f32, %f: f32, %g: f16, %factor: f32, %out: f32):
    %0 = arith.extf %g : f16 to f32
    %1 = arith.mulf %e, %factor : f32
    %2 = arith.addf %1, %0 : f32
    %3 = arith.addf %2, %f : f32
    linalg.yield %3 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Small data are one share, which needs no threads, and stay in the caches. A mask is loaded as bytes, and the operand
// of its select is loaded unconditionally.
// CHECK-LABEL: func @small_masked
// CHECK-SAME:    %[[K:[^:]+]]: memref<2x3x64xi1>
// CHECK-NOT:     scf.parallel
// CHECK:         %[[BYTES:.+]] = bngrad.element_cast %{{.+}} : memref<384xi1> to memref<384xi8>
// CHECK-NOT:     scf.parallel
// CHECK-NOT:     memref.prefetch
// CHECK:         %[[M:.+]] = vector.load %[[BYTES]]{{.+}} : memref<384xi8>, vector<64xi8>
// CHECK:         arith.cmpi ne, %[[M]],
// CHECK:         %[[E:.+]] = vector.load %{{.+}} : memref<384xf32>, vector<64xf32>
// CHECK:         %[[FENCED:.+]] = llvm.call_intrinsic "llvm.arithmetic.fence"(%[[E]])
// CHECK:         arith.select %{{.+}}, %[[FENCED]], %{{.+}} : vector<64xi1>, vector<64xf32>
// CHECK-NOT:     nontemporal
// CHECK:         return
func.func @small_masked(%k: memref<2x3x64xi1>, %x: memref<2x3x64xf32>, %f: memref<3xf32>, %dx: memref<2x3x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k, %x, %f : memref<2x3x64xi1>, memref<2x3x64xf32>, memref<3xf32>) outs(%dx : memref<2x3x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 100000>} {
  ^bb0(%m: i1, %e: f32, %a: f32, %out: f32):
    %0 = arith.select %m, %e, %zero : f32
    %1 = arith.mulf %0, %a : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// A dynamic, small number of columns: a row is read as four or eight registers, including elements of the next rows,
// unless that reads past the data.
// CHECK-LABEL: func @dynamic_rows
// CHECK-SAME:    (%[[X:.+]]: memref<?x?xf32>,
// CHECK-DAG:     %[[ROWS:.+]] = memref.dim %[[X]], %c0
// CHECK-DAG:     %[[CHANNELS:.+]] = memref.dim %[[X]], %c1
// CHECK-DAG:     %[[COUNT:.+]] = arith.muli %[[ROWS]], %[[CHANNELS]]
// CHECK:         %[[SHORT:.+]] = arith.cmpi ule, %[[COLUMNS:.+]], %c64
// CHECK-NEXT:    %[[LONG:.+]] = arith.maxsi %[[COLUMNS]], %c128
// CHECK-NEXT:    %[[LENGTH:.+]] = arith.select %[[SHORT]], %c64, %[[LONG]]
// CHECK-NEXT:    %[[LAST:.+]] = arith.subi %[[END:.+]], %c1
// CHECK-NEXT:    %[[BASE:.+]] = arith.muli %[[LAST]], %[[COLUMNS]]
// CHECK-NEXT:    %[[BEHIND:.+]] = arith.addi %[[BASE]], %[[LENGTH]]
// CHECK-NEXT:    %[[INSIDE:.+]] = arith.cmpi ule, %[[BEHIND]], %[[COUNT]]
// CHECK-NEXT:    %[[FITS:.+]] = arith.andi %{{.+}}, %[[INSIDE]]
// CHECK-NEXT:    scf.if %[[FITS]] {
// CHECK:           scf.for %{{.+}} to %[[END]] step %c1 iter_args({{.+}}) -> (vector<64xf32>)
// CHECK:         } else {
// CHECK:           scf.for %{{.+}} to %[[END]] step %c1 iter_args({{.+}}) -> (vector<128xf32>)
// The sums of blocks are added for all columns first where channels are few and blocks are several.
// CHECK:         %[[FEW:.+]] = arith.cmpi ule, %[[CHANNELS]], %c64
// CHECK:         %[[SEVERAL:.+]] = arith.cmpi ugt, %[[BLOCKS:.+]], %c1
// CHECK-NEXT:    %[[BOTH:.+]] = arith.andi %[[FEW]], %[[SEVERAL]]
// CHECK-NEXT:    scf.if %[[BOTH]] {
// CHECK:             scf.for %{{.+}} = %c0 to %[[BLOCKS]] step %c1
func.func @dynamic_rows(%x: memref<?x?xf32>, %sum: memref<?xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%sum : memref<?xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %e, %acc fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// `rows`: blocks of rows, each with its own sums; with three channels, 32 rows are folded into one of 96 elements,
// whose sums stay in registers. 16-bit results are stored as integers, for which LLVM keeps the streaming hint.
// CHECK-LABEL: func @rows
// CHECK-SAME:    (%[[X:.+]]: memref<100000x3xf32>, %[[SUM:.+]]: memref<3xf32>, %[[DX:.+]]: memref<100000x3xbf16>)
// CHECK:         %[[FLAT_X:.+]] = memref.collapse_shape %[[X]]
// CHECK:         scf.parallel {{.*}} to (%c2)
// CHECK:             %{{.+}}:3 = scf.for {{.+}} -> (vector<64xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-3:       vector.load %[[FLAT_X]]
// CHECK-NOT:           vector.load
// CHECK:               scf.yield
// A thread keeps the sums of a block in tables of its own. Other threads read them with the error added, which is stored
// once. A chain is added to them register by register:
// CHECK:               vector.extract_strided_slice %{{.+}} {offsets = [0], sizes = [16]
// CHECK:               vector.load %[[SUMS:.+]][%[[OWN:.+]]] : memref<832xf32>, vector<16xf32>
// CHECK-NEXT:          vector.load %[[ERRORS:.+]][%[[OWN]]] : memref<832xf32>, vector<16xf32>
// CHECK:               vector.store %{{.+}}, %[[SUMS]][%[[OWN]]] : memref<832xf32>, vector<16xf32>
// CHECK-NEXT:          vector.store %{{.+}}, %[[ERRORS]][%[[OWN]]] : memref<832xf32>, vector<16xf32>
// CHECK:               vector.extract_strided_slice %{{.+}} {offsets = [16], sizes = [16]
// CHECK:             %[[ENTRY:.+]] = arith.muli %{{.+}}, %c160
// CHECK:             %[[SUM_OF:.+]] = vector.load %[[SUMS]][%[[OWN]]]
// CHECK:             %[[ERROR_OF:.+]] = vector.load %[[ERRORS]][%[[OWN]]]
// CHECK:             %[[JOINED:.+]] = arith.addf %[[SUM_OF]], %[[ERROR_OF]]
// CHECK:             vector.store %[[JOINED]], %[[SHARED:.+]][%[[ENTRY]]]
// The first share adds the sums of the four blocks in order for each column, and then those of the 32 columns of a
// channel:
// CHECK:         scf.parallel (%[[SHARE:.+]]) = {{.*}} to (%c2)
// CHECK:           %[[FIRST:.+]] = arith.cmpi eq, %[[SHARE]], %c0
// CHECK:           scf.if %[[FIRST]] {
// CHECK:             scf.for %{{.+}} = %c0 to %c4 step %c1 iter_args({{.+}}) -> (vector<64xf32>, vector<64xf32>)
// CHECK:               vector.load %[[SHARED]]
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c1 iter_args({{.+}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:           vector.maskedstore %[[SUM]]
// Each thread replicates the per-channel values into its table, by doubling:
// CHECK:         scf.parallel {{.*}} to (%c2)
// CHECK:           vector.maskedload %[[SUM]]
// CHECK:           scf.while
// 1365 rows of 2304 bytes are 3 MB, which are read forward before stepping back:
// CHECK:           arith.divui %{{.+}}, %c1365
// CHECK:           vector.store %{{.+}} {alignment = 64 : i64, nontemporal = true} : memref<300000xi16>, vector<64xi16>
// Partial lines are not streamed:
// CHECK-NOT:       nontemporal
// CHECK:           vector.store %{{.+}} : memref<300000xi16>, vector<16xi16>
// CHECK-NOT:     linalg.generic
func.func @rows(%x: memref<100000x3xf32>, %sum: memref<3xf32>, %dx: memref<100000x3xbf16>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<100000x3xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 2, streaming_bytes = 1000, row_blocks = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<100000x3xf32>, memref<3xf32>) outs(%dx : memref<100000x3xbf16>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 2, streaming_bytes = 1000, row_blocks = 4>} {
    ^bb0(%e: f32, %f: f32, %out: bf16):
      %0 = arith.mulf %e, %f : f32
      %1 = arith.truncf %0 : f32 to bf16
      linalg.yield %1 : bf16
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>
#transposed = affine_map<(n, c, s) -> (s, c, n)>

// A group without vector loops gets scalar loops, with a remark.
// CHECK-LABEL: func @transposed
// CHECK-NOT:     vector
// CHECK:         scf.parallel
func.func @transposed(%x: memref<7x3x2xf32>, %f: memref<3xf32>, %dx: memref<2x3x7xf32>) {
  // expected-remark @below {{scalar loops instead of vectors: expected data in the order of the loops, with contiguous rows}}
  linalg.generic {indexing_maps = [#transposed, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<7x3x2xf32>, memref<3xf32>) outs(%dx : memref<2x3x7xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %a: f32, %out: f32):
    %1 = arith.mulf %e, %a : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s, d) -> (n, c, s, d)>
#feature = affine_map<(n, c, s, d) -> (c, d)>

// CHECK-LABEL: func @no_such_loops
// CHECK:         scf.parallel
func.func @no_such_loops(%x: memref<2x3x7x5xf32>, %f: memref<3x5xf32>, %dx: memref<2x3x7x5xf32>) {
  // expected-remark @below {{scalar loops instead of vectors: expected loops [N, C, S], [C, S] or [N, C] over dense data}}
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<2x3x7x5xf32>, memref<3x5xf32>) outs(%dx : memref<2x3x7x5xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %a: f32, %out: f32):
    %1 = arith.mulf %e, %a : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// A line is more than a vector of 16-bit elements in short registers, and the hint has the alignment of the vector.
// CHECK-LABEL: func @short_registers
// CHECK:         vector.store %{{.+}} {alignment = 32 : i64, nontemporal = true} : memref<148800xi16>, vector<16xi16>
func.func @short_registers(%x: memref<8x6x3100xf32>, %a: memref<6xf32>, %dx: memref<8x6x3100xbf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %a : memref<8x6x3100xf32>, memref<6xf32>) outs(%dx : memref<8x6x3100xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 128, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %f: f32, %out: bf16):
    %0 = arith.mulf %e, %f : f32
    %1 = arith.truncf %0 : f32 to bf16
    linalg.yield %1 : bf16
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// A channel's value that is stored to all of its elements.
// CHECK-LABEL: func @channel_to_elements
// CHECK:         %[[VALUE:.+]] = vector.broadcast %{{.+}} : f32 to vector<64xf32>
// CHECK:         vector.store %[[VALUE]]
func.func @channel_to_elements(%a: memref<6xf32>, %dx: memref<8x6x3100xf32>) {
  linalg.generic {indexing_maps = [#feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : memref<6xf32>) outs(%dx : memref<8x6x3100xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%f: f32, %out: f32):
    linalg.yield %f : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>
#channel = affine_map<(c) -> (c)>
#scalar = affine_map<(c) -> ()>

// A per-channel body that may trap is not vectorized: a lane past the last channel would trap.
// CHECK-LABEL: func @channels_that_may_trap
// CHECK:         arith.divsi %c100{{.*}}, %{{.+}} : i32
// CHECK-NOT:     arith.divsi
// CHECK:         memref.store %{{.+}}, %{{.+}} : memref<64xf32>
// CHECK:         return
func.func @channels_that_may_trap(%x: memref<1000x64xf32>, %sum: memref<64xf32>, %n: memref<i32>, %f: memref<64xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<1000x64xf32>) outs(%sum : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#channel, #scalar, #channel], iterator_types = ["parallel"]}
        ins(%sum, %n : memref<64xf32>, memref<i32>) outs(%f : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%s: f32, %m: i32, %out: f32):
      %c100 = arith.constant 100 : i32
      %0 = arith.divsi %c100, %m : i32
      %1 = arith.sitofp %0 : i32 to f32
      %2 = arith.mulf %s, %1 : f32
      linalg.yield %2 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// An operand that is not read has no table. The one table has 448 elements.
// CHECK-LABEL: func @unused
// CHECK-SAME:    %[[UNUSED:[^:,]+]]: memref<64xf32>, %[[F:[^:,]+]]: memref<64xf32>,
// CHECK-NOT:     %[[UNUSED]]
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<1792xi8>
// CHECK-NOT:     memref.alloc
// CHECK:         vector.load %[[F]]
// CHECK:         return
func.func @unused(%x: memref<1000x64xf32>, %unused: memref<64xf32>, %f: memref<64xf32>, %y: memref<1000x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %unused, %f : memref<1000x64xf32>, memref<64xf32>, memref<64xf32>) outs(%y : memref<1000x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %u: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// As many columns as registers hold: the sums of all are carried from row to row.
// CHECK-LABEL: func @columns_in_all_registers
// CHECK:         scf.for {{.+}} iter_args({{.+}}) -> (vector<64xf32>, vector<64xf32>) {
// CHECK-COUNT-2:   vector.load %{{.+}} : memref<128000xf32>, vector<64xf32>
// CHECK:           scf.yield
func.func @columns_in_all_registers(%x: memref<1000x128xf32>, %sum: memref<128xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1000x128xf32>) outs(%sum : memref<128xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Rows of whole vectors have no rest.
// CHECK-LABEL: func @no_rest
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @no_rest(%x: memref<8x6x128xf32>, %sum: memref<6xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<8x6x128xf32>) outs(%sum : memref<6xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// The rest of a row by registers, of which each is added where it has an element.
// CHECK-LABEL: func @dynamic_rest
// CHECK:         %[[REST:.+]] = arith.remui %{{.+}}, %c64
// CHECK:         arith.cmpi ugt, %[[REST]], %c16
// CHECK:         arith.cmpi ugt, %[[REST]], %c32
// CHECK:         arith.cmpi ugt, %[[REST]], %c48
func.func @dynamic_rest(%x: memref<8x6x?xf32>, %sum: memref<6xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<8x6x?xf32>) outs(%sum : memref<6xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Short rows of a channel are taken as tiles, each thread those of its own.
// CHECK-LABEL: func @tiles
// CHECK:         vector.load %{{.+}} : memref<100352xf32>, vector<64xf32>
// CHECK:         vector.constant_mask [49] : vector<64xi1>
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @tiles(%x: memref<64x32x49xf32>, %sum: memref<32xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<64x32x49xf32>) outs(%sum : memref<32xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// The choice at run time: few channels of much data are split, many short rows of many
// samples are tiles.
// CHECK-LABEL: func @sizes
// CHECK-SAME:    (%[[X:.+]]: memref<?x?x?xf32>,
// CHECK-DAG:     %[[N:.+]] = memref.dim %[[X]], %c0
// CHECK-DAG:     %[[C:.+]] = memref.dim %[[X]], %c1
// CHECK-DAG:     %[[S:.+]] = memref.dim %[[X]], %c2
// CHECK-DAG:     %[[ROWS:.+]] = arith.muli %[[N]], %[[C]]
// CHECK-DAG:     %[[COUNT:.+]] = arith.muli %[[ROWS]], %[[S]]
// CHECK-DAG:     %[[FEW:.+]] = arith.cmpi ult, %[[C]], %c8
// CHECK-DAG:     %[[MUCH:.+]] = arith.cmpi uge, %[[COUNT]], %c16384
// CHECK:         %[[SPLIT:.+]] = arith.andi %[[FEW]], %[[MUCH]]
// CHECK:         scf.if %[[SPLIT]] {
// CHECK-NEXT:      arith.addi %[[S]], %c16383
// CHECK:         } else {
// CHECK-DAG:       %[[VERY:.+]] = arith.cmpi ult, %[[S]], %c16
// CHECK-DAG:       %[[SOME:.+]] = arith.cmpi uge, %[[ROWS]], %c64
// CHECK-DAG:       %[[SAMPLES:.+]] = arith.cmpi uge, %[[N]], %c16
// CHECK-DAG:       %[[BOTH:.+]] = arith.andi %[[VERY]], %[[SOME]]
// CHECK-DAG:       %[[LEFT:.+]] = arith.andi %[[BOTH]], %[[SAMPLES]]
// CHECK-DAG:       %[[SHORT:.+]] = arith.cmpi ult, %[[S]], %c256
// CHECK-DAG:       %[[MANY:.+]] = arith.cmpi uge, %[[ROWS]], %c8192
// CHECK-DAG:       %[[MORE:.+]] = arith.cmpi uge, %[[N]], %c32
// CHECK-DAG:       %[[ALSO:.+]] = arith.andi %[[SHORT]], %[[MANY]]
// CHECK-DAG:       %[[RIGHT:.+]] = arith.andi %[[ALSO]], %[[MORE]]
// CHECK-DAG:       %[[EITHER:.+]] = arith.ori %[[LEFT]], %[[RIGHT]]
// CHECK-DAG:       %[[LARGE:.+]] = arith.cmpi uge, %[[COUNT]], %c699051
// CHECK:           %[[TILES:.+]] = arith.ori %[[EITHER]], %{{.+}}
// CHECK:           scf.if %[[TILES]] {
func.func @sizes(%x: memref<?x?x?xf32>, %sum: memref<?xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<?x?x?xf32>) outs(%sum : memref<?xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<sizes>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// A scalar is read once and needs no table.
// CHECK-LABEL: func @scalar_beside_channels
// CHECK-SAME:    %[[S:[^:,]+]]: memref<f32>,
// CHECK:         memref.load %[[S]][]
// CHECK:         vector.store
// CHECK:         return
func.func @scalar_beside_channels(%x: memref<1000x64xf32>, %s: memref<f32>, %f: memref<64xf32>, %y: memref<1000x64xf32>) {
  linalg.generic {indexing_maps = [#data, affine_map<(r, c) -> ()>, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %f : memref<1000x64xf32>, memref<f32>, memref<64xf32>) outs(%y : memref<1000x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %u: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    %1 = arith.addf %0, %u : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>

// A mask by position, the same for all rows, is read as the bytes it is.
// CHECK-LABEL: func @mask_by_position
// CHECK-SAME:    %[[K:[^:,]+]]: memref<3100xi1>,
// CHECK:         %[[BYTES:.+]] = bngrad.element_cast %[[K]] : memref<3100xi1> to memref<3100xi8>
// CHECK:         %[[M:.+]] = vector.load %[[BYTES]]{{.+}} : memref<3100xi8>, vector<16xi8>
// CHECK:         arith.cmpi ne, %[[M]],
// CHECK:         return
func.func @mask_by_position(%x: memref<8x6x3100xf32>, %k: memref<3100xi1>, %sum: memref<6xf32>) {
  linalg.generic {indexing_maps = [#data, affine_map<(n, c, s) -> (s)>, affine_map<(n, c, s) -> (c)>], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x, %k : memref<8x6x3100xf32>, memref<3100xi1>) outs(%sum : memref<6xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %m: i1, %acc: f32):
    %zero = arith.constant 0.0 : f32
    %0 = arith.select %m, %e, %zero : f32
    %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// A mask by channel is copied to where the elements of the channel are, and read there.
// CHECK-LABEL: func @mask_of_channels
// CHECK:         %[[M:.+]] = arith.cmpi ne, %{{.+}}, %{{.+}} : vector<64xi8>
// CHECK:         arith.select %[[M]], %{{.+}}, %{{.+}} : vector<64xi1>, vector<64xf32>
// CHECK:         return
func.func @mask_of_channels(%x: memref<1000x64xf32>, %k: memref<64xi1>, %f: memref<64xf32>, %y: memref<1000x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %k, %f : memref<1000x64xf32>, memref<64xi1>, memref<64xf32>) outs(%y : memref<1000x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %m: i1, %g: f32, %out: f32):
    %0 = arith.select %m, %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// A short table of few channels is filled from a register.
// CHECK-LABEL: func @few_channels
// CHECK-SAME:    (%{{.+}}: memref<7x3xf32>, %[[F:.+]]: memref<3xf32>,
// CHECK-NOT:     scf.while
// CHECK:         %[[VALUES:.+]] = vector.maskedload %[[F]]
// CHECK:         vector.shuffle %[[VALUES]], %[[VALUES]] [0, 1, 2, 0, 1, 2, 0, 1] : vector<8xf32>, vector<8xf32>
// CHECK:         vector.shuffle %[[VALUES]], %[[VALUES]] [2, 0, 1, 2, 0, 1, 2, 0] : vector<8xf32>, vector<8xf32>
// CHECK:         vector.shuffle %[[VALUES]], %[[VALUES]] [1, 2, 0, 1, 2, 0, 1, 2] : vector<8xf32>, vector<8xf32>
// CHECK:         return
func.func @few_channels(%x: memref<7x3xf32>, %f: memref<3xf32>, %dx: memref<7x3xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<7x3xf32>, memref<3xf32>) outs(%dx : memref<7x3xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 256>} {
  ^bb0(%e: f32, %a: f32, %out: f32):
    %0 = arith.mulf %e, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Elements of bf16 are extended in pairs, the even ones in the lower lanes and the odd ones in the upper lanes, and are
// joined when they are stored. A masked piece has them one by one.
// CHECK-LABEL: func @pairs
// CHECK-DAG:     %[[SIXTEEN:.+]] = arith.constant dense<16> : vector<32xi32>
// CHECK-DAG:     %[[UPPER:.+]] = arith.constant dense<-65536> : vector<32xi32>
// CHECK:         vector.load %{{.+}} : memref<148800xi16>, vector<64xi16>
// CHECK:         %[[BITS:.+]] = vector.load %{{.+}} : memref<148800xi16>, vector<64xi16>
// CHECK-NEXT:    %[[PAIRS:.+]] = vector.bitcast %[[BITS]] : vector<64xi16> to vector<32xi32>
// CHECK-NEXT:    %[[EVEN_BITS:.+]] = arith.shli %[[PAIRS]], %[[SIXTEEN]]
// CHECK-NEXT:    %[[ODD_BITS:.+]] = arith.andi %[[PAIRS]], %[[UPPER]]
// CHECK-DAG:     %[[EVEN:.+]] = arith.bitcast %[[EVEN_BITS]] : vector<32xi32> to vector<32xf32>
// CHECK-DAG:     %[[ODD:.+]] = arith.bitcast %[[ODD_BITS]] : vector<32xi32> to vector<32xf32>
// CHECK:         %[[E:.+]] = vector.shuffle %[[EVEN]], %[[ODD]] [0, 1, 2, {{.*}}, 62, 63]
// CHECK:         %[[SCALED:.+]] = arith.mulf %[[E]], %{{.+}} : vector<64xf32>
// CHECK-NEXT:    %[[LOWER:.+]] = vector.extract_strided_slice %[[SCALED]] {offsets = [0], sizes = [32]
// CHECK-NEXT:    %[[EVEN:.+]] = arith.truncf %[[LOWER]] : vector<32xf32> to vector<32xbf16>
// CHECK-NEXT:    %[[UPPER:.+]] = vector.extract_strided_slice %[[SCALED]] {offsets = [32], sizes = [32]
// CHECK-NEXT:    %[[ODD:.+]] = arith.truncf %[[UPPER]] : vector<32xf32> to vector<32xbf16>
// CHECK-NEXT:    %[[JOINED:.+]] = vector.interleave %[[EVEN]], %[[ODD]]
// CHECK-NEXT:    vector.store %[[JOINED]], %{{.+}} : memref<148800xbf16>, vector<64xbf16>
// CHECK:         vector.maskedload %{{.+}} : memref<148800xi16>, vector<16xi1>, vector<16xi16> into vector<16xi16>
// CHECK:         arith.extf %{{.+}} : vector<16xbf16> to vector<16xf32>
// CHECK:         return
func.func @pairs(%x: memref<8x6x3100xbf16>, %f: memref<6xf32>, %sum: memref<6xf32>, %y: memref<8x6x3100xbf16>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<8x6x3100xbf16>) outs(%sum : memref<6xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: bf16, %acc: f32):
      %0 = arith.extf %e : bf16 to f32
      %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<8x6x3100xbf16>, memref<6xf32>) outs(%y : memref<8x6x3100xbf16>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: bf16, %a: f32, %out: bf16):
      %0 = arith.extf %e : bf16 to f32
      %1 = arith.mulf %0, %a : f32
      %2 = arith.truncf %1 : f32 to bf16
      linalg.yield %2 : bf16
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Elements are extended before they are compared and selected, so these are pairs, too.
// CHECK-LABEL: func @pairs_of_choices
// CHECK-COUNT-2: vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK:         %[[LESS:.+]] = arith.cmpf olt, %{{.+}}, %{{.+}} : vector<64xf32>
// CHECK:         %[[CHOICE:.+]] = arith.select %[[LESS]], %{{.+}}, %{{.+}} : vector<64xi1>, vector<64xf32>
// CHECK:         %[[POSITIVE:.+]] = arith.cmpf ogt, %{{.+}}, %{{.+}} : vector<64xf32>
// CHECK:         arith.select %[[POSITIVE]], %[[CHOICE]], %{{.+}} : vector<64xi1>, vector<64xf32>
// CHECK:         vector.interleave
// CHECK:         return
func.func @pairs_of_choices(%x: memref<8x6x3100xbf16>, %k: memref<8x6x3100xbf16>, %f: memref<6xf32>, %y: memref<8x6x3100xbf16>) {
  %zero = arith.constant 0.0 : bf16
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %k, %f : memref<8x6x3100xbf16>, memref<8x6x3100xbf16>, memref<6xf32>) outs(%y : memref<8x6x3100xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: bf16, %g: bf16, %a: f32, %out: bf16):
    %less = arith.cmpf olt, %e, %g : bf16
    %choice = arith.select %less, %e, %zero : bf16
    %positive = arith.cmpf ogt, %g, %zero : bf16
    %masked = arith.select %positive, %choice, %g : bf16
    %0 = arith.extf %masked : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Not where the order of the lanes matters: beside data of another type, and for indices. Nor for other roundings.
// CHECK-LABEL: func @no_pairs
// CHECK-NOT:     vector.bitcast
// CHECK-NOT:     vector.interleave
// CHECK:         return
func.func @no_pairs(%x: memref<8x6x3100xbf16>, %k: memref<8x6x3100xf32>, %f: memref<6xf32>, %y: memref<8x6x3100xbf16>,
    %z: memref<8x6x3100xbf16>, %u: memref<8x6x3100xbf16>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %k, %f : memref<8x6x3100xbf16>, memref<8x6x3100xf32>, memref<6xf32>) outs(%y : memref<8x6x3100xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: bf16, %g: f32, %a: f32, %out: bf16):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.addf %1, %g : f32
    %3 = arith.truncf %2 : f32 to bf16
    linalg.yield %3 : bf16
  }
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<8x6x3100xbf16>, memref<6xf32>) outs(%z : memref<8x6x3100xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: bf16, %a: f32, %out: bf16):
    %i = linalg.index 2 : index
    %j = arith.index_cast %i : index to i32
    %g = arith.sitofp %j : i32 to f32
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.addf %1, %g : f32
    %3 = arith.truncf %2 : f32 to bf16
    linalg.yield %3 : bf16
  }
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<8x6x3100xbf16>, memref<6xf32>) outs(%u : memref<8x6x3100xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: bf16, %a: f32, %out: bf16):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.truncf %1 upward : f32 to bf16
    linalg.yield %2 : bf16
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Pairs of `rows`: the entries of the table of a row of one piece are put into the order of pairs before the rows are
// read, and the chains back into the order of memory after it.
// CHECK-LABEL: func @pairs_of_narrow_rows
// CHECK:         %[[MEANS:.+]] = vector.load %{{.+}} : memref<448xf32>, vector<64xf32>
// CHECK-NEXT:    %[[ORDERED:.+]] = vector.shuffle %[[MEANS]], %[[MEANS]] [0, 2, 4, {{.*}}, 62, 1, 3, {{.*}}, 61, 63]
// CHECK-NEXT:    %[[CHAIN:.+]] = scf.for {{.+}} -> (vector<64xf32>)
// CHECK:           %[[BITS:.+]] = vector.load %{{.+}} : memref<128000xi16>, vector<64xi16>
// CHECK-NEXT:      vector.bitcast %[[BITS]] : vector<64xi16> to vector<32xi32>
// CHECK:           arith.subf %{{.+}}, %[[ORDERED]] : vector<64xf32>
// CHECK:         vector.shuffle %[[CHAIN]], %[[CHAIN]] [0, 32, 1, 33, {{.*}}, 31, 63]
// CHECK:         %[[ORDERED_FACTORS:.+]] = vector.shuffle %[[FACTORS:.+]], %[[FACTORS]] [0, 2, 4, {{.*}}, 62, 1, 3, {{.*}}, 61, 63]
// CHECK-NEXT:    scf.for
// CHECK:           arith.mulf %{{.+}}, %[[ORDERED_FACTORS]] : vector<64xf32>
// CHECK:           %[[JOINED:.+]] = vector.interleave
// CHECK-NEXT:      vector.store %[[JOINED]], %{{.+}} : memref<128000xbf16>, vector<64xbf16>
// CHECK:         return
func.func @pairs_of_narrow_rows(%x: memref<2000x64xbf16>, %m: memref<64xf32>, %sum: memref<64xf32>, %y: memref<2000x64xbf16>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x, %m : memref<2000x64xbf16>, memref<64xf32>) outs(%sum : memref<64xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: bf16, %mean: f32, %acc: f32):
      %0 = arith.extf %e : bf16 to f32
      %1 = arith.subf %0, %mean : f32
      %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
      linalg.yield %2 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<2000x64xbf16>, memref<64xf32>) outs(%y : memref<2000x64xbf16>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: bf16, %a: f32, %out: bf16):
      %0 = arith.extf %e : bf16 to f32
      %1 = arith.mulf %0, %a : f32
      %2 = arith.truncf %1 : f32 to bf16
      linalg.yield %2 : bf16
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// For wide rows of data in a cache there is a table in the order of pairs. Four rows are added to a chain at once, and the
// rest of them one by one, in the same order.
// CHECK-LABEL: func @wide_rows
// CHECK:         scf.for %{{.+}} = %c0 to %c512 step %c64
// CHECK:         %[[MEANS:.+]] = vector.load %{{.+}} : memref<896xf32>, vector<64xf32>
// CHECK-NEXT:    %[[ORDERED:.+]] = vector.shuffle %[[MEANS]], %[[MEANS]] [0, 2, 4, {{.*}}, 62, 1, 3, {{.*}}, 61, 63]
// CHECK-NEXT:    vector.store %[[ORDERED]], %[[TABLE:.+]][
// CHECK:         %[[REST:.+]] = arith.remui %{{.+}}, %c4 : index
// CHECK-NEXT:    %[[WHOLE:.+]] = arith.subi %[[END:.+]], %[[REST]] : index
// CHECK-NEXT:    scf.for %{{.+}} = %{{.+}} to %[[WHOLE]] step %c4
// CHECK-NEXT:      scf.for %{{.+}} = %c0 to %c512 step %c64
// CHECK-NEXT:        vector.load %[[TABLE]][
// CHECK:             %[[CHAIN:.+]] = vector.load %{{.+}} : memref<896xf32>, vector<64xf32>
// CHECK-COUNT-4:     vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK-NOT:         vector.bitcast
// CHECK:             vector.store %{{.+}} : memref<896xf32>, vector<64xf32>
// CHECK:         scf.for %{{.+}} = %[[WHOLE]] to %[[END]] step %c1
// CHECK-NEXT:      scf.for %{{.+}} = %c0 to %c512 step %c64
// CHECK-NEXT:        vector.load %[[TABLE]][
// CHECK-COUNT-1:     vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK-NOT:         vector.bitcast
// CHECK:         vector.shuffle %[[CHAINS:.+]], %[[CHAINS]] [0, 32, 1, 33, {{.*}}, 31, 63]
// CHECK:         return
func.func @wide_rows(%x: memref<500x512xbf16>, %m: memref<512xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %m : memref<500x512xbf16>, memref<512xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: bf16, %mean: f32, %acc: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.subf %0, %mean : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Registers of 128 bits are enough for four rows on NEON, which has 32 of them, but not on x86-64.
// CHECK-LABEL: func @wide_rows_on_neon
// CHECK:         %[[REST:.+]] = arith.remui %{{.+}}, %c4 : index
// CHECK-NEXT:    %[[WHOLE:.+]] = arith.subi %{{.+}}, %[[REST]] : index
// CHECK-NEXT:    scf.for %{{.+}} = %{{.+}} to %[[WHOLE]] step %c4
// CHECK-NEXT:      scf.for %{{.+}} = %c0 to %c512 step %c16
// CHECK-COUNT-4:     vector.bitcast %{{.+}} : vector<16xi16> to vector<8xi32>
// CHECK-NOT:         vector.bitcast
// CHECK:             vector.store
// CHECK:         return
func.func @wide_rows_on_neon(%x: memref<500x512xbf16>, %m: memref<512xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %m : memref<500x512xbf16>, memref<512xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 128, fma = true>} {
  ^bb0(%e: bf16, %mean: f32, %acc: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.subf %0, %mean : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// CHECK-LABEL: func @wide_rows_of_short_registers
// CHECK-COUNT-1: vector.bitcast %{{.+}} : vector<16xi16> to vector<8xi32>
// CHECK-NOT:     vector.bitcast
// CHECK:         return
func.func @wide_rows_of_short_registers(%x: memref<500x512xbf16>, %m: memref<512xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %m : memref<500x512xbf16>, memref<512xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 128>} {
  ^bb0(%e: bf16, %mean: f32, %acc: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.subf %0, %mean : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Wide rows of longer data are read one by one, in pairs too.
// CHECK-LABEL: func @wide_rows_from_memory
// CHECK-NOT:     step %c4
// CHECK-COUNT-1: vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK-NOT:     vector.bitcast
// CHECK:         vector.shuffle %[[CHAINS:.+]], %[[CHAINS]] [0, 32, 1, 33, {{.*}}, 31, 63]
// CHECK:         return
func.func @wide_rows_from_memory(%x: memref<512x512xbf16>, %m: memref<512xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %m : memref<512x512xbf16>, memref<512xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: bf16, %mean: f32, %acc: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.subf %0, %mean : f32
    %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>
#sample = affine_map<(n, c, s) -> (n)>

// Pairs of `tiles`, beside an operand that has one value in a row of a tile.
// CHECK-LABEL: func @pairs_of_tiles
// CHECK:         scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c4
// CHECK:           memref.load %{{.+}} : memref<16xf32>
// CHECK:           vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK:         return
func.func @pairs_of_tiles(%x: memref<16x64x49xbf16>, %m: memref<64xf32>, %k: memref<16xf32>, %sum: memref<64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #sample, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x, %m, %k : memref<16x64x49xbf16>, memref<64xf32>, memref<16xf32>) outs(%sum : memref<64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles>} {
  ^bb0(%e: bf16, %mean: f32, %w: f32, %acc: f32):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.subf %0, %mean : f32
    %2 = arith.mulf %1, %w : f32
    %3 = arith.addf %acc, %2 fastmath<reassoc> : f32
    linalg.yield %3 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Chains of 8 terms, of 16 from 256 terms on, and of 32 from 4096 on.
// CHECK-LABEL: func @chains
// CHECK:         scf.for %{{.+}} = %c0 to %c255 step %c8 iter_args
// CHECK:         scf.for %{{.+}} = %c0 to %c256 step %c16 iter_args
// CHECK:         scf.for %{{.+}} = %c0 to %c4095 step %c16 iter_args
// CHECK:         scf.for %{{.+}} = %c0 to %c4096 step %c32 iter_args
func.func @chains(%a: memref<255x2x1xf32>, %b: memref<256x2x1xf32>, %c: memref<4095x2x1xf32>, %d: memref<4096x2x1xf32>,
                  %s: memref<2xf32>, %t: memref<2xf32>, %u: memref<2xf32>, %v: memref<2xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%a : memref<255x2x1xf32>) outs(%s : memref<2xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%b : memref<256x2x1xf32>) outs(%t : memref<2xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%c : memref<4095x2x1xf32>) outs(%u : memref<2xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%d : memref<4096x2x1xf32>) outs(%v : memref<2xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Elements that are read by tables are pairs: whole pieces of a row have a table in the order of pairs, and the rest of it
// has one in the order of memory.
// CHECK-LABEL: func @pairs_of_tabled_elements
// CHECK:         %[[FACTORS:.+]] = vector.load %[[IN_ORDER:.+]][%{{.+}}] : memref<960xf32>, vector<64xf32>
// CHECK-NEXT:    %[[ORDERED:.+]] = vector.shuffle %[[FACTORS]], %[[FACTORS]] [0, 2, 4, {{.*}}, 62, 1, 3, {{.*}}, 61, 63]
// CHECK-NEXT:    vector.store %[[ORDERED]], %[[TABLE:.+]][
// CHECK:         scf.for %{{.+}} = %c0 to %{{.+}} step %c64
// CHECK:           vector.bitcast %{{.+}} : vector<64xi16> to vector<32xi32>
// CHECK:           %[[FACTORS:.+]] = vector.load %[[TABLE]][
// CHECK:           arith.mulf %{{.+}}, %[[FACTORS]] : vector<64xf32>
// CHECK:           vector.interleave
// CHECK-NOT:     vector.interleave
// CHECK:         vector.maskedload %[[IN_ORDER]][
// CHECK:         return
func.func @pairs_of_tabled_elements(%x: memref<500x520xbf16>, %f: memref<520xf32>, %y: memref<500x520xbf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<500x520xbf16>, memref<520xf32>) outs(%y : memref<500x520xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 512>} {
  ^bb0(%e: bf16, %a: f32, %out: bf16):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Not where they are streamed, from the first line of the result on.
// CHECK-LABEL: func @no_pairs_of_streamed_elements
// CHECK-NOT:     vector.interleave
// CHECK:         return
func.func @no_pairs_of_streamed_elements(%x: memref<500x520xbf16>, %f: memref<520xf32>, %y: memref<500x520xbf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<500x520xbf16>, memref<520xf32>) outs(%y : memref<500x520xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1>} {
  ^bb0(%e: bf16, %a: f32, %out: bf16):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Nor on NEON, which computes elements in order with fewer instructions.
// CHECK-LABEL: func @no_pairs_on_neon
// CHECK-NOT:     vector.bitcast
// CHECK-NOT:     vector.interleave
// CHECK:         return
func.func @no_pairs_on_neon(%x: memref<500x520xbf16>, %f: memref<520xf32>, %y: memref<500x520xbf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<500x520xbf16>, memref<520xf32>) outs(%y : memref<500x520xbf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 128, fma = true>} {
  ^bb0(%e: bf16, %a: f32, %out: bf16):
    %0 = arith.extf %e : bf16 to f32
    %1 = arith.mulf %0, %a : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  }
  return
}
