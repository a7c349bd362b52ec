// REQUIRES: numpy
// RUN: %python %S/../../Inputs/special_values.py %t

// NaN, infinity and -infinity in one operand after the other, each in its own channel: the results are NaN or
// infinite if the formula is, and the plain channel is not affected. This finds a compensated sum that
// converts infinity to NaN, and a maximum that drops NaN.

// DEFINE: %{both} = bngrad-runner %s --entry=both --check
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/scale.npy --arg=%t/mean.npy --arg=%t/variance.npy | FileCheck %s
// RUN: %{both} --arg=%t/grad_output_special.npy --arg=%t/input.npy --arg=%t/scale.npy --arg=%t/mean.npy --arg=%t/variance.npy | FileCheck %s
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input_special.npy --arg=%t/scale.npy --arg=%t/mean.npy --arg=%t/variance.npy | FileCheck %s
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/scale_special.npy --arg=%t/mean.npy --arg=%t/variance.npy | FileCheck %s
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/scale.npy --arg=%t/mean_special.npy --arg=%t/variance.npy | FileCheck %s
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/scale.npy --arg=%t/mean.npy --arg=%t/variance_special.npy | FileCheck %s

// A variance of 0 with epsilon 0 is not a special case: inv_std is infinite.
// RUN: %{both} --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/scale.npy --arg=%t/mean.npy --arg=%t/some_zero.npy | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 3 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok

!d = tensor<6x4x5xf32>
!p = tensor<4xf32>
func.func @both(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p, !d) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2, %1#0 : !d, !p, !p, !d
}

// A NaN or an infinity that is masked out does not propagate: no result is NaN, as in the reference. A mask
// by multiplication would propagate it.
// RUN: bngrad-runner %s --entry=masked --check --arg=%t/grad_output_special.npy --arg=%t/input.npy --arg=%t/scale.npy \
// RUN:   --arg=%t/mean.npy --arg=%t/variance.npy --arg=%t/mask.npy --result=%t/masked.npy | FileCheck %s
// RUN: %python -c "import numpy; assert numpy.isfinite(numpy.load('%t/masked.npy')).all()"

!k = tensor<6x4x5xi1>
func.func @masked(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p, %k: !k) -> (!d, !p, !p, !d) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) mask(%k : !k) : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) mask(%k : !k) {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2, %1#0 : !d, !p, !p, !d
}

// The same for inv_std as operand.
// RUN: bngrad-runner %s --entry=inv_std --check --arg=%t/grad_output.npy --arg=%t/input.npy --arg=%t/mean.npy --arg=%t/variance_special.npy | FileCheck %s

func.func @inv_std(%dy: !d, %x: !d, %m: !p, %r: !p) -> (!d, !p, !p, !d) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) inv_std(%r : !p) : !d, !p, !p
  %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) inv_std(%r : !p)
      {statistics = #bngrad.statistics<global>} : !d, !p, !p
  return %0#0, %0#1, %0#2, %1#0 : !d, !p, !p, !d
}

// Without elements the sums are 0 even if inv_std is infinite: 0, not 0 * infinity. For static and dynamic
// sizes.
// RUN: bngrad-runner %s --entry=no_elements --check --arg=random:1@0x4x5 --arg=random:2@0x4x5 --arg=random:3@4 --arg=%t/zeros.npy \
// RUN:   --result=- --result=%t/scale_of_none.npy --result=%t/offset_of_none.npy | FileCheck %s --check-prefix=NONE
// RUN: cmp %t/scale_of_none.npy %t/zeros.npy
// RUN: cmp %t/offset_of_none.npy %t/zeros.npy
// RUN: bngrad-runner %s --entry=no_elements_static --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=%t/zeros.npy \
// RUN:   | FileCheck %s --check-prefix=NONE
// NONE: result 0 grad_input max_error 0 bound 0 ok
// NONE-NEXT: result 1 grad_scale max_error 0 bound 1.4e-45 ok
// NONE-NEXT: result 2 grad_offset max_error 0 bound 1.4e-45 ok

!any = tensor<?x?x?xf32>
!channel = tensor<?xf32>
func.func @no_elements(%dy: !any, %x: !any, %m: !channel, %v: !channel) -> (!any, !channel, !channel) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !any) input(%x : !any) mean(%m : !channel)
      variance(%v : !channel) : !any, !channel, !channel
  return %0#0, %0#1, %0#2 : !any, !channel, !channel
}

!none = tensor<6x4x0xf32>
func.func @no_elements_static(%dy: !none, %x: !none, %m: !p, %v: !p) -> (!none, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !none) input(%x : !none) mean(%m : !p) variance(%v : !p)
      : !none, !p, !p
  return %0#0, %0#1, %0#2 : !none, !p, !p
}
