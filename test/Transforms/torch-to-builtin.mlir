// RUN: bngrad-opt %s --split-input-file --bngrad-torch-to-builtin 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN --input-file=%t

// Calls between functions follow.

// CHECK-LABEL: func.func private @external(tensor<?x4xf32>, i64) -> tensor<4xi64>
func.func private @external(!torch.vtensor<[?,4],f32>, i64) -> !torch.vtensor<[4],si64>

// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x4xf32>, %[[N:[^:]+]]: i64) -> (tensor<4xi64>, tensor<?x4xf32>) {
// CHECK-NEXT: %[[NEG:.+]] = arith.negf %[[X]] : tensor<?x4xf32>
// CHECK-NEXT: %[[R:.+]] = call @external(%[[NEG]], %[[N]]) : (tensor<?x4xf32>, i64) -> tensor<4xi64>
// CHECK-NEXT: return %[[R]], %[[X]] : tensor<4xi64>, tensor<?x4xf32>
func.func @caller(%x: !torch.vtensor<[?,4],f32>, %n: i64) -> (!torch.vtensor<[4],si64>, !torch.vtensor<[?,4],f32>) {
  %0 = builtin.unrealized_conversion_cast %x : !torch.vtensor<[?,4],f32> to tensor<?x4xf32>
  %1 = arith.negf %0 : tensor<?x4xf32>
  %2 = builtin.unrealized_conversion_cast %1 : tensor<?x4xf32> to !torch.vtensor<[?,4],f32>
  %3 = call @external(%2, %n) : (!torch.vtensor<[?,4],f32>, i64) -> !torch.vtensor<[4],si64>
  return %3, %x : !torch.vtensor<[4],si64>, !torch.vtensor<[?,4],f32>
}

// -----

// Another op of torch: the module is torch-mlir's to convert.

// CHECK-LABEL: func.func @left(
// CHECK-SAME: !torch.vtensor<[4],f32>
// CHECK-NEXT: "torch.aten.relu"
func.func @left(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %0 = "torch.aten.relu"(%x) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}

// -----

// Unknown rank, unknown dtype: these remain, and errors name them.

// CHECK-LABEL: func.func @unknown_rank(
// CHECK-SAME: !torch.vtensor<*,f32>
func.func @unknown_rank(%x: !torch.vtensor<*,f32>) -> !torch.vtensor<*,f32> {
  return %x : !torch.vtensor<*,f32>
}

// -----

// CHECK-LABEL: func.func @unknown_dtype(
// CHECK-SAME: !torch.vtensor<[4],unk>, %{{[^:]+}}: tensor<4xf32>) -> !torch.vtensor<[4],unk>
func.func @unknown_dtype(%x: !torch.vtensor<[4],unk>, %y: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],unk> {
  return %x : !torch.vtensor<[4],unk>
}

// -----

// Integers of every sign and width, small floats and complex numbers.

// CHECK-LABEL: func.func @dtypes(
// CHECK-SAME: tensor<2xi8>, %{{[^:]+}}: tensor<2xi8>, %{{[^:]+}}: tensor<i16>, %{{[^:]+}}: tensor<2xi64>,
// CHECK-SAME: tensor<2xf8E4M3FN>, %{{[^:]+}}: tensor<2xcomplex<f32>>)
func.func @dtypes(%a: !torch.vtensor<[2],ui8>, %b: !torch.vtensor<[2],si8>, %c: !torch.vtensor<[],ui16>,
                  %d: !torch.vtensor<[2],ui64>, %e: !torch.vtensor<[2],f8E4M3FN>,
                  %f: !torch.vtensor<[2],complex<f32>>) {
  return
}

// -----

// Arguments of other types that nothing uses.

// WARN: warning: omitted argument 0, which has no use and whose type '!torch.vtensor' has no builtin one
// WARN: warning: omitted argument 2, which has no use and whose type '!torch.list<int>' has no builtin one
// CHECK-LABEL: func.func @unused(
// CHECK-SAME: %[[X:[^:]+]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: return %[[X]]
func.func @unused(%a: !torch.vtensor, %x: !torch.vtensor<[4],f32>, %b: !torch.list<int>) -> !torch.vtensor<[4],f32> {
  return %x : !torch.vtensor<[4],f32>
}

// -----

// Callers count on the arguments.

// CHECK-LABEL: func.func @called(
// CHECK-SAME: !torch.list<int>
func.func @called(%x: !torch.vtensor<[4],f32>, %b: !torch.list<int>) -> !torch.vtensor<[4],f32> {
  return %x : !torch.vtensor<[4],f32>
}
func.func @calls(%x: !torch.vtensor<[4],f32>, %b: !torch.list<int>) -> !torch.vtensor<[4],f32> {
  %0 = call @called(%x, %b) : (!torch.vtensor<[4],f32>, !torch.list<int>) -> !torch.vtensor<[4],f32>
  return %0 : !torch.vtensor<[4],f32>
}
