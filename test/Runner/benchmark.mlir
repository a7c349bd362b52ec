// --benchmark prints one line with every key, in order; their values are consistent.

// DEFINE: %{run} = bngrad-runner %s --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4
// RUN: %{run} --benchmark=3 > %t
// RUN: count 1 < %t
// RUN: FileCheck %s --match-full-lines < %t
// RUN: %python %S/check_benchmark.py < %t
// CHECK: median_us={{[0-9.e+-]+}} min_us={{[0-9.e+-]+}} bytes=208 gbps={{[0-9.e+-]+}} bandwidth_gbps={{[0-9.e+-]+}} ratio={{[0-9.e+-]+}} schedule={{[^ ]+}} compile_ms={{[0-9.e+-]+}}

// --help describes every key, in order.
// RUN: bngrad-runner --help | FileCheck %s --check-prefix=HELP
// HELP: {{^}}--benchmark prints one line:
// HELP: {{^}}  median_us {{.*}} microseconds
// HELP: {{^}}  min_us {{.*}} microseconds
// HELP: {{^}}  bytes {{.*}} bytes
// HELP: {{^}}  gbps {{.*}} bytes per second
// HELP: {{^}}  bandwidth_gbps
// HELP: {{^}}  ratio
// HELP: {{^}}  schedule
// HELP: {{^}}  compile_ms {{.*}} milliseconds

// The reported schedule is the requested one; checks run first.
// RUN: %{run} --benchmark=1 --check --threads=1 --schedule='#bngrad.schedule<loops>' | FileCheck %s --check-prefix=LOOPS
// LOOPS: result 0 grad_input
// LOOPS: result 2 grad_offset
// LOOPS-NEXT: median_us={{.*}} schedule=loops compile_ms=

!d = tensor<3x4xf32>
!p = tensor<4xf32>
func.func @gradient(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}
