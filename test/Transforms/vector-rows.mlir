// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --cse --split-input-file --mlir-print-local-scope | FileCheck %s

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Rows of four registers: a step loads the per-channel values once. The last row may be shorter, after elements up to the
// first line, and is read in masked vectors, with tables.
// CHECK-LABEL: func @narrow
// CHECK-SAME:    (%[[X:.+]]: memref<10000x64xf32>, %[[F:.+]]: memref<64xf32>, %[[DX:.+]]: memref<10000x64xf32>)
// CHECK-DAG:     %[[FLAT_X:.+]] = memref.collapse_shape %[[X]]
// CHECK-DAG:     %[[FLAT_DX:.+]] = memref.collapse_shape %[[DX]]
// CHECK:         %[[TABLE:.+]] = memref.view
// CHECK:           arith.divui %{{.+}}, %c64
// CHECK:           %[[FACTORS:.+]] = vector.load %[[TABLE]][%{{.+}}] : {{.+}}, vector<64xf32>
// CHECK-NEXT:      scf.for
// A line of the page of the result after the next one:
// CHECK:             arith.addi %{{.+}}, %c2048
// CHECK:             memref.prefetch %[[FLAT_DX]]
// CHECK:             %[[E:.+]] = vector.load %[[FLAT_X]][%{{.+}}] : memref<640000xf32>, vector<64xf32>
// CHECK-NEXT:        %[[P:.+]] = arith.mulf %[[E]], %[[FACTORS]] : vector<64xf32>
// CHECK-NEXT:        vector.store %[[P]], %[[FLAT_DX]][%{{.+}}] {alignment = 64 : i64, nontemporal = true}
// CHECK-NEXT:      }
// CHECK:           scf.for
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.create_mask
// CHECK:             vector.maskedload %[[FLAT_X]]
// CHECK:             vector.maskedload %[[TABLE]]
// CHECK:             vector.maskedstore %[[FLAT_DX]]
// CHECK-NOT:         vector.store
// CHECK:           return
func.func @narrow(%x: memref<10000x64xf32>, %f: memref<64xf32>, %dx: memref<10000x64xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<10000x64xf32>, memref<64xf32>) outs(%dx : memref<10000x64xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Two results: neither is streamed. 16 channels are four rows at a time.
// CHECK-LABEL: func @two_results
// CHECK:         %[[FACTORS:.+]] = vector.load %{{.+}} : {{.+}}, vector<64xf32>
// CHECK-NEXT:    scf.for
// CHECK:           vector.store %{{.+}} : memref<16000xf32>, vector<64xf32>
// CHECK:           vector.store %{{.+}} : memref<16000xf32>, vector<64xf32>
// CHECK-NEXT:    }
// CHECK-NOT:     nontemporal
// CHECK:         return
func.func @two_results(%x: memref<1000x16xf32>, %f: memref<16xf32>, %y: memref<1000x16xf32>, %z: memref<1000x16xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<1000x16xf32>, memref<16xf32>) outs(%y, %z : memref<1000x16xf32>, memref<1000x16xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %g: f32, %out: f32, %out2: f32):
    %0 = arith.mulf %e, %g : f32
    %1 = arith.addf %e, %g : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Lines of the second result may start elsewhere, so 16 rows are taken as one of 256 elements, with tables.
// CHECK-LABEL: func @second_result
// CHECK-SAME:    (%{{.+}}: {{.+}}, %{{.+}}: {{.+}}, %[[Y:.+]]: memref<1000x16xf32>, %[[Z:.+]]: memref<1000x16xf32>)
// CHECK-DAG:     %[[FLAT_Y:.+]] = memref.collapse_shape %[[Y]]
// CHECK-DAG:     %[[FLAT_Z:.+]] = memref.collapse_shape %[[Z]]
// CHECK:         arith.muli %{{.+}}, %c256
// CHECK:         vector.store %{{.+}}, %[[FLAT_Y]][%{{.+}}] {alignment = 64 : i64, nontemporal = true}
// CHECK-NEXT:    }
// CHECK:         memref.extract_aligned_pointer_as_index %[[FLAT_Z]]
// CHECK:         vector.store %{{.+}}, %[[FLAT_Z]][%{{.+}}] {alignment = 64 : i64, nontemporal = true}
func.func @second_result(%x: memref<1000x16xf32>, %f: memref<16xf32>, %y: memref<1000x16xf32>, %z: memref<1000x16xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<1000x16xf32>, memref<16xf32>) outs(%y : memref<1000x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<1000x16xf32>, memref<16xf32>) outs(%z : memref<1000x16xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.addf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// Four registers of 128 bits hold 16 results of 16 bits, which are half of a line: rows are not narrow.
// CHECK-LABEL: func @half_lines
// CHECK:         arith.muli %{{.+}}, %c256
func.func @half_lines(%x: memref<4000x16xf16>, %f: memref<16xf32>, %y: memref<4000x16xf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<4000x16xf16>, memref<16xf32>) outs(%y : memref<4000x16xf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000, vector_bits = 128>} {
  ^bb0(%e: f16, %g: f32, %out: f16):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  }
  return
}

// -----

#data = affine_map<(r, c) -> (r, c)>
#feature = affine_map<(r, c) -> (c)>

// 48 channels: no number of rows is four registers, so all rows are read with tables.
// CHECK-LABEL: func @not_narrow
// CHECK:         %[[TABLE:.+]] = memref.view
// CHECK:         %[[FACTORS:.+]] = vector.load %[[TABLE]][%{{.+}}] : {{.+}}, vector<64xf32>
// CHECK-NEXT:    arith.mulf %{{.+}}, %[[FACTORS]] : vector<64xf32>
func.func @not_narrow(%x: memref<1000x48xf32>, %f: memref<48xf32>, %dx: memref<1000x48xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<1000x48xf32>, memref<48xf32>) outs(%dx : memref<1000x48xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// The next channel is prefetched if two channels of each thread fit into the cache, and of the next row of the result a
// line of each page: 1024 elements. The rows are read in the order of the sums if the next channel is prefetched, and
// backwards if not.
// CHECK-LABEL: func @prefetched
// CHECK-SAME:    (%[[X:.+]]: memref<128x16x1024xf32>, %{{.+}}: memref<16xf32>, %[[DX:.+]]: memref<128x16x1024xf32>)
// CHECK-DAG:     %[[FLAT_X:.+]] = memref.collapse_shape %[[X]]
// CHECK-DAG:     %[[FLAT_DX:.+]] = memref.collapse_shape %[[DX]]
// CHECK:         scf.for %[[IMAGE:.+]] = %c0 to %c128 step %c1
// CHECK-NEXT:      arith.muli %[[IMAGE]], %c16
// CHECK:         %[[NEXT:.+]] = arith.addi %[[ROW:.+]], %c16384
// CHECK:         %[[IN_PAGE:.+]] = arith.remui %[[NEXT]], %c1024
// CHECK:         %[[PAGE:.+]] = arith.subi %[[NEXT]], %[[IN_PAGE]]
// CHECK:         %[[END:.+]] = arith.addi %[[ROW]], %c17408
// CHECK:         scf.for %[[P:.+]] = %[[PAGE]] to %[[END]] step %c1024
// CHECK:           %[[IN_DATA:.+]] = arith.minsi %[[P]], %c2097151
// CHECK:           memref.prefetch %[[FLAT_DX]][%[[IN_DATA]]], read
// CHECK:         memref.prefetch %[[FLAT_X]][
// CHECK-LABEL: func @not_prefetched
// CHECK-SAME:    (%[[X:[^:]+]]: memref<129x16x1024xf32>
// CHECK:         %[[FLAT_X:.+]] = memref.collapse_shape %[[X]]
// CHECK:         scf.for %[[IMAGE:.+]] = %c0 to %c129 step %c1
// CHECK-NEXT:      %[[BACK:.+]] = arith.subi %c128, %[[IMAGE]]
// CHECK:           %[[IS_FIRST:.+]] = arith.cmpi eq, %[[BACK]], %c0
// CHECK:           %[[BEFORE:.+]] = arith.subi %[[ROW:.+]], %c16384
// CHECK:           arith.select %[[IS_FIRST]], %[[ROW]], %[[BEFORE]]
// CHECK-NOT:     memref.prefetch %[[FLAT_X]][
// CHECK:         nontemporal
// CHECK-NOT:     memref.prefetch %[[FLAT_X]][
// CHECK:         return
// CHECK-LABEL: func @dynamic
// CHECK:         %[[IS_STREAMED:.+]] = arith.cmpi ugt, %{{.+}}, %c1048576
// CHECK:         %[[IS_SHORT:.+]] = arith.cmpi ule, %{{.+}}, %c131072
// CHECK:         %[[FITS:.+]] = arith.cmpi ule, %{{.+}}, %c1048576
// CHECK:         %[[BOTH:.+]] = arith.andi %[[IS_SHORT]], %[[FITS]]
// CHECK:         %[[ALL:.+]] = arith.andi %[[IS_STREAMED]], %[[BOTH]]
// CHECK:         %[[DISTANCE:.+]] = arith.select %[[ALL]], %{{.+}}, %c0
// CHECK:         %[[IS_FORWARD:.+]] = arith.cmpi ne, %[[DISTANCE]], %c0
// CHECK:         scf.for %[[IMAGE:.+]] =
// CHECK:           %[[BACK:.+]] = arith.subi %{{.+}}, %[[IMAGE]]
// CHECK-NEXT:      arith.select %[[IS_FORWARD]], %[[IMAGE]], %[[BACK]]
// CHECK:         memref.prefetch
func.func @prefetched(%x: memref<128x16x1024xf32>, %f: memref<16xf32>, %dx: memref<128x16x1024xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<128x16x1024xf32>, memref<16xf32>) outs(%dx : memref<128x16x1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1048576>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @not_prefetched(%x: memref<129x16x1024xf32>, %f: memref<16xf32>, %dx: memref<129x16x1024xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<129x16x1024xf32>, memref<16xf32>) outs(%dx : memref<129x16x1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1048576>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @dynamic(%x: memref<?x16x?xf32>, %f: memref<16xf32>, %dx: memref<?x16x?xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<?x16x?xf32>, memref<16xf32>) outs(%dx : memref<?x16x?xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1048576>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Pages of the tile in the next image.
// CHECK-LABEL: func @next_of_a_tile
// CHECK:         %[[NEXT:.+]] = arith.addi %{{.+}}, %c25088
// CHECK-NEXT:    arith.remui %[[NEXT]], %c1024
func.func @next_of_a_tile(%x: memref<64x512x49xf32>, %f: memref<512xf32>, %dx: memref<64x512x49xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<64x512x49xf32>, memref<512xf32>) outs(%dx : memref<64x512x49xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// Of 36 segments of 16384 elements, 24 have 3 MB: these are read forwards before a step back. Pages of the segment after
// each.
// CHECK-LABEL: func @next_of_a_segment
// CHECK:         scf.for %[[STEP:.+]] = %c0 to %c2 step %c1
// CHECK-NEXT:      %[[DONE:.+]] = arith.muli %[[STEP]], %c24
// CHECK-NEXT:      %[[TO:.+]] = arith.subi %c36, %[[DONE]]
// CHECK-NEXT:      %[[START:.+]] = arith.subi %c12, %[[DONE]]
// CHECK-NEXT:      %[[FROM:.+]] = arith.maxsi %[[START]], %c0
// CHECK-NEXT:      scf.for %{{.+}} = %[[FROM]] to %[[TO]] step %c1
// CHECK:         %[[ROW:.+]] = arith.muli %{{.+}}, %c40000
// CHECK:         %[[FIRST:.+]] = arith.addi %[[ROW]], %{{.+}}
// CHECK-NEXT:    %[[NEXT:.+]] = arith.addi %[[FIRST]], %c16384
// CHECK:         arith.remui %[[NEXT]], %c1024
func.func @next_of_a_segment(%x: memref<4x3x40000xf32>, %f: memref<3xf32>, %dx: memref<4x3x40000xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<4x3x40000xf32>, memref<3xf32>) outs(%dx : memref<4x3x40000xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<split, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Wide rows of data in a cache are added four at a time, and the next four are prefetched: 768 elements.
// CHECK-LABEL: func @wide_rows_in_a_cache
// CHECK-SAME:    (%[[X:[^:]+]]: memref<1001x192xf32>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[X]]
// CHECK:         scf.for %[[ROW:.+]] = %{{.+}} to %[[REST:.+]] step %c4
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        vector.load
// CHECK-NEXT:        %[[BASE:.+]] = arith.muli %[[ROW]], %c192
// CHECK:             %[[NEXT:.+]] = arith.addi %{{.+}}, %c768
// CHECK-NEXT:        %[[LAST:.+]] = arith.minsi %[[NEXT]], %c192128
// CHECK-NEXT:        memref.prefetch %[[FLAT]][%[[LAST]]], read
// CHECK-NEXT:        %[[LINE:.+]] = arith.addi %[[LAST]], %c16
// CHECK-NEXT:        memref.prefetch %[[FLAT]][%[[LINE]]], read
// CHECK:             vector.load %[[FLAT]]
// CHECK:             arith.addi %[[ROW]], %c1
// CHECK:             vector.load %[[FLAT]]
// CHECK:             arith.addi %[[ROW]], %c2
// CHECK:             vector.load %[[FLAT]]
// CHECK:             arith.addi %[[ROW]], %c3 :
// CHECK:             vector.load %[[FLAT]]
// CHECK-NOT:         vector.load
// CHECK:           scf.for %{{.+}} = %[[REST]] to %{{.+}} step %c1
// CHECK:             vector.load %[[FLAT]]
func.func @wide_rows_in_a_cache(%x: memref<1001x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1001x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// In memory they are added one by one, and prefetched a page ahead.
// CHECK-LABEL: func @wide_rows_in_memory
// CHECK-NOT:     step %c4
// CHECK:         arith.addi %{{.+}}, %c1024
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    memref.prefetch
// CHECK-NOT:     step %c4
// CHECK:         return
func.func @wide_rows_in_memory(%x: memref<1001x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1001x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// A thread has a share of 8 MiB in the last-level cache. Of the data of one thread and of two, only the latter are in the
// cache; the number of threads may be known at run time only.
// CHECK-LABEL: func @rows_beyond_a_share
// CHECK-NOT:     step %c4
// CHECK:         return
// CHECK-LABEL: func @rows_in_two_shares
// CHECK:         step %c4
// CHECK-LABEL: func @rows_in_shares
// CHECK-DAG:     %[[IN_CACHE:.+]] = arith.constant false
// CHECK:         %[[NUM:.+]] = bngrad.num_threads max 64
// CHECK:         %[[THREADS:.+]] = arith.index_cast %[[NUM]]
// CHECK:         %[[SHARES:.+]] = arith.muli %[[THREADS]], %c8388608
// CHECK:         %[[LIMIT:.+]] = arith.minsi %[[SHARES]], %c33554432
// CHECK:         %[[EXCEED:.+]] = arith.cmpi ult, %[[LIMIT]], %c8448000
// CHECK:         %[[FIT:.+]] = arith.cmpi eq, %[[EXCEED]], %[[IN_CACHE]]
// CHECK:         arith.select %[[FIT]], %c768, %c1024
// CHECK:         %[[END:.+]] = arith.select %[[FIT]]
// CHECK:         scf.for %{{.+}} = %{{.+}} to %[[END]] step %c4
func.func @rows_beyond_a_share(%x: memref<11000x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<11000x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @rows_in_two_shares(%x: memref<11000x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<11000x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 2, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @rows_in_shares(%x: memref<11000x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<11000x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, threads = 0, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// With registers of 256 bits, rows are added one by one in a cache, too.
// CHECK-LABEL: func @wide_rows_in_short_registers
// CHECK-NOT:     step %c4
// CHECK:         return
func.func @wide_rows_in_short_registers(%x: memref<1001x192xf32>, %sum: memref<192xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1001x192xf32>) outs(%sum : memref<192xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 256, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// A sum of 128 columns takes twice the registers of 256 bits that there are. In a near cache, each half of them is read
// from row to row; from 4 MiB on, each row is read whole.
// CHECK-LABEL: func @narrow_rows_in_a_cache
// CHECK:         scf.for %{{.+}} = %c0 to %c128 step %c64
// CHECK-NEXT:      scf.for %{{.+}} step %c1 iter_args(%{{.+}} = %{{.+}}) -> (vector<64xf32>)
// CHECK-LABEL: func @narrow_rows_in_memory
// CHECK-NOT:     -> (vector<64xf32>)
// CHECK:         scf.for %{{.+}} to %c128 step %c32
// CHECK-NEXT:      vector.load %{{.+}} : memref<384xf32>
// CHECK:           memref.prefetch
// CHECK-NOT:     -> (vector<64xf32>)
// CHECK:         return
func.func @narrow_rows_in_a_cache(%x: memref<8000x128xf32>, %sum: memref<128xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8000x128xf32>) outs(%sum : memref<128xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 256, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @narrow_rows_in_memory(%x: memref<8200x128xf32>, %sum: memref<128xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8200x128xf32>) outs(%sum : memref<128xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, vector_bits = 256, streaming_bytes = 33554432>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Four rows of a page each are read at once from memory too.
// CHECK-LABEL: func @rows_of_pages
// CHECK:         scf.for {{.+}} step %c4
// CHECK:         arith.addi %{{.+}}, %c4096
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    memref.prefetch
func.func @rows_of_pages(%x: memref<1001x1024xf32>, %sum: memref<1024xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<1001x1024xf32>) outs(%sum : memref<1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// The rows of a tile are in different pages, which the hardware follows.
// CHECK-LABEL: func @rows_of_a_tile_in_a_cache
// CHECK:         scf.for {{.+}} step %c4
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @rows_of_a_tile_in_a_cache(%x: memref<64x512x49xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<64x512x49xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 10000000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// In memory, the rows of the next samples are prefetched, as are rows that share pages.
// CHECK-LABEL: func @rows_of_a_tile_in_memory
// CHECK:         scf.for {{.+}} step %c4
// CHECK:         arith.addi %{{.+}}, %c100352
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    memref.prefetch
// CHECK-LABEL: func @short_rows_of_a_tile_in_a_cache
// CHECK:         scf.for {{.+}} step %c4
// CHECK:         arith.addi %{{.+}}, %c1568
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    memref.prefetch
// Registers of 128 bits: one by one.
// CHECK-LABEL: func @short_registers
// CHECK-NOT:     arith.addi %{{.+}}, %c3 :
// CHECK:         return
func.func @rows_of_a_tile_in_memory(%x: memref<64x512x49xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<64x512x49xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 1000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @short_rows_of_a_tile_in_a_cache(%x: memref<64x8x49xf32>, %sum: memref<8xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<64x8x49xf32>) outs(%sum : memref<8xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles, streaming_bytes = 1000000>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

func.func @short_registers(%x: memref<64x512x49xf32>, %sum: memref<512xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<64x512x49xf32>) outs(%sum : memref<512xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<tiles, vector_bits = 128>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Each store of f16 has a conversion of its own. Lines of the second pass are prefetched a page ahead.
// CHECK-LABEL: func @stores_of_f16
// CHECK-SAME:    (%[[X:[^:]+]]: memref<1000x192xf16>
// CHECK:         %[[FLAT:.+]] = memref.collapse_shape %[[X]]
// CHECK:         %[[LOWER:.+]] = vector.extract_strided_slice %[[P:.+]] {offsets = [0], sizes = [16], strides = [1]} : vector<64xf32> to vector<16xf32>
// CHECK-NEXT:    %[[CONVERTED:.+]] = arith.truncf %[[LOWER]] : vector<16xf32> to vector<16xf16>
// CHECK-NEXT:    vector.store %[[CONVERTED]]
// CHECK-NEXT:    vector.extract_strided_slice %[[P]] {offsets = [16]
// CHECK-NEXT:    arith.truncf
// CHECK-LABEL: func @streams_f16
// CHECK:         arith.addi %{{.+}}, %c2048
// CHECK-NEXT:    arith.minsi
// CHECK-NEXT:    memref.prefetch
// CHECK:         arith.truncf %{{.+}} : vector<64xf32> to vector<64xf16>
func.func @stores_of_f16(%x: memref<1000x192xf16>, %f: memref<192xf32>, %dx: memref<1000x192xf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<1000x192xf16>, memref<192xf32>) outs(%dx : memref<1000x192xf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000000>} {
  ^bb0(%e: f16, %g: f32, %out: f16):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  }
  return
}

func.func @streams_f16(%x: memref<1000x192xf16>, %f: memref<192xf32>, %dx: memref<1000x192xf16>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<1000x192xf16>, memref<192xf32>) outs(%dx : memref<1000x192xf16>)
      attrs = {bngrad.schedule = #bngrad.schedule<rows, streaming_bytes = 1000>} {
  ^bb0(%e: f16, %g: f32, %out: f16):
    %0 = arith.extf %e : f16 to f32
    %1 = arith.mulf %0, %g : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  }
  return
}
