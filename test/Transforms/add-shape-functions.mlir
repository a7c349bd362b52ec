// RUN: bngrad-opt %s --bngrad-add-shape-functions --split-input-file | FileCheck %s

// CHECK:       func.func private @bngrad.size_error(%{{.+}}: !llvm.ptr, %{{.+}}: i64, %{{.+}}: i64, %{{.+}}: i64) -> i32 attributes {bngrad.returns_status}
// CHECK-COUNT-3: llvm.store
// CHECK:         %[[BAD_SHAPE:.+]] = arith.constant 4 : i32
// CHECK:         return %[[BAD_SHAPE]]
// CHECK-LABEL: func.func @gradient(
// CHECK-SAME:    bngrad.parameters = ["grad_output", "input", "mean", "variance", "grad_input", "grad_scale"]
// CHECK-SAME:    bngrad.shapes = @gradient.shapes
// CHECK-SAME:    bngrad.size_errors = ["expected size 0 of grad_output to be size 0 of input, %lld, got %lld (line {{[0-9]+}})",
// CHECK-LABEL: func.func private @gradient.shapes(
// CHECK-SAME:    %[[DY:.+]]: tensor<?x?xf32>, %[[X:.+]]: tensor<?x?xf32>, %[[MEAN:[^:]+]]: tensor<?xf32>, %{{[^:]+}}: tensor<?xf32>, %[[ERROR:.+]]: !llvm.ptr) -> (index, index, index) {
// CHECK-DAG:     %[[N:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG:     %[[NY:.+]] = tensor.dim %[[DY]], %c0
// CHECK-DAG:     %[[WRONG:.+]] = arith.cmpi ne, %[[NY]], %[[N]]
// CHECK:         scf.if %[[WRONG]] {
// CHECK-DAG:       %[[ACTUAL:.+]] = arith.index_cast %[[NY]]
// CHECK-DAG:       %[[EXPECTED:.+]] = arith.index_cast %[[N]]
// CHECK:           call @bngrad.size_error(%[[ERROR]], %c0_i64, %[[EXPECTED]], %[[ACTUAL]])
// CHECK:         call @bngrad.size_error(%[[ERROR]], %c1_i64,
// CHECK:         call @bngrad.size_error(%[[ERROR]], %c2_i64,
// CHECK-NOT:     bngrad.batch_norm_backward
// CHECK:         return %{{.+}}, %{{.+}}, %{{.+}} : index, index, index
// CHECK-NOT:   @hidden.shapes
func.func @gradient(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>, %mean: tensor<?xf32>, %variance: tensor<?xf32>)
    -> (tensor<?x?xf32>, tensor<?xf32>) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%mean : tensor<?xf32>) variance(%variance : tensor<?xf32>) : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  return %0#0, %0#1 : tensor<?x?xf32>, tensor<?xf32>
}
func.func private @hidden(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}

// -----

// It writes nothing; names are those of locations, and numbers.
// CHECK-LABEL: func.func @writes(
// CHECK-SAME:    bngrad.parameters = ["destination", "arg1"]
// CHECK-LABEL: func.func private @writes.shapes(
// CHECK-NOT:     memref.store
// CHECK-NOT:     materialize_in_destination
// CHECK:         return
func.func @writes(%a: memref<?xf32> loc("destination"), %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f32
  memref.store %x, %a[%c0] : memref<?xf32>
  %0 = bufferization.to_tensor %b restrict : memref<?xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %0 in restrict writable %a : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----

// Upstream does not check element-wise ops on tensors. Static sizes are the
// verifier's.
// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME:    bngrad.size_errors = ["expected dim 0 of operand 1 to have the size of dim 0 of operand 0, %lld, got %lld (line {{[0-9]+}})"]
// CHECK-LABEL: func.func private @elementwise.shapes(
// CHECK:         arith.cmpi ne
func.func @elementwise(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = arith.mulf %a, %b : tensor<?x4xf32>
  %1 = math.absf %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Checks that depend on memory which the function writes are left out, and the others stay. Ops on buffers become
// loops, which write nothing.
// CHECK-LABEL: func.func @partly(
// CHECK-SAME:    bngrad.shapes = @partly.shapes
// CHECK-LABEL: func.func private @partly.shapes(
// CHECK-SAME:    %[[READ:[^:]+]]: memref<?xindex>, %[[WRITTEN:[^:]+]]: memref<?xindex>
// CHECK-NOT:     linalg.
// CHECK-NOT:     memref.store
// CHECK-NOT:     memref.load %[[WRITTEN]]
// CHECK:         memref.load %[[READ]]
// CHECK-NOT:     memref.load %[[WRITTEN]]
// CHECK:         return
func.func @partly(%read: memref<?xindex>, %written: memref<?xindex>, %a: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %known = memref.load %read[%c0] : memref<?xindex>
  %x = memref.load %a[%known] : memref<?xindex>
  linalg.fill ins(%x : index) outs(%written : memref<?xindex>)
  %unknown = memref.load %written[%c0] : memref<?xindex>
  %y = memref.load %read[%unknown] : memref<?xindex>
  memref.store %y, %written[%c0] : memref<?xindex>
  return
}

// -----

// The limit continues the message, as the size of another operand does.
// CHECK-LABEL: func.func @sized(
// CHECK-SAME:    bngrad.size_errors = ["expected dynamic size 0 to be at least %lld, got %lld (line {{[0-9]+}})",
// CHECK-SAME:                        "expected product of sizes to be at most %lld, got %lld (line {{[0-9]+}})"]
func.func @sized(%n: index) -> tensor<?xf32> {
  %0 = tensor.generate %n {
  ^bb0(%i: index):
    %x = arith.constant 1.0 : f32
    tensor.yield %x : f32
  } : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// What writes is removed, whatever uses its result.
// CHECK-LABEL: func.func private @written_results.shapes(
// CHECK:         memref.dim %[[A:.+]], %
// CHECK:         call @bngrad.size_error(
// CHECK-NOT:     bufferization.clone
// CHECK-NOT:     atomic
// CHECK-NOT:     memref.store
// CHECK:         return
func.func @written_results(%a: memref<?xf32>, %i: index, %c: i1) {
  %zero = arith.constant 0.0 : f32
  %q = bufferization.clone %a : memref<?xf32> to memref<?xf32>
  memref.store %zero, %q[%i] : memref<?xf32>
  %r = scf.if %c -> f32 {
    %x = memref.generic_atomic_rmw %q[%i] : memref<?xf32> {
    ^bb0(%v: f32):
      memref.atomic_yield %v : f32
    }
    scf.yield %x : f32
  } else {
    scf.yield %zero : f32
  }
  memref.store %r, %a[%i] : memref<?xf32>
  return
}
