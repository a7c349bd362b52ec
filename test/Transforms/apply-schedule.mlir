// A remark reports ops that are left to upstream's loops; remarks and errors
// are expected below at their ops.
// RUN: bngrad-opt %s --bngrad-apply-schedule --split-input-file --verify-diagnostics --mlir-print-local-scope \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule | FileCheck %s

// Upstream's passes accept the output: the loops verify and lower.
// RUN: bngrad-opt %s --bngrad-apply-schedule --split-input-file --verify-diagnostics \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule \
// RUN:   --canonicalize --cse --convert-scf-to-cf -o /dev/null

#data = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>
#feature = affine_map<(d0, d1) -> (d1)>
#row = affine_map<(d0, d1) -> (d0)>
#none = affine_map<(d0, d1) -> ()>
#diagonal = affine_map<(d0, d1) -> (d0 + d1)>
#channel = affine_map<(d0) -> (d0)>
#data3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#middle = affine_map<(d0, d1, d2) -> (d1)>
#swapped = affine_map<(d0, d1, d2) -> (d2, d0)>

// === element-wise ===

// The innermost loop is sequential, the others are parallel.
// CHECK-LABEL: func @elementwise
// CHECK-SAME:    (%[[A:.+]]: memref<8x4x5xf32>, %[[B:.+]]: memref<8x4x5xf32>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C8:.+]] = arith.constant 8 : index
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[C5:.+]] = arith.constant 5 : index
// CHECK:         scf.parallel (%[[I:.+]], %[[J:.+]]) = (%[[C0]], %[[C0]]) to (%[[C8]], %[[C4]])
// CHECK:           scf.for %[[K:[^ ]+]] = %{{.+}} to %[[C5]] step
// CHECK-NEXT:        %[[E:.+]] = memref.load %[[A]][%[[I]], %[[J]], %[[K]]]
// CHECK-NEXT:        %[[NEGATED:.+]] = arith.negf %[[E]] : f32
// CHECK-NEXT:        memref.store %[[NEGATED]], %[[B]][%[[I]], %[[J]], %[[K]]]
// CHECK-NEXT:      }
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @elementwise(%a: memref<8x4x5xf32>, %b: memref<8x4x5xf32>) {
  linalg.generic {indexing_maps = [#data3, #data3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : memref<8x4x5xf32>) outs(%b : memref<8x4x5xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  }
  return
}

// A single loop is per-channel: too small for threads. Every result is stored.
// CHECK-LABEL: func @per_channel
// CHECK-SAME:    (%[[A:.+]]: memref<4xf32>, %[[B:.+]]: memref<4xf32>, %[[C:.+]]: memref<4xf64>)
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for %[[I:[^ ]+]] = %{{.+}} to %{{.+}} step
// CHECK-DAG:       %[[E:.+]] = memref.load %[[A]][%[[I]]]
// CHECK-DAG:       %[[ROOT:.+]] = math.sqrt %[[E]]
// CHECK-DAG:       %[[WIDE:.+]] = arith.extf %[[ROOT]]
// CHECK-DAG:       memref.store %[[ROOT]], %[[B]][%[[I]]]
// CHECK-DAG:       memref.store %[[WIDE]], %[[C]][%[[I]]]
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func @per_channel(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf64>) {
  linalg.generic {indexing_maps = [#channel, #channel, #channel], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32>) outs(%b, %c : memref<4xf32>, memref<4xf64>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out0: f32, %out1: f64):
    %0 = math.sqrt %e : f32
    %1 = arith.extf %0 : f32 to f64
    linalg.yield %0, %1 : f32, f64
  }
  return
}

// A value that is invariant in the inner loop is loaded outside of it, a
// varying one inside, and an unused one not at all. A scalar operand is used
// directly.
// CHECK-LABEL: func @loads_hoisted
// CHECK-SAME:    (%[[X:.+]]: memref<8x4xf32>, %[[ROW:.+]]: memref<8xf32>, %[[COLUMN:.+]]: memref<4xf32>, %[[S:.+]]: f32, %[[ONE:.+]]: memref<f32>, %[[B:.+]]: memref<8x4xf32>)
// CHECK:         scf.parallel (%[[I:.+]]) =
// CHECK-DAG:       %[[ROW_E:.+]] = memref.load %[[ROW]][%[[I]]]
// CHECK-DAG:       %[[ONE_E:.+]] = memref.load %[[ONE]][]
// CHECK:           scf.for %[[J:[^ ]+]] =
// CHECK-NOT:         memref.load %[[ROW]]
// CHECK-NOT:         memref.load %[[ONE]]
// CHECK-NOT:         memref.load %[[X]]
// CHECK:             %[[COLUMN_E:.+]] = memref.load %[[COLUMN]][%[[J]]]
// CHECK:             arith.addf %[[ROW_E]], %[[COLUMN_E]]
// CHECK:             arith.mulf %{{.+}}, %[[S]]
// CHECK:             arith.subf %{{.+}}, %[[ONE_E]]
func.func @loads_hoisted(%x: memref<8x4xf32>, %row: memref<8xf32>, %column: memref<4xf32>, %s: f32, %one: memref<f32>, %b: memref<8x4xf32>) {
  linalg.generic {indexing_maps = [#data, #row, #feature, #none, #none, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %row, %column, %s, %one : memref<8x4xf32>, memref<8xf32>, memref<4xf32>, f32, memref<f32>)
      outs(%b : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%unused: f32, %r: f32, %c: f32, %f: f32, %o: f32, %out: f32):
    %0 = arith.addf %r, %c : f32
    %1 = arith.mulf %0, %f : f32
    %2 = arith.subf %1, %o : f32
    linalg.yield %2 : f32
  }
  return
}

// Indices are those of the operand's map, in its order.
// CHECK-LABEL: func @maps_of_operands
// CHECK-SAME:    (%[[T:.+]]: memref<4x8xf32>, %[[D:.+]]: memref<12xf32>, %[[B:.+]]: memref<8x4xf32>)
// CHECK:         scf.parallel (%[[I:.+]]) =
// CHECK:           scf.for %[[J:[^ ]+]] =
// CHECK-DAG:         %[[T_E:.+]] = memref.load %[[T]][%[[J]], %[[I]]]
// CHECK-DAG:         %[[SUM:.+]] = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%[[I]], %[[J]])
// CHECK-DAG:         %[[D_E:.+]] = memref.load %[[D]][%[[SUM]]]
// CHECK:             arith.addf %[[T_E]], %[[D_E]]
func.func @maps_of_operands(%t: memref<4x8xf32>, %d: memref<12xf32>, %b: memref<8x4xf32>) {
  linalg.generic {indexing_maps = [#transposed, #diagonal, #data], iterator_types = ["parallel", "parallel"]}
      ins(%t, %d : memref<4x8xf32>, memref<12xf32>) outs(%b : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %0 = arith.addf %l, %r : f32
    linalg.yield %0 : f32
  }
  return
}

// linalg.index is the loop's own index.
// CHECK-LABEL: func @index_in_the_body
// CHECK:         scf.parallel (%[[I:.+]]) =
// CHECK:           scf.for %[[J:[^ ]+]] =
// CHECK:             %[[SUM:.+]] = arith.addi %[[J]], %[[I]] : index
// CHECK:             memref.store %[[SUM]], %{{.+}}[%[[I]], %[[J]]]
func.func @index_in_the_body(%b: memref<8x4xindex>) {
  linalg.generic {indexing_maps = [#data], iterator_types = ["parallel", "parallel"]}
      outs(%b : memref<8x4xindex>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.addi %j, %i : index
    linalg.yield %0 : index
  }
  return
}

// The body may read the output: the old value of the written element.
// CHECK-LABEL: func @output_that_is_read
// CHECK-SAME:    (%[[A:.+]]: memref<8x4xf32>, %[[B:.+]]: memref<8x4xf32>)
// CHECK:         scf.parallel (%[[I:.+]]) =
// CHECK-NOT:       memref.load
// CHECK:           scf.for %[[J:[^ ]+]] =
// CHECK-DAG:         %[[A_E:.+]] = memref.load %[[A]][%[[I]], %[[J]]]
// CHECK-DAG:         %[[B_E:.+]] = memref.load %[[B]][%[[I]], %[[J]]]
// CHECK:             %[[SUM:.+]] = arith.addf %[[B_E]], %[[A_E]]
// CHECK:             memref.store %[[SUM]], %[[B]][%[[I]], %[[J]]]
func.func @output_that_is_read(%a: memref<8x4xf32>, %b: memref<8x4xf32>) {
  linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x4xf32>) outs(%b : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.addf %out, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// The body may use values from outside of the generic.
// CHECK-LABEL: func @body_with_value_from_outside
// CHECK-SAME:    %[[S:[^:]+]]: f32
// CHECK:         scf.for
// CHECK:           memref.store %[[S]], %{{.+}}[%{{.+}}]
func.func @body_with_value_from_outside(%s: f32, %b: memref<4xf32>) {
  linalg.generic {indexing_maps = [#channel], iterator_types = ["parallel"]}
      outs(%b : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%out: f32):
    linalg.yield %s : f32
  }
  return
}

// Sizes come from the buffers.
// CHECK-LABEL: func @dynamic_sizes
// CHECK-SAME:    (%[[A:.+]]: memref<?x?xf32>, %[[B:.+]]: memref<?x?xf32>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:     %[[D0:.+]] = memref.dim %[[A]], %[[C0]]
// CHECK-DAG:     %[[D1:.+]] = memref.dim %[[A]], %[[C1]]
// CHECK:         scf.parallel (%{{.+}}) = (%{{.+}}) to (%[[D0]])
// CHECK:           scf.for %{{.+}} = %{{.+}} to %[[D1]] step
func.func @dynamic_sizes(%a: memref<?x?xf32>, %b: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<?x?xf32>) outs(%b : memref<?x?xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  }
  return
}

// === sums ===

// Channels in parallel; a term is added to its block, at most 8 of them, and the
// block to the sum, whose rounding error is carried along (TwoSum: these six
// operations, none of them free to be reassociated) and added at the end. The
// sum starts from the value of the output. 20 = 2*8 + 4.
// CHECK-LABEL: func @sum
// CHECK-SAME:    (%[[X:.+]]: memref<20x4xf32>, %[[MEAN:.+]]: memref<4xf32>, %[[OUT:.+]]: memref<4xf32>)
// CHECK-DAG:     %[[C4:.+]] = arith.constant 4 : index
// CHECK-DAG:     %[[C20:.+]] = arith.constant 20 : index
// CHECK:         scf.parallel (%[[C:.+]]) = (%{{.+}}) to (%[[C4]])
// CHECK-DAG:       %[[MEAN_E:.+]] = memref.load %[[MEAN]][%[[C]]]
// CHECK-DAG:       %[[START:.+]] = memref.load %[[OUT]][%[[C]]]
// CHECK-DAG:       %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:       %[[BLOCK:.+]] = arith.constant 8 : index
// CHECK-DAG:       %[[REST:.+]] = arith.remui %[[C20]], %[[BLOCK]]
// CHECK-DAG:       %[[END:.+]] = arith.subi %[[C20]], %[[REST]]
// CHECK:           %[[WHOLE:.+]]:2 = scf.for %[[FROM:[^ ]+]] = %{{.+}} to %[[END]] step %[[BLOCK]] iter_args(%[[SUM:.+]] = %[[START]], %[[ERROR:.+]] = %[[ZERO]])
// CHECK-DAG:         %[[TO:.+]] = arith.addi %[[FROM]], %[[BLOCK]]
// CHECK-DAG:         %[[BLOCK_ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:             %[[PARTIAL:.+]] = scf.for %[[I:[^ ]+]] = %[[FROM]] to %[[TO]] step %{{.+}} iter_args(%[[ACC:.+]] = %[[BLOCK_ZERO]])
// CHECK-DAG:           %[[E:.+]] = memref.load %[[X]][%[[I]], %[[C]]]
// CHECK-DAG:           %[[TERM:.+]] = arith.subf %[[E]], %[[MEAN_E]]
// CHECK-DAG:           %[[NEXT:.+]] = arith.addf %[[ACC]], %[[TERM]]
// CHECK:               scf.yield %[[NEXT]] : f32
// The accumulated error is added to the block first.
// CHECK:             %[[ADDEND:.+]] = arith.addf %[[PARTIAL]], %[[ERROR]] : f32
// CHECK:             %[[TOTAL:.+]] = arith.addf %[[SUM]], %[[ADDEND]] : f32
// CHECK-DAG:         %[[ADDEND_PART:.+]] = arith.subf %[[TOTAL]], %[[SUM]] : f32
// CHECK-DAG:         %[[SUM_PART:.+]] = arith.subf %[[TOTAL]], %[[ADDEND_PART]] : f32
// CHECK-DAG:         %[[SUM_ERROR:.+]] = arith.subf %[[SUM]], %[[SUM_PART]] : f32
// CHECK-DAG:         %[[ADDEND_ERROR:.+]] = arith.subf %[[ADDEND]], %[[ADDEND_PART]] : f32
// CHECK-DAG:         %[[STEP_ERROR:.+]] = arith.addf %[[SUM_ERROR]], %[[ADDEND_ERROR]] : f32
// An infinite sum has a NaN error: it stays infinite.
// CHECK-DAG:         %[[NO_ERROR:.+]] = arith.cmpf uno, %[[STEP_ERROR]], %[[STEP_ERROR]]
// CHECK-DAG:         %[[NEXT_ERROR:.+]] = arith.select %[[NO_ERROR]], %{{.+}}, %[[STEP_ERROR]]
// CHECK:             scf.yield %[[TOTAL]], %[[NEXT_ERROR]] : f32, f32
// The terms of the incomplete block.
// CHECK:           %[[LAST:.+]] = scf.for %{{.+}} = %[[END]] to %[[C20]] step
// CHECK:           %[[LAST_ADDEND:.+]] = arith.addf %[[LAST]], %[[WHOLE]]#1 : f32
// CHECK:           %[[LAST_SUM:.+]] = arith.addf %[[WHOLE]]#0, %[[LAST_ADDEND]] : f32
// CHECK:           %[[LAST_ERROR:.+]] = arith.select
// CHECK:           %[[RESULT:.+]] = arith.addf %[[LAST_SUM]], %[[LAST_ERROR]] : f32
// CHECK:           memref.store %[[RESULT]], %[[OUT]][%[[C]]]
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @sum(%x: memref<20x4xf32>, %mean: memref<4xf32>, %out: memref<4xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x, %mean : memref<20x4xf32>, memref<4xf32>) outs(%out : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %m: f32, %acc: f32):
    %0 = arith.subf %e, %m : f32
    %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// NCHW, two sums of two types in one pass over the data, accumulator on either
// side; the loops over the reduced dims nest in order, and a product used by
// both terms is computed once.
// CHECK-LABEL: func @two_sums_over_two_dims
// CHECK-SAME:    (%[[X:.+]]: memref<6x3x5xf32>, %[[OUT0:.+]]: memref<3xf32>, %[[OUT1:.+]]: memref<3xf64>)
// CHECK-DAG:     %[[C6:.+]] = arith.constant 6 : index
// CHECK-DAG:     %[[C5:.+]] = arith.constant 5 : index
// CHECK:         scf.parallel (%[[C:.+]]) =
// CHECK:           scf.for %[[N:[^ ]+]] = %{{.+}} to %[[C6]] step %{{.+}} iter_args({{.+}}) -> (f32, f32, f64, f64)
// CHECK:             scf.for {{.+}} -> (f32, f32, f64, f64)
// CHECK:               scf.for %[[S:[^ ]+]] = {{.+}} -> (f32, f64)
// CHECK:                 %[[E:.+]] = memref.load %[[X]][%[[N]], %[[C]], %[[S]]]
// CHECK-NEXT:            arith.mulf
// CHECK-NOT:             memref.load
// CHECK-NOT:             arith.mulf
// CHECK:                 scf.yield %{{.+}}, %{{.+}} : f32, f64
// CHECK:             scf.for %[[S:[^ ]+]] = %{{.+}} to %[[C5]] step {{.+}} -> (f32, f64)
// CHECK:           memref.store %{{.+}}, %[[OUT0]][%[[C]]]
// CHECK:           memref.store %{{.+}}, %[[OUT1]][%[[C]]]
func.func @two_sums_over_two_dims(%x: memref<6x3x5xf32>, %out0: memref<3xf32>, %out1: memref<3xf64>) {
  linalg.generic {indexing_maps = [#data3, #middle, #middle], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<6x3x5xf32>) outs(%out0, %out1 : memref<3xf32>, memref<3xf64>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc0: f32, %acc1: f64):
    %0 = arith.mulf %e, %e : f32
    %1 = arith.extf %0 : f32 to f64
    %2 = arith.addf %0, %acc0 fastmath<reassoc> : f32
    %3 = arith.addf %acc1, %1 fastmath<reassoc> : f64
    linalg.yield %2, %3 : f32, f64
  }
  return
}

// No channel: one sum, no parallel loop.
// CHECK-LABEL: func @sum_of_everything
// CHECK-SAME:    (%[[X:.+]]: memref<8x4xf32>, %[[OUT:.+]]: memref<f32>)
// CHECK-NOT:     scf.parallel
// CHECK:         memref.load %[[OUT]][]
// CHECK:         scf.for
// CHECK:         memref.store %{{.+}}, %[[OUT]][]
// CHECK-NOT:     scf.parallel
// CHECK:         return
func.func @sum_of_everything(%x: memref<8x4xf32>, %out: memref<f32>) {
  linalg.generic {indexing_maps = [#data, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<8x4xf32>) outs(%out : memref<f32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Several channel dims, stored in another order than that of the loops.
// CHECK-LABEL: func @sum_with_permuted_output
// CHECK-SAME:    (%[[X:.+]]: memref<2x9x3xf32>, %[[OUT:.+]]: memref<3x2xf32>)
// CHECK:         scf.parallel (%[[I:.+]], %[[K:.+]]) =
// CHECK:           memref.load %[[OUT]][%[[K]], %[[I]]]
// CHECK:           memref.store %{{.+}}, %[[OUT]][%[[K]], %[[I]]]
func.func @sum_with_permuted_output(%x: memref<2x9x3xf32>, %out: memref<3x2xf32>) {
  linalg.generic {indexing_maps = [#data3, #swapped], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : memref<2x9x3xf32>) outs(%out : memref<3x2xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// The number of whole blocks is computed.
// CHECK-LABEL: func @sum_of_dynamic_length
// CHECK-SAME:    (%[[X:.+]]: memref<?x?xf32>, %[[OUT:.+]]: memref<?xf32>)
// CHECK-DAG:     %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:     %[[M:.+]] = memref.dim %[[X]], %[[C0]]
// CHECK:         scf.parallel
// CHECK:           %[[REST:.+]] = arith.remui %[[M]], %[[BLOCK:.+]] : index
// CHECK:           %[[END:.+]] = arith.subi %[[M]], %[[REST]] : index
// CHECK:           scf.for %{{.+}} = %{{.+}} to %[[END]] step
// CHECK:           scf.for %{{.+}} = %[[END]] to %[[M]] step
func.func @sum_of_dynamic_length(%x: memref<?x?xf32>, %out: memref<?xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%out : memref<?xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// linalg.index of the reduced loop.
// CHECK-LABEL: func @sum_with_index
// CHECK:           scf.for
// CHECK:             scf.for %[[I:[^ ]+]] =
// CHECK:               %[[CAST:.+]] = arith.index_cast %[[I]] : index to i32
// CHECK:               arith.sitofp %[[CAST]]
func.func @sum_with_index(%x: memref<8x4xf32>, %out: memref<4xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%out : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %i = linalg.index 0 : index
    %0 = arith.index_cast %i : index to i32
    %1 = arith.sitofp %0 : i32 to f32
    %2 = arith.mulf %e, %1 : f32
    %3 = arith.addf %acc, %2 fastmath<reassoc> : f32
    linalg.yield %3 : f32
  }
  return
}

// === groups ===

// A group's region may be inlined; one without scheduled ops is unchanged.
// CHECK-LABEL: func @region_of_a_group
// CHECK:         scf.execute_region {
// CHECK:           scf.for
// CHECK:         scf.execute_region no_inline {
// CHECK:           linalg.generic
func.func @region_of_a_group(%a: memref<4xf32>, %b: memref<4xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
        ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %out: f32):
      linalg.yield %e : f32
    }
    scf.yield
  }
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
        ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) {
    ^bb0(%e: f32, %out: f32):
      linalg.yield %e : f32
    }
    scf.yield
  }
  return
}

// === unchanged ops ===

// CHECK-LABEL: func @other_reduction
// CHECK-NEXT:    linalg.generic {{.+}} attrs = {bngrad.schedule = #bngrad.schedule<loops>}
// CHECK:           arith.maximumf
// CHECK-NOT:     scf.
// CHECK:         return
func.func @other_reduction(%x: memref<8x4xf32>, %out: memref<4xf32>) {
  // expected-remark @below {{expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%out : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.maximumf %acc, %e : f32
    linalg.yield %0 : f32
  }
  return
}

// One of two results is not a sum: neither is changed.
// CHECK-LABEL: func @sum_and_other_reduction
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @sum_and_other_reduction(%x: memref<8x4xf32>, %out0: memref<4xf32>, %out1: memref<4xf32>) {
  // expected-remark @below {{expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%out0, %out1 : memref<4xf32>, memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc0: f32, %acc1: f32):
    %0 = arith.addf %acc0, %e fastmath<reassoc> : f32
    %1 = arith.mulf %acc1, %e : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// The next term depends on the sum so far.
// CHECK-LABEL: func @sum_that_reads_its_accumulator_twice
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @sum_that_reads_its_accumulator_twice(%x: memref<8x4xf32>, %out: memref<4xf32>) {
  // expected-remark @below {{expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%out : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.mulf %acc, %e : f32
    %1 = arith.addf %acc, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func @sum_on_a_diagonal
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @sum_on_a_diagonal(%x: memref<8x4xf32>, %k: memref<3xf32>, %out: memref<10xf32>) {
  // expected-remark @below {{expected every result of the reduction to be a sum with fastmath<reassoc>, indexed by the parallel loops}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0 + d2)>],
                  iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %k : memref<8x4xf32>, memref<3xf32>) outs(%out : memref<10xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %f: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func @no_loop
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @no_loop(%a: memref<f32>, %b: memref<f32>) {
  // expected-remark @below {{expected at least one loop}}
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%a : memref<f32>) outs(%b : memref<f32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  }
  return
}

// There are no buffers before bufferization.
// CHECK-LABEL: func @tensors
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @tensors(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{expected memrefs}}
  %0 = linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// === nothing to do ===

// CHECK-LABEL: func @no_schedule
// CHECK-NEXT:    linalg.generic
// CHECK-NOT:     scf.
// CHECK:         return
func.func @no_schedule(%x: memref<8x4xf32>, %out: memref<4xf32>) {
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%out : memref<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#channel = affine_map<(d0) -> (d0)>
func.func @not_a_schedule(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{'linalg.generic' op expected attribute 'bngrad.schedule' to be a #bngrad.schedule, got "loops"}}
  linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) attrs = {bngrad.schedule = "loops"} {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  }
  return
}

// -----

// An attribute of our dialect, but not a schedule.
#channel = affine_map<(d0) -> (d0)>
func.func @another_attribute(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error @below {{expected attribute 'bngrad.schedule' to be a #bngrad.schedule, got #bngrad.statistics<batch>}}
  linalg.generic {indexing_maps = [#channel, #channel], iterator_types = ["parallel"]}
      ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.statistics<batch>} {
  ^bb0(%e: f32, %out: f32):
    linalg.yield %e : f32
  }
  return
}
