// RUN: bngrad-opt %s --bngrad-expand-truncf | FileCheck %s
// RUN: bngrad-opt %s --bngrad-expand-truncf=kernel-bf16-conversion=true | FileCheck %s --check-prefix=KERNEL

// The instruction of the GPU rounds as the op does; that of the host need not.
// CHECK-LABEL: func @kernel
// CHECK-NOT:     f32 to bf16
// KERNEL-LABEL: func @kernel
// KERNEL-SAME:    %[[A:[^:]+]]: vector<8xf32>, %[[B:[^:]+]]: f64
// KERNEL-NOT:     f32 to bf16
// KERNEL:         gpu.launch
// KERNEL:           arith.truncf %[[A]] : vector<8xf32> to vector<8xbf16>
// KERNEL:           %[[ODD:.+]] = arith.bitcast %{{.+}} : i32 to f32
// KERNEL-NEXT:      arith.truncf %[[ODD]] : f32 to bf16
// KERNEL:           gpu.terminator
// KERNEL-NOT:     f32 to bf16
// KERNEL:         return
func.func @kernel(%a: vector<8xf32>, %b: f64, %n: index, %out: memref<vector<8xbf16>>, %last: memref<bf16>, %f: f32) -> bf16 {
  gpu.launch blocks(%i, %j, %k) in (%x = %n, %y = %n, %z = %n) threads(%u, %v, %w) in (%p = %n, %q = %n, %r = %n) {
    %0 = arith.truncf %a : vector<8xf32> to vector<8xbf16>
    memref.store %0, %out[] : memref<vector<8xbf16>>
    %1 = arith.truncf %b : f64 to bf16
    memref.store %1, %last[] : memref<bf16>
    gpu.terminator
  }
  %2 = arith.truncf %f : f32 to bf16
  return %2 : bf16
}
