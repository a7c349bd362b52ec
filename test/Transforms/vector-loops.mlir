// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --cse --split-input-file --verify-diagnostics --mlir-print-local-scope \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule | FileCheck %s

// The loops verify and lower, for registers of any length.
// RUN: bngrad-opt %s --split-input-file --bngrad-cpu-pipeline -o /dev/null

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>
#channel = affine_map<(c) -> (c)>

// A group with `channels`: each thread takes a share of the channels. It adds the terms of rows in chains of 32 vectors
// of four registers. The remainder of a row precedes the first vector, each element in the lane it would have in
// another vector. Then it computes the per-channel values, and reads the channel again, in reverse order.
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
// CHECK:             vector.reduction <add>, %{{.+}} fastmath<reassoc> : vector<64xf32> into f32
// CHECK:             memref.store %{{.+}}, %[[SUM]][%[[C]]]
// CHECK:             math.sqrt
// CHECK:             memref.store %{{.+}}, %[[FACTOR]][%[[C]]]
// CHECK:             %[[F:.+]] = memref.load %[[FACTOR]][%[[C]]]
// CHECK:             scf.for %[[ROW:.+]] = %c0 to %c8 step %c1
// CHECK:               arith.subi %c7, %[[ROW]]
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
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
        ins(%sum : memref<6xf32>) outs(%factor : memref<6xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %out: f32):
      %0 = math.sqrt %e : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %factor : memref<8x6x3100xf32>, memref<6xf32>) outs(%dx : memref<8x6x3100xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 3, streaming_bytes = 1000>} {
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

// Two tensors of f32 are prefetched, but not three.
// CHECK-LABEL: func @eight_bytes
// CHECK-COUNT-8: memref.prefetch
// CHECK:         return
func.func @eight_bytes(%x: memref<8x6x3100xf32>, %y: memref<8x6x3100xf32>, %a: memref<6xf32>, %dx: memref<8x6x3100xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %a : memref<8x6x3100xf32>, memref<8x6x3100xf32>, memref<6xf32>) outs(%dx : memref<8x6x3100xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %f: f32, %factor: f32, %out: f32):
    %0 = arith.mulf %e, %factor : f32
    %1 = arith.addf %0, %f : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func @ten_bytes
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @ten_bytes(%x: memref<8x6x3100xf32>, %y: memref<8x6x3100xf32>, %z: memref<8x6x3100xf16>, %a: memref<6xf32>, %dx: memref<8x6x3100xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %z, %a : memref<8x6x3100xf32>, memref<8x6x3100xf32>, memref<8x6x3100xf16>, memref<6xf32>) outs(%dx : memref<8x6x3100xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1000>} {
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
// CHECK:         %[[BYTES:.+]] = builtin.unrealized_conversion_cast %{{.+}} : memref<384xi1> to memref<384xi8>
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
// CHECK-NEXT:    %[[LENGTH:.+]] = arith.select %[[SHORT]], %c64, %c128
// CHECK-NEXT:    %[[LAST:.+]] = arith.subi %[[END:.+]], %c1
// CHECK-NEXT:    %[[BASE:.+]] = arith.muli %[[LAST]], %[[COLUMNS]]
// CHECK-NEXT:    %[[ENOUGH:.+]] = arith.cmpi ule, %[[COLUMNS]], %[[LENGTH]]
// CHECK-NEXT:    %[[BEHIND:.+]] = arith.addi %[[BASE]], %[[LENGTH]]
// CHECK-NEXT:    %[[INSIDE:.+]] = arith.cmpi ule, %[[BEHIND]], %[[COUNT]]
// CHECK-NEXT:    %[[FITS:.+]] = arith.andi %[[ENOUGH]], %[[INSIDE]]
// CHECK-NEXT:    scf.if %[[FITS]] {
// CHECK:           scf.for %{{.+}} to %[[END]] step %c1 iter_args({{.+}}) -> (vector<64xf32>)
// CHECK:         } else {
// CHECK:           scf.for %{{.+}} to %[[END]] step %c1 iter_args({{.+}}) -> (vector<128xf32>)
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
// The first share adds the sums of the four blocks in order for each column, and then those of the 32 columns of a
// channel:
// CHECK:         scf.parallel (%[[SHARE:.+]]) = {{.*}} to (%c2)
// CHECK:           %[[FIRST:.+]] = arith.cmpi eq, %[[SHARE]], %c0
// CHECK:           scf.if %[[FIRST]] {
// CHECK:             scf.for %{{.+}} = %c0 to %c4 step %c1 iter_args({{.+}}) -> (vector<64xf32>, vector<64xf32>)
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c1 iter_args({{.+}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:           vector.maskedstore %[[SUM]]
// Each thread replicates the per-channel values into its table, by doubling:
// CHECK:         scf.parallel {{.*}} to (%c2)
// CHECK:           vector.maskedload %[[SUM]]
// CHECK:           scf.while
// CHECK:           vector.store %{{.+}} {alignment = 64 : i64, nontemporal = true} : memref<300000xi16>, vector<64xi16>
// Partial lines are not streamed:
// CHECK-NOT:       nontemporal
// CHECK:           vector.store %{{.+}} : memref<300000xbf16>, vector<16xbf16>
// CHECK-NOT:     linalg.generic
func.func @rows(%x: memref<100000x3xf32>, %sum: memref<3xf32>, %dx: memref<100000x3xbf16>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<100000x3xf32>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 2, streaming_bytes = 1000, blocks = 4>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<100000x3xf32>, memref<3xf32>) outs(%dx : memref<100000x3xbf16>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 2, streaming_bytes = 1000, blocks = 4>} {
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
  // expected-remark @below {{scalar loops instead of vectors: expected dense data in the order of the loops}}
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
