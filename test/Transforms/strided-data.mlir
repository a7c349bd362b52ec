// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --mlir-print-local-scope | FileCheck %s

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Loops with vectors for data of dynamic strides: parts of dense NCHW data, and of NHWC data, whose rows are contiguous;
// at last dense data, with a dense copy of those that are not.
// CHECK-LABEL: func @unknown
// CHECK-SAME:    (%[[X:.+]]: memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>,
// CHECK:         %[[BASE:.+]], %[[OFFSET:.+]], %[[SIZES:.+]]:3, %[[STRIDES:.+]]:3 = memref.extract_strided_metadata %[[X]]
// CHECK:         scf.if
// CHECK:           memref.reinterpret_cast %{{.+}} to offset: [0], sizes: [%[[SIZES]]#0, %[[SIZES]]#1, %{{.+}}], strides: [%[[STRIDES]]#0, %[[STRIDES]]#1, 1] : memref<?xf32> to memref<?x?x?xf32, strided<[?, ?, 1]>>
// CHECK:         } else {
// CHECK:           scf.if
// CHECK:             memref.reinterpret_cast %{{.+}} : memref<?xf32> to memref<?x?xf32, strided<[?, 1]>>
// CHECK:           } else {
// CHECK:             %[[PACKED:.+]] = arith.xori %[[DENSE:.+]], %true
// CHECK:             %[[SIZE:.+]] = arith.select %[[DENSE]], %c0, %{{.+}} : index
// CHECK:             %[[COPY:.+]] = memref.alloc(%[[SIZE]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK:             scf.if %[[PACKED]] {
// CHECK:               scf.parallel
// CHECK:                 "llvm.intr.memcpy"
// CHECK:                 llvm.load %{{.+}} -> i32
// CHECK:                 llvm.store
// CHECK:             %[[DATA:.+]] = arith.select %[[DENSE]], %{{.+}}, %[[COPY]] : memref<?xi8>
// CHECK:             %[[START:.+]] = arith.select %[[DENSE]], %{{.+}}, %c0 : index
// NHWC, CNHW and NCHW:
// CHECK:             memref.view %[[DATA]][%[[START]]][%[[SIZES]]#0, %[[SIZES]]#2, %[[SIZES]]#1]
// CHECK:             memref.view %[[DATA]][%[[START]]][%[[SIZES]]#1, %[[SIZES]]#0, %[[SIZES]]#2]
// CHECK:             memref.view %[[DATA]][%[[START]]][%[[SIZES]]#0, %[[SIZES]]#1, %[[SIZES]]#2]
// Operands are not copied back.
// CHECK-NOT:         llvm.intr.memcpy
// CHECK:             memref.dealloc %[[COPY]]
func.func @unknown(%x: memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, %sum: memref<?xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>) outs(%sum : memref<?xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Static strides need no test.
// CHECK-LABEL: func @padded
// CHECK-NOT:     scf.if
// CHECK-NOT:     memref.alloc
// CHECK:         vector.load %{{.+}} : memref<293xf32
// CHECK:         return
func.func @padded(%x: memref<2x3x37xf32, strided<[160, 48, 1]>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : memref<2x3x37xf32, strided<[160, 48, 1]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 128>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

#image = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// Rows of a channel that follow one another are one.
// CHECK-LABEL: func @sliced_channels
// CHECK:         memref<2x3x1x20xf32, strided<[160, 20, 5, 1]>>
// CHECK:         return
func.func @sliced_channels(%x: memref<2x3x4x5xf32, strided<[160, 20, 5, 1], offset: 40>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x : memref<2x3x4x5xf32, strided<[160, 20, 5, 1], offset: 40>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// One operand is in another order: it is copied, and the other is not. A result is copied back.
// CHECK-LABEL: func @mixed
// CHECK-SAME:    (%{{.+}}: memref<2x3x5xf32>, %[[F:.+]]: memref<3xf32>, %[[Y:[^:]+]]:
// CHECK-NOT:     scf.if
// CHECK:         %[[COPY:.+]] = memref.alloc() {alignment = 64 : i64} : memref<120xi8>
// CHECK-NOT:     memref.alloc
// CHECK:         vector.store
// CHECK:         memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK:         llvm.store
// CHECK:         memref.dealloc %[[COPY]]
func.func @mixed(%x: memref<2x3x5xf32>, %f: memref<3xf32>, %y: memref<2x3x5xf32, strided<[15, 1, 3]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<2x3x5xf32>, memref<3xf32>) outs(%y : memref<2x3x5xf32, strided<[15, 1, 3]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.mulf %e, %a : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// An index of a row is one of its own: such data are copied.
// CHECK-LABEL: func @indices
// CHECK:         memref.alloc
// CHECK:         return
func.func @indices(%x: memref<2x3x4x5xf32, strided<[84, 28, 7, 1]>>, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
        ins(%x : memref<2x3x4x5xf32, strided<[84, 28, 7, 1]>>) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: f32, %acc: f32):
      %h = linalg.index 2 : index
      %w = linalg.index 3 : index
      %same = arith.cmpi eq, %h, %w : index
      %zero = arith.constant 0.0 : f32
      %term = arith.select %same, %e, %zero : f32
      %0 = arith.addf %acc, %term fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// The order of most data: one operand is copied.
// CHECK-LABEL: func @most
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<120xi8>
// CHECK-NOT:     memref.alloc() {alignment = 64 : i64} : memref<120xi8>
// CHECK:         memref.view %{{.+}} to memref<2x5x3xf32>
// CHECK-NOT:     to memref<2x3x5xf32>
// CHECK:         return
func.func @most(%x: memref<2x3x5xf32, strided<[15, 5, 1], offset: 1>>, %f: memref<3xf32>,
                %z: memref<2x3x5xf32, strided<[15, 1, 3]>>, %y: memref<2x3x5xf32, strided<[15, 1, 3]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f, %z : memref<2x3x5xf32, strided<[15, 5, 1], offset: 1>>, memref<3xf32>, memref<2x3x5xf32, strided<[15, 1, 3]>>)
        outs(%y : memref<2x3x5xf32, strided<[15, 1, 3]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %a : f32
      %1 = arith.mulf %0, %g : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// Dense data that are allocated in the region: all other data are copied.
// CHECK-LABEL: func @inside
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<120xi8>
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<120xi8>
// CHECK:         vector.load
// CHECK:         return
!gaps = memref<2x3x5xf32, strided<[60, 10, 2]>>
func.func @inside(%x: !gaps, %f: memref<3xf32>, %z: !gaps) {
  scf.execute_region no_inline {
    %y = memref.alloc() : memref<2x3x5xf32>
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f : !gaps, memref<3xf32>) outs(%y : memref<2x3x5xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.mulf %e, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%y, %f : memref<2x3x5xf32>, memref<3xf32>) outs(%z : !gaps)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.addf %e, %a : f32
      linalg.yield %0 : f32
    }
    memref.dealloc %y : memref<2x3x5xf32>
    scf.yield
  }
  return
}

// Few lines of short rows with gaps are whole, so none are streamed, unless all rows are whole lines.
// CHECK-LABEL: func @short_rows
// CHECK-NOT:     nontemporal
// CHECK:         return
func.func @short_rows(%x: memref<2x3x4x150xf32, strided<[1824, 608, 152, 1]>>, %f: memref<3xf32>, %y: memref<2x3x4x150xf32, strided<[1824, 608, 152, 1]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<2x3x4x150xf32, strided<[1824, 608, 152, 1]>>, memref<3xf32>) outs(%y : memref<2x3x4x150xf32, strided<[1824, 608, 152, 1]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// CHECK-LABEL: func @short_rows_of_lines
// CHECK:         scf.if
// CHECK:           nontemporal
// CHECK:         return
func.func @short_rows_of_lines(%x: memref<2x3x4x160xf32, strided<[2112, 704, 176, 1]>>, %f: memref<3xf32>, %y: memref<2x3x4x160xf32, strided<[2112, 704, 176, 1]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<2x3x4x160xf32, strided<[2112, 704, 176, 1]>>, memref<3xf32>) outs(%y : memref<2x3x4x160xf32, strided<[2112, 704, 176, 1]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// CHECK-LABEL: func @long_rows
// CHECK-NOT:     scf.if
// CHECK:         nontemporal
// CHECK:         return
func.func @long_rows(%x: memref<2x3x4x300xf32, strided<[3612, 1204, 301, 1]>>, %f: memref<3xf32>, %y: memref<2x3x4x300xf32, strided<[3612, 1204, 301, 1]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#image, #channel, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<2x3x4x300xf32, strided<[3612, 1204, 301, 1]>>, memref<3xf32>) outs(%y : memref<2x3x4x300xf32, strided<[3612, 1204, 301, 1]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Elements are transposed in registers: four vectors of four parts of 16 bytes, of 16 rows, become lines of four columns.
// If lines start where those of a tile do, they are stored past the caches, and one fence follows several blocks. What is
// less than a line or a part is stored in parts, or by the element.
// CHECK-LABEL: func @transposed
// CHECK-SAME:    (%{{.+}}: memref<8x38x98xf32>, %{{.+}}: memref<38xf32>, %[[Y:[^:]+]]:
// CHECK:         %[[ADDRESS:.+]] = memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK:         %[[REST:.+]] = arith.remui %[[ADDRESS]], %c64
// CHECK:         %[[ARE_LINES:.+]] = arith.cmpi eq, %[[REST]], %c0
// CHECK-NOT:     scf.if
// CHECK:         scf.parallel
// CHECK:           scf.for %{{.+}} = %c0 to %c32 step %c16
// CHECK-NEXT:        scf.for %{{.+}} = %c0 to %c96 step %c4
// CHECK-COUNT-16:      llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
// CHECK-COUNT-4:       vector.shuffle %{{.+}}, %{{.+}} [0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29]
// CHECK-NOT:           llvm.load
// CHECK:               scf.if %[[ARE_LINES]] {
// CHECK-COUNT-4:         llvm.store %{{.+}} {alignment = 64 : i64, nontemporal} : vector<16xi32>, !llvm.ptr
// CHECK:               } else {
// CHECK-COUNT-4:         llvm.store %{{.+}} {alignment = 4 : i64} : vector<16xi32>, !llvm.ptr
// CHECK:           scf.for %{{.+}} = %c0 to %c96 step %c4
// CHECK-COUNT-4:       llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr -> vector<4xi32>
// CHECK-COUNT-4:       llvm.store %{{.+}} {alignment = 4 : i64} : vector<4xi32>, !llvm.ptr
// CHECK:           llvm.store %{{.+}} {alignment = 4 : i64} : i32, !llvm.ptr
// CHECK:           llvm.store %{{.+}} {alignment = 4 : i64} : i32, !llvm.ptr
// CHECK:           scf.if %[[ARE_LINES]] {
// CHECK-NEXT:        llvm.fence seq_cst
func.func @transposed(%x: memref<8x38x98xf32>, %f: memref<38xf32>, %y: memref<8x38x98xf32, strided<[4704, 1, 48]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f : memref<8x38x98xf32>, memref<38xf32>) outs(%y : memref<8x38x98xf32, strided<[4704, 1, 48]>>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, threads = 2, streaming_bytes = 1000>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// A result that is read as another view of its memory would not be its copy.
// CHECK-LABEL: func @another_view
// CHECK-NOT:     memref.alloc
// CHECK:         memref.load
// CHECK:         return
func.func @another_view(%x: !gaps, %f: memref<3xf32>, %y: !gaps, %z: !gaps) {
  %v = memref.reinterpret_cast %y to offset: [0], sizes: [2, 3, 5], strides: [60, 10, 2] : !gaps to !gaps
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %f : !gaps, memref<3xf32>) outs(%y : !gaps)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.mulf %e, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%v, %f : !gaps, memref<3xf32>) outs(%z : !gaps)
        attrs = {bngrad.schedule = #bngrad.schedule<channels, vector_bits = 64>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.addf %e, %a : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// Data that are also read for the first row have no other place, and neither have data that another op writes.
// CHECK-LABEL: func @first_row
// CHECK-NOT:     memref.view
// CHECK:         memref.load %{{.+}}[%c0, %{{.+}}]
// CHECK:         return
!rows = memref<7x5xf32, strided<[9, 1]>>
func.func @first_row(%x: !rows, %y: !rows) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [affine_map<(n, c) -> (n, c)>, affine_map<(n, c) -> (0, c)>, affine_map<(n, c) -> (n, c)>], iterator_types = ["parallel", "parallel"]}
        ins(%x, %x : !rows, !rows) outs(%y : !rows) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %a: f32, %out: f32):
      %0 = arith.subf %e, %a : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// CHECK-LABEL: func @written_by_another_op
// CHECK-NOT:     memref.alloc
// CHECK:         memref.copy %{{.+}}, %{{.+}} : memref<2x3x5xf32> to memref<2x3x5xf32, strided<[60, 10, 2]>>
// CHECK-NOT:     memref.alloc
// CHECK:         return
func.func @written_by_another_op(%w: memref<2x3x5xf32>, %x: !gaps, %sum: memref<3xf32>) {
  scf.execute_region no_inline {
    memref.copy %w, %x : memref<2x3x5xf32> to !gaps
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%x : !gaps) outs(%sum : memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}
