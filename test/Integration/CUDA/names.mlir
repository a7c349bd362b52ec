// A function may have the name of the symbol that embeds the kernels of another function.

// DEFINE: %{entry} =
// DEFINE: %{run} = bngrad-runner %s --entry=%{entry} --target=cuda-emulator --check --arg=random:1 --arg=random:2 \
// DEFINE:   --arg=random:3 --arg=random:4:0.5:1.5 | FileCheck %s
// CHECK: grad_input {{.*}} ok

// REDEFINE: %{entry} = f
// RUN: %{run}
// REDEFINE: %{entry} = f_group_0_module
// RUN: %{run}

// The same for several chips, whose kernels are embedded in another way.
// RUN: rm -rf %t && mkdir %t && cp %s %t/input.mlir
// RUN: bngrad-compile %t/input.mlir -o %t/a.so --target=cuda --chip=sm_80,sm_90

// RUN: bngrad-opt %s --bngrad-cuda-pipeline=stop-after=apply | FileCheck %s --check-prefix=MODULES
// MODULES-LABEL: func.func @f(
// MODULES: module(@f_group_3)
// MODULES-LABEL: func.func @f_group_0_module(
// MODULES: module(@f_group_0_module_group_0)

!t = tensor<3x4x16xf32>
!p = tensor<4xf32>
func.func @f(%dy: !t, %x: !t, %m: !p, %v: !p) -> !t {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) variance(%v : !p) : !t, !p, !p
  return %0#0 : !t
}
func.func @f_group_0_module(%dy: !t, %x: !t, %m: !p, %v: !p) -> !t {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) variance(%v : !p) : !t, !p, !p
  return %0#0 : !t
}
func.func @f_group_1_load(%dy: !t, %x: !t, %m: !p, %v: !p) -> !t {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) variance(%v : !p) : !t, !p, !p
  return %0#0 : !t
}
func.func @f_group_2(%dy: !t, %x: !t, %m: !p, %v: !p) -> !t {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%m : !p) variance(%v : !p) : !t, !p, !p
  return %0#0 : !t
}
