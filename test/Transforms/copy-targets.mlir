// Sums are written directly to the target of their copy, unless an op in between would observe it.

// RUN: bngrad-opt %s --bngrad-apply-schedule --canonicalize | FileCheck %s

#data = affine_map<(n, c) -> (n, c)>
#feature = affine_map<(n, c) -> (c)>
!row = memref<3xf32, strided<[1], offset: 3>>

// Uses of the other row are allowed; the target view is created before the sums.
// CHECK-LABEL: func @rows
// CHECK-NOT:     memref.alloc
// CHECK:         memref.subview %{{.+}}[1, 0]
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @rows(%x: memref<4x3xf32>, %stack: memref<2x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %first = memref.subview %stack[0, 0] [1, 3] [1, 1] : memref<2x3xf32> to memref<3xf32, strided<[1]>>
  linalg.fill ins(%zero : f32) outs(%first : memref<3xf32, strided<[1]>>)
  %sum = memref.alloc() : memref<3xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<3xf32>)
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x3xf32>) outs(%first, %sum : memref<3xf32, strided<[1]>>, memref<3xf32>)
        attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %a: f32, %b: f32):
      %0 = arith.addf %a, %e fastmath<reassoc> : f32
      %1 = arith.addf %b, %e fastmath<reassoc> : f32
      linalg.yield %0, %1 : f32, f32
    }
    scf.yield
  }
  %second = memref.subview %stack[1, 0] [1, 3] [1, 1] : memref<2x3xf32> to !row
  memref.copy %sum, %second : memref<3xf32> to !row
  memref.dealloc %sum : memref<3xf32>
  return
}

// The sums read memory that overlaps the target.
// CHECK-LABEL: func @overlap
// CHECK:         memref.alloc
// CHECK:         memref.copy
func.func @overlap(%x: memref<4x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %sum = memref.alloc() : memref<3xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<3xf32>)
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x3xf32>) outs(%sum : memref<3xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %a: f32):
      %0 = arith.addf %a, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  %row = memref.subview %x[1, 0] [1, 3] [1, 1] : memref<4x3xf32> to !row
  memref.copy %sum, %row : memref<3xf32> to !row
  memref.dealloc %sum : memref<3xf32>
  return
}

// CHECK-LABEL: func @same_part
// CHECK:         memref.alloc
// CHECK:         memref.copy
func.func @same_part(%x: memref<4x3xf32>, %stack: memref<2x3xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %sum = memref.alloc() : memref<3xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<3xf32>)
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x3xf32>) outs(%sum : memref<3xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %a: f32):
      %0 = arith.addf %a, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  %part = memref.subview %stack[0, 0] [2, 3] [1, 1] : memref<2x3xf32> to memref<2x3xf32, strided<[3, 1]>>
  %second = memref.subview %stack[1, 0] [1, 3] [1, 1] : memref<2x3xf32> to !row
  %before = memref.load %part[%c0, %c0] : memref<2x3xf32, strided<[3, 1]>>
  memref.copy %sum, %second : memref<3xf32> to !row
  memref.dealloc %sum : memref<3xf32>
  return %before : f32
}

// Read again after the copy.
// CHECK-LABEL: func @read_later
// CHECK:         memref.alloc
// CHECK:         memref.copy
func.func @read_later(%x: memref<4x3xf32>, %stack: memref<2x3xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %sum = memref.alloc() : memref<3xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<3xf32>)
  scf.execute_region no_inline {
    linalg.generic {indexing_maps = [#data, #feature], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x3xf32>) outs(%sum : memref<3xf32>) attrs = {bngrad.schedule = #bngrad.schedule<loops>} {
    ^bb0(%e: f32, %a: f32):
      %0 = arith.addf %a, %e fastmath<reassoc> : f32
      linalg.yield %0 : f32
    }
    scf.yield
  }
  %second = memref.subview %stack[1, 0] [1, 3] [1, 1] : memref<2x3xf32> to !row
  memref.copy %sum, %second : memref<3xf32> to !row
  memref.store %zero, %stack[%c0, %c0] : memref<2x3xf32>
  %after = memref.load %sum[%c0] : memref<3xf32>
  memref.dealloc %sum : memref<3xf32>
  return %after : f32
}
