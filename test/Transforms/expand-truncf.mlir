// RUN: bngrad-opt %s --bngrad-expand-truncf | FileCheck %s
// RUN: bngrad-opt %s --bngrad-expand-truncf=bf16-conversion=true | FileCheck %s --check-prefix=CONVERT

// Integer arithmetic computes the sixteen bits; no conversion instruction,
// which may flush subnormals, remains. A NaN is handled separately: rounding up
// must not turn it into an infinity.
// CHECK-LABEL: func @f32_to_bf16
// CHECK-SAME:    %[[X:[^:]+]]: f32
// CHECK-NOT:     arith.truncf
// CHECK-DAG:     %[[BITS:.+]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-DAG:     %[[IS_NAN:.+]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         arith.select %[[IS_NAN]],
// CHECK:         %[[NARROW:.+]] = arith.trunci %{{.+}} : i32 to i16
// CHECK:         %[[RESULT:.+]] = arith.bitcast %[[NARROW]] : i16 to bf16
// CHECK-NOT:     arith.truncf
// CHECK:         return %[[RESULT]]
func.func @f32_to_bf16(%x: f32) -> bf16 {
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}

// Through f32, rounded to odd, so that the second rounding takes the lost bits
// into account.
// CHECK-LABEL: func @f64_to_f16
// CHECK-SAME:    %[[X:[^:]+]]: f64
// CHECK:         %[[NEAREST:.+]] = arith.truncf %[[X]] : f64 to f32
// CHECK:         %[[BACK:.+]] = arith.extf %[[NEAREST]] : f32 to f64
// CHECK:         arith.cmpf one, %[[BACK]], %[[X]]
// CHECK:         %[[ODD:.+]] = arith.bitcast %{{.+}} : i32 to f32
// CHECK:         %[[RESULT:.+]] = arith.truncf %[[ODD]] : f32 to f16
// CHECK-NEXT:    return %[[RESULT]]
func.func @f64_to_f16(%x: f64) -> f16 {
  %0 = arith.truncf %x : f64 to f16
  return %0 : f16
}

// Both at once.
// CHECK-LABEL: func @f64_to_bf16
// CHECK:         arith.truncf %{{.+}} : f64 to f32
// CHECK-NOT:     arith.truncf
// CHECK:         %[[RESULT:.+]] = arith.bitcast %{{.+}} : i16 to bf16
// CHECK-NEXT:    return %[[RESULT]]
func.func @f64_to_bf16(%x: f64) -> bf16 {
  %0 = arith.truncf %x : f64 to bf16
  return %0 : bf16
}

// The instruction converts vectors without numbers that it would flush.
// CONVERT-LABEL: func @f32_to_bf16
// CONVERT-NOT:     llvm.fptrunc
// CONVERT-LABEL: func @vectors
// CONVERT-SAME:    %[[A:[^:]+]]: vector<8xf32>
// CONVERT-DAG:     %[[ZERO:.+]] = arith.constant dense<0> : vector<8xi32>
// CONVERT-DAG:     %[[MASK:.+]] = arith.constant dense<2139095040> : vector<8xi32>
// CONVERT:         %[[BITS:.+]] = arith.bitcast %[[A]] : vector<8xf32> to vector<8xi32>
// CONVERT:         %[[EXPONENT:.+]] = arith.andi %[[BITS]], %[[MASK]]
// CONVERT:         %[[IS_TINY:.+]] = arith.cmpi eq, %[[EXPONENT]], %[[ZERO]]
// CONVERT:         %[[ANY:.+]] = vector.reduction <or>, %[[IS_TINY]]
// CONVERT:         %[[RESULT:.+]] = scf.if %[[ANY]] -> (vector<8xi16>) {
// CONVERT-NOT:       llvm.fptrunc
// CONVERT:           arith.trunci
// CONVERT:         } else {
// CONVERT:           %[[CONVERTED:.+]] = llvm.fptrunc %[[A]] : vector<8xf32> to vector<8xbf16>
// CONVERT:           arith.bitcast %[[CONVERTED]] : vector<8xbf16> to vector<8xi16>
// CONVERT:         arith.bitcast %[[RESULT]] : vector<8xi16> to vector<8xbf16>
// CONVERT-NOT:     llvm.fptrunc
// CHECK-LABEL: func @vectors
// CHECK-NOT:     arith.truncf {{.+}} to vector<{{.*}}xbf16>
// CHECK:         %[[A:.+]] = arith.bitcast %{{.+}} : vector<8xi16> to vector<8xbf16>
// CHECK-NOT:     arith.truncf {{.+}} to vector<{{.*}}xbf16>
// CHECK:         arith.truncf %{{.+}} : vector<2x4xf64> to vector<2x4xf32>
// CHECK:         %[[B:.+]] = arith.truncf %{{.+}} : vector<2x4xf32> to vector<2x4xf16>
// CHECK:         %[[C:.+]] = arith.bitcast %{{.+}} : vector<[4]xi16> to vector<[4]xbf16>
// CHECK-NEXT:    return %[[A]], %[[B]], %[[C]]
func.func @vectors(%a: vector<8xf32>, %b: vector<2x4xf64>, %c: vector<[4]xf32>) -> (vector<8xbf16>, vector<2x4xf16>, vector<[4]xbf16>) {
  %0 = arith.truncf %a : vector<8xf32> to vector<8xbf16>
  %1 = arith.truncf %b : vector<2x4xf64> to vector<2x4xf16>
  %2 = arith.truncf %c : vector<[4]xf32> to vector<[4]xbf16>
  return %0, %1, %2 : vector<8xbf16>, vector<2x4xf16>, vector<[4]xbf16>
}

// The existing lowering of these rounds once.
// CHECK-LABEL: func @other_types_unchanged
// CHECK-SAME:    (%[[A:.+]]: f32, %[[B:.+]]: f64, %[[C:.+]]: vector<4xf32>)
// CHECK-NEXT:    %[[A_R:.+]] = arith.truncf %[[A]] : f32 to f16
// CHECK-NEXT:    %[[B_R:.+]] = arith.truncf %[[B]] : f64 to f32
// CHECK-NEXT:    %[[C_R:.+]] = arith.truncf %[[C]] : vector<4xf32> to vector<4xf16>
// CHECK-NEXT:    return %[[A_R]], %[[B_R]], %[[C_R]]
func.func @other_types_unchanged(%a: f32, %b: f64, %c: vector<4xf32>) -> (f16, f32, vector<4xf16>) {
  %0 = arith.truncf %a : f32 to f16
  %1 = arith.truncf %b : f64 to f32
  %2 = arith.truncf %c : vector<4xf32> to vector<4xf16>
  return %0, %1, %2 : f16, f32, vector<4xf16>
}

// Tensors are not lowered yet.
// CHECK-LABEL: func @tensors_unchanged
// CHECK-NEXT:    arith.truncf %{{.+}} : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT:    arith.truncf %{{.+}} : tensor<?xf64> to tensor<?xf16>
// CHECK-NEXT:    return
func.func @tensors_unchanged(%a: tensor<4xf32>, %b: tensor<?xf64>) -> (tensor<4xbf16>, tensor<?xf16>) {
  %0 = arith.truncf %a : tensor<4xf32> to tensor<4xbf16>
  %1 = arith.truncf %b : tensor<?xf64> to tensor<?xf16>
  return %0, %1 : tensor<4xbf16>, tensor<?xf16>
}

// Pairs are rounded together, and joined on the bits without a shuffle. One comparison finds a NaN in either half; without
// one, none is selected.
// CHECK-LABEL: func @pairs
// CHECK-SAME:    %[[EVEN:[^:]+]]: vector<16xf32>, %[[ODD:[^:]+]]: vector<16xf32>
// CHECK-DAG:     %[[SIXTEEN:.+]] = arith.constant dense<16> : vector<16xi32>
// CHECK-DAG:     %[[UPPER:.+]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK:         %[[HAVE_NAN:.+]] = arith.cmpf uno, %[[EVEN]], %[[ODD]]
// CHECK:         %[[ANY:.+]] = vector.reduction <or>, %[[HAVE_NAN]]
// CHECK:         %[[JOINED:.+]] = scf.if %[[ANY]] -> (vector<32xi16>) {
// CHECK:           %[[IS_NAN:.+]] = arith.cmpf uno, %[[EVEN]], %[[EVEN]]
// CHECK:           %[[ROUNDED:.+]] = arith.select %[[IS_NAN]],
// CHECK:           %[[LOW_BITS:.+]] = arith.shrui %[[ROUNDED]], %[[SIXTEEN]]
// CHECK:           %[[IS_NAN:.+]] = arith.cmpf uno, %[[ODD]], %[[ODD]]
// CHECK:           %[[ROUNDED:.+]] = arith.select %[[IS_NAN]],
// CHECK:           %[[HIGH_BITS:.+]] = arith.andi %[[ROUNDED]], %[[UPPER]]
// CHECK:           %[[PAIRS:.+]] = arith.ori %[[LOW_BITS]], %[[HIGH_BITS]]
// CHECK:           vector.bitcast %[[PAIRS]] : vector<16xi32> to vector<32xi16>
// CHECK:         } else {
// CHECK-NOT:       arith.select
// CHECK:           %[[PAIRS:.+]] = arith.ori
// CHECK-NEXT:      vector.bitcast %[[PAIRS]] : vector<16xi32> to vector<32xi16>
// CHECK:         %[[RESULT:.+]] = arith.bitcast %[[JOINED]] : vector<32xi16> to vector<32xbf16>
// CHECK:         return %[[RESULT]]
// By the instruction if neither has a number that it would flush.
// CONVERT-LABEL: func @pairs
// CONVERT-SAME:    %[[EVEN:[^:]+]]: vector<16xf32>, %[[ODD:[^:]+]]: vector<16xf32>
// CONVERT:         %[[EVEN_BITS:.+]] = arith.bitcast %[[EVEN]]
// CONVERT:         %[[EXPONENT:.+]] = arith.andi %[[EVEN_BITS]]
// CONVERT:         %[[IS_EVEN_TINY:.+]] = arith.cmpi eq, %[[EXPONENT]]
// CONVERT:         %[[ODD_BITS:.+]] = arith.bitcast %[[ODD]]
// CONVERT:         %[[EXPONENT:.+]] = arith.andi %[[ODD_BITS]]
// CONVERT:         %[[IS_ODD_TINY:.+]] = arith.cmpi eq, %[[EXPONENT]]
// CONVERT:         %[[IS_TINY:.+]] = arith.ori %[[IS_EVEN_TINY]], %[[IS_ODD_TINY]]
// CONVERT:         %[[ANY:.+]] = vector.reduction <or>, %[[IS_TINY]]
// CONVERT:         scf.if %[[ANY]] -> (vector<32xi16>) {
// CONVERT:           vector.bitcast
// CONVERT:         } else {
// CONVERT:           %[[E:.+]] = llvm.fptrunc %[[EVEN]]
// CONVERT:           %[[E_BITS:.+]] = arith.bitcast %[[E]]
// CONVERT:           %[[O:.+]] = llvm.fptrunc %[[ODD]]
// CONVERT:           %[[O_BITS:.+]] = arith.bitcast %[[O]]
// CONVERT:           vector.interleave %[[E_BITS]], %[[O_BITS]] : vector<16xi16> -> vector<32xi16>
func.func @pairs(%even: vector<16xf32>, %odd: vector<16xf32>) -> vector<32xbf16> {
  %0 = arith.truncf %even : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %odd : vector<16xf32> to vector<16xbf16>
  %2 = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
  return %2 : vector<32xbf16>
}

// A half that is used elsewhere, too, is rounded on its own.
// CHECK-LABEL: func @no_pairs
// CHECK-COUNT-2: arith.trunci
// CHECK:         vector.interleave %{{.+}}, %{{.+}} : vector<16xbf16>
func.func @no_pairs(%even: vector<16xf32>, %odd: vector<16xf32>) -> (vector<32xbf16>, vector<16xbf16>) {
  %0 = arith.truncf %even : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %odd : vector<16xf32> to vector<16xbf16>
  %2 = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
  return %2, %1 : vector<32xbf16>, vector<16xbf16>
}

// Nor are vectors of rank 0, and halves of another block, pairs.
// CHECK-LABEL: func @no_pairs_of_rank_0
// CHECK-COUNT-2: arith.trunci %{{.+}} : vector<i32> to vector<i16>
// CHECK:         vector.interleave
func.func @no_pairs_of_rank_0(%even: vector<f32>, %odd: vector<f32>) -> vector<2xbf16> {
  %0 = arith.truncf %even : vector<f32> to vector<bf16>
  %1 = arith.truncf %odd : vector<f32> to vector<bf16>
  %2 = vector.interleave %0, %1 : vector<bf16> -> vector<2xbf16>
  return %2 : vector<2xbf16>
}

// CHECK-LABEL: func @no_pairs_of_another_block
// CHECK-COUNT-2: arith.trunci
// CHECK:         scf.if
// CHECK:           vector.interleave
func.func @no_pairs_of_another_block(%even: vector<16xf32>, %odd: vector<16xf32>, %p: i1, %x: vector<32xbf16>) -> vector<32xbf16> {
  %0 = arith.truncf %even : vector<16xf32> to vector<16xbf16>
  %1 = arith.truncf %odd : vector<16xf32> to vector<16xbf16>
  %2 = scf.if %p -> vector<32xbf16> {
    %3 = vector.interleave %0, %1 : vector<16xbf16> -> vector<32xbf16>
    scf.yield %3 : vector<32xbf16>
  } else {
    scf.yield %x : vector<32xbf16>
  }
  return %2 : vector<32xbf16>
}
