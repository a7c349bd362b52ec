// Schedules set by hand on IR that they do not fit: scalar loops and a remark, upstream's loops, or an error; the
// output verifies.

// RUN: bngrad-opt %s --bngrad-apply-schedule --split-input-file --verify-diagnostics --mlir-print-local-scope \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule | FileCheck %s

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// The sums read the result of an earlier member.
// CHECK-LABEL: func @sums_come_second
// CHECK-NOT:     vector
func.func @sums_come_second(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %sum: memref<4xf32>) {
  scf.execute_region no_inline {
    // expected-remark @below {{scalar loops instead of vectors: expected reductions and per-channel loops, then loops over the data}}
    linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %out: f32):
      %0 = arith.addf %e, %e : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%y : memref<8x4xf32>) outs(%sum : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// The per-channel loop comes last, too late for the loop over the data before it.
// CHECK-LABEL: func @channels_come_last
// CHECK-NOT:     vector
func.func @channels_come_last(%x: memref<8x4xf32>, %f: memref<4xf32>, %y: memref<8x4xf32>) {
  scf.execute_region no_inline {
    // expected-remark @below {{scalar loops instead of vectors: expected reductions and per-channel loops, then loops over the data}}
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<8x4xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.addf %e, %g : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
        outs(%f : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%out: f32):
      %0 = arith.negf %out : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// The sum of another channel is read, which may not be there yet.
// CHECK-LABEL: func @sums_of_other_channels
// CHECK-NOT:     vector
func.func @sums_of_other_channels(%x: memref<4x4xf32>, %sum: memref<4xf32>, %y: memref<4x4xf32>) {
  scf.execute_region no_inline {
    // expected-remark @below {{scalar loops instead of vectors: expected per-channel values to be read at the channel}}
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x4xf32>) outs(%sum : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, affine_map<(n, c) -> (n)>, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<4x4xf32>, memref<4xf32>) outs(%y : memref<4x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.addf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Data that are no operand.
// CHECK-LABEL: func @data_from_outside
// CHECK-NOT:     vector
func.func @data_from_outside(%x: memref<8x4xf32>, %f: memref<4xf32>, %y: memref<8x4xf32>) {
  // expected-remark @below {{scalar loops instead of vectors: expected bodies that read no data but the operands}}
  linalg.generic {indexing_maps = [#feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%f : memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%g: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %e = memref.load %x[%i, %j] : memref<8x4xf32>
    %0 = arith.addf %e, %g : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// The summed data are overwritten before the second member.
// CHECK-LABEL: func @filled_between
// CHECK-NOT:     vector
func.func @filled_between(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %sum: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  scf.execute_region no_inline {
    // expected-remark @below {{scalar loops instead of vectors: expected no 'linalg.fill' between the members}}
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x4xf32>) outs(%sum : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.fill ins(%zero : f32) outs(%x : memref<8x4xf32>)
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<8x4xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.addf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// An op without effects may stand between the members.
// CHECK-LABEL: func @view_between
// CHECK:         vector
func.func @view_between(%x: memref<8x4xf32>, %y: memref<4x2x4xf32>, %sum: memref<4xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x4xf32>) outs(%sum : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    %view = memref.collapse_shape %y [[0, 1], [2]] : memref<4x2x4xf32> into memref<8x4xf32>
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<8x4xf32>, memref<4xf32>) outs(%view : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %0 = arith.addf %e, %s : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Kernels are not made of tensors either.
// CHECK-LABEL: func @kernel_of_tensors
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @kernel_of_tensors(%x: tensor<8x4xf32>, %sum: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{loops of the host instead of kernels: expected memrefs}}
  // expected-remark @below {{left to upstream's loops: expected memrefs}}
  %0 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<8x4xf32>) outs(%sum : tensor<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %acc: f32):
    %1 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Nor of integers that do not fill bytes.
// CHECK-LABEL: func @kernel_of_packed_integers
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @kernel_of_packed_integers(%x: memref<8x4xi4>, %f: memref<4xf32>, %y: memref<8x4xf32>) {
  // expected-remark @below {{loops of the host instead of kernels: expected integers of 1, 8, 16, 32 or 64 bits}}
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<8x4xi4>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: i4, %g: f32, %out: f32):
    %0 = arith.sitofp %e : i4 to f32
    %1 = arith.mulf %0, %g : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Indices are not in shared memory, nor read as vectors.
// CHECK-LABEL: func @kernel_of_indices
// CHECK:         gpu.launch
// CHECK:           memref.load %{{.+}} : memref<64x32xindex>
// CHECK:         return
func.func @kernel_of_indices(%x: memref<64x32xindex>, %sum: memref<32xf32>, %y: memref<64x32xf32>) {
  scf.execute_region no_inline {
    // expected-remark @below {{two passes instead of one: expected data of integers or floats, got 'index'}}
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<64x32xindex>) outs(%sum : memref<32xf32>) attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 4>} {
    ^bb0(%e: index, %acc: f32):
      %0 = arith.index_cast %e : index to i64
      %1 = arith.sitofp %0 : i64 to f32
      %2 = arith.addf %acc, %1 fastmath<reassoc> : f32
      linalg.yield %2 : f32
    }
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %sum : memref<64x32xindex>, memref<32xf32>) outs(%y : memref<64x32xf32>) attrs = {bngrad.schedule = #bngrad.schedule<one_pass, block_threads = 128, block_channels = 4>} {
    ^bb0(%e: index, %s: f32, %out: f32):
      %0 = arith.index_cast %e : index to i64
      %1 = arith.sitofp %0 : i64 to f32
      %2 = arith.mulf %1, %s : f32
      linalg.yield %2 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Rows without elements, which are read one by one.
// CHECK-LABEL: func @kernel_of_empty_rows
// CHECK:         return
func.func @kernel_of_empty_rows(%x: memref<64x0xindex>, %f: memref<0xindex>, %y: memref<64x0xindex>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<64x0xindex>, memref<0xindex>) outs(%y : memref<64x0xindex>) attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 128, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: index, %g: index, %out: index):
    %0 = arith.addi %e, %g : index
    linalg.yield %0 : index
  }
  return
}

// -----

#data = affine_map<(n, c, h, w) -> (n, c, h, w)>
#feature = affine_map<(n, c, h, w) -> (c)>

// The apply pass does not support tensors.
// CHECK-LABEL: func @tensors
// CHECK:         linalg.generic
func.func @tensors(%x: tensor<2x3x4x5xf32>, %sum: tensor<3xf32>) -> tensor<3xf32> {
  // expected-remark @below {{scalar loops instead of vectors: expected memrefs}}
  // expected-remark @below {{left to upstream's loops: expected memrefs}}
  %0 = linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<2x3x4x5xf32>) outs(%sum : tensor<3xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %1 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %1 : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// No dense form is tested for strided complex numbers.
// CHECK-LABEL: func @complex
// CHECK:         complex.add
func.func @complex(%x: memref<8x4xcomplex<f32>, strided<[?, ?]>>, %f: memref<4xcomplex<f32>>, %y: memref<8x4xcomplex<f32>, strided<[?, ?]>>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<8x4xcomplex<f32>, strided<[?, ?]>>, memref<4xcomplex<f32>>)
        outs(%y : memref<8x4xcomplex<f32>, strided<[?, ?]>>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: complex<f32>, %g: complex<f32>, %out: complex<f32>):
      %0 = complex.add %e, %g : complex<f32>
      linalg.yield %0 : complex<f32>
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Members in two blocks are not a group.
// CHECK-LABEL: func @two_blocks
// CHECK-NOT:     linalg.generic
func.func @two_blocks(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %f: memref<4xf32>, %b: i1) {
  scf.execute_region no_inline {
    cf.cond_br %b, ^bb1, ^bb2
  ^bb1:
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<8x4xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.addf %e, %g : f32
      linalg.yield %0 : f32
    }
    cf.br ^bb2
  ^bb2:
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<8x4xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// Elements that no register holds.
// CHECK-LABEL: func @long_elements
// CHECK-NOT:     vector
// CHECK:         return
func.func @long_elements(%x: memref<8x4xf80>, %f: memref<4xf80>, %y: memref<8x4xf80>) {
  // expected-remark @below {{scalar loops instead of vectors: expected elements of 1, 8, 16, 32 or 64 bits}}
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x, %f : memref<8x4xf80>, memref<4xf80>) outs(%y : memref<8x4xf80>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
  ^bb0(%e: f80, %g: f80, %out: f80):
    %0 = arith.addf %e, %g : f80
    linalg.yield %0 : f80
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// All rows are read as one, so no operand may differ from row to row.
// CHECK-LABEL: func @values_of_rows
// CHECK-NOT:     vector
// CHECK:         return
func.func @values_of_rows(%x: memref<8x4xf32>, %r: memref<8xf32>, %f: memref<4xf32>, %y: memref<8x4xf32>) {
  scf.execute_region no_inline {
    // expected-remark @below {{scalar loops instead of vectors: expected loops [N, C, S], [C, S] or [N, C] over dense data}}
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x4xf32>) outs(%f : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#data, affine_map<(n, c) -> (n)>, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %r, %f : memref<8x4xf32>, memref<8xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %u: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      %1 = arith.addf %0, %u : f32
      linalg.yield %1 : f32
    }
    scf.yield
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>

// A kernel is of a group, which has channels.
// CHECK-LABEL: func @kernel_without_channels
// CHECK-NOT:     gpu.launch
// CHECK:         scf.parallel
// CHECK:         return
func.func @kernel_without_channels(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {
  // expected-remark @below {{loops of the host instead of kernels: expected loops over channels and loops over their elements}}
  linalg.generic {indexing_maps = [#data, #data], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<two_pass, block_threads = 64, block_accesses = 1024, sum_blocks = 16>} {
  ^bb0(%e: f32, %out: f32):
    %0 = arith.negf %e : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

func.func @two_schedules(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %f: memref<4xf32>) {
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x4xf32>) outs(%f : memref<4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<rows>} {
    ^bb0(%e: f32, %acc: f32):
      %0 = arith.addf %acc, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    // expected-error @below {{expected the schedule of its group, #bngrad.schedule<rows>, got #bngrad.schedule<loops>}}
    linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel"]}
        ins(%x, %f : memref<8x4xf32>, memref<4xf32>) outs(%y : memref<8x4xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %g: f32, %out: f32):
      %0 = arith.mulf %e, %g : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  return
}

// -----

// expected-error @below {{expected threads to be in [0, 4096], got 9223372036854775807}}
func.func private @threads() attributes {schedule = #bngrad.schedule<rows, threads = 9223372036854775807>}

// -----

// Another kind than the one that was written has the loops of the data.

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>

// CHECK-LABEL: func @other_kind
// CHECK:         vector.load
func.func @other_kind(%x: memref<64x32xf32>, %sum: memref<32xf32>) {
  // expected-remark @below {{rows instead of channels, which has other loops}}
  linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x32xf32>) outs(%sum : memref<32xf32>) attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %acc: f32):
    %0 = arith.addf %acc, %e fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}
