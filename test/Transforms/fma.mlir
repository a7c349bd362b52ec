// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize --cse --split-input-file | FileCheck %s

// The element-wise op and its fused neighbours: `fma = true` on ops that allow it.

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// The term of a sum, in whole vectors and in the remainder of a row.
// CHECK-LABEL: func @sum(
// CHECK:         %[[X:.+]] = vector.maskedload
// CHECK:         %[[Y:.+]] = vector.maskedload
// CHECK-NOT:     arith.mulf
// CHECK:         llvm.intr.fma(%[[X]], %[[Y]], %{{.+}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// CHECK:         %[[X:.+]] = vector.load
// CHECK:         %[[Y:.+]] = vector.load
// CHECK-NOT:     arith.mulf
// CHECK:         llvm.intr.fma(%[[X]], %[[Y]], %{{.+}}) : (vector<64xf32>, vector<64xf32>, vector<64xf32>) -> vector<64xf32>
// CHECK-NOT:     arith.mulf
// CHECK:         return
func.func @sum(%x: memref<2x3x1100xf32>, %y: memref<2x3x1100xf32>, %sum: memref<3xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x, %y : memref<2x3x1100xf32>, memref<2x3x1100xf32>) outs(%sum : memref<3xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, fma = true>} {
  ^bb0(%e: f32, %f: f32, %acc: f32):
    %0 = arith.mulf %e, %f fastmath<contract> : f32
    %1 = arith.addf %0, %acc fastmath<contract, reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// CHECK-LABEL: func @differences(
// CHECK:         %[[F:.+]] = memref.load
// CHECK:         %[[X:.+]] = vector.load
// CHECK:         %[[Y:.+]] = vector.load
// a - x*y, with the product on the right:
// CHECK-DAG:     %[[FF:.+]] = vector.broadcast %[[F]] : f32 to vector<64xf32>
// CHECK-DAG:     %[[MINUS_X:.+]] = arith.negf %[[X]] : vector<64xf32>
// CHECK:         %[[A:.+]] = llvm.intr.fma(%[[MINUS_X]], %[[FF]], %[[Y]])
// x*y - a:
// CHECK:         %[[MINUS_Y:.+]] = arith.negf %[[Y]] : vector<64xf32>
// CHECK:         %[[B:.+]] = llvm.intr.fma(%[[X]], %[[A]], %[[MINUS_Y]])
// x*y + z*w, one of them:
// CHECK:         %[[XY:.+]] = arith.mulf %[[X]], %[[Y]] : vector<64xf32>
// CHECK:         llvm.intr.fma(%[[B]], %[[FF]], %[[XY]])
// CHECK:         vector.store
func.func @differences(%x: memref<2x3x1024xf32>, %y: memref<2x3x1024xf32>, %f: memref<3xf32>, %z: memref<2x3x1024xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %y, %f : memref<2x3x1024xf32>, memref<2x3x1024xf32>, memref<3xf32>) outs(%z : memref<2x3x1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, fma = true>} {
  ^bb0(%e: f32, %g: f32, %h: f32, %out: f32):
    %0 = arith.mulf %e, %h fastmath<contract> : f32
    %1 = arith.subf %g, %0 fastmath<contract> : f32
    %2 = arith.mulf %e, %1 fastmath<contract> : f32
    %3 = arith.subf %2, %g fastmath<contract> : f32
    %4 = arith.mulf %e, %g fastmath<contract> : f32
    %5 = arith.mulf %3, %h fastmath<contract> : f32
    %6 = arith.addf %4, %5 fastmath<contract> : f32
    linalg.yield %6 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// In f64 as in f32.
// CHECK-LABEL: func @double(
// CHECK-NOT:     arith.mulf
// CHECK:         llvm.intr.fma({{.+}}) : (vector<32xf64>, vector<32xf64>, vector<32xf64>) -> vector<32xf64>
// CHECK:         return
func.func @double(%x: memref<2x3x1024xf64>, %f: memref<3xf64>, %z: memref<2x3x1024xf64>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<2x3x1024xf64>, memref<3xf64>) outs(%z : memref<2x3x1024xf64>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, fma = true>} {
  ^bb0(%e: f64, %g: f64, %out: f64):
    %0 = arith.mulf %e, %g fastmath<contract> : f64
    %1 = arith.addf %0, %g fastmath<contract> : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Not if the product has two uses, if one of the two ops does not allow it, or in a type that is computed in a wider
// one.
// CHECK-LABEL: func @refused(
// CHECK-NOT:     llvm.intr.fma
// CHECK:         return
func.func @refused(%x: memref<2x3x1024xf32>, %h: memref<2x3x1024xf16>, %f: memref<3xf32>, %z: memref<2x3x1024xf32>) {
  linalg.generic {indexing_maps = [#data, #data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %h, %f : memref<2x3x1024xf32>, memref<2x3x1024xf16>, memref<3xf32>) outs(%z : memref<2x3x1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels, fma = true>} {
  ^bb0(%e: f32, %i: f16, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g fastmath<contract> : f32
    %1 = arith.addf %0, %e fastmath<contract> : f32
    %2 = arith.divf %1, %0 : f32
    %3 = arith.mulf %2, %e : f32
    %4 = arith.addf %3, %g fastmath<contract> : f32
    %5 = arith.mulf %4, %e fastmath<contract> : f32
    %6 = arith.addf %5, %g : f32
    %7 = arith.mulf %i, %i fastmath<contract> : f16
    %8 = arith.subf %7, %i fastmath<contract> : f16
    %9 = arith.extf %8 : f16 to f32
    %10 = arith.divf %9, %6 : f32
    linalg.yield %10 : f32
  }
  return
}

// -----

#data = affine_map<(n, c, s) -> (n, c, s)>
#feature = affine_map<(n, c, s) -> (c)>

// Nor without `fma`.
// CHECK-LABEL: func @without(
// CHECK-NOT:     llvm.intr.fma
// CHECK:         arith.mulf %{{.+}}, %{{.+}} : vector<64xf32>
// CHECK-NEXT:    arith.addf %{{.+}}, %{{.+}} : vector<64xf32>
// CHECK-NOT:     llvm.intr.fma
// CHECK:         return
func.func @without(%x: memref<2x3x1024xf32>, %f: memref<3xf32>, %z: memref<2x3x1024xf32>) {
  linalg.generic {indexing_maps = [#data, #feature, #data], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %f : memref<2x3x1024xf32>, memref<3xf32>) outs(%z : memref<2x3x1024xf32>)
      attrs = {bngrad.schedule = #bngrad.schedule<channels>} {
  ^bb0(%e: f32, %g: f32, %out: f32):
    %0 = arith.mulf %e, %g fastmath<contract> : f32
    %1 = arith.addf %0, %e fastmath<contract> : f32
    linalg.yield %1 : f32
  }
  return
}
