// Each set of used results. A sum that is dropped although a used result needs it, or kept for an unused
// one, gives a wrong number; results numbered without the unused ones change places.

// DEFINE: %{check} = bngrad-runner %s --check --arg=random:1 --arg=random:2 --arg=random:3 --arg=random:4 --arg=random:5

!d = tensor<5x7x3x9xf32>
!p = tensor<7xf32>

// RUN: %{check} --entry=input | FileCheck %s --check-prefix=INPUT
// INPUT: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-NOT: {{.}}
func.func @input(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#0 : !d
}

// RUN: %{check} --entry=scale | FileCheck %s --check-prefix=SCALE
// SCALE: result 0 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SCALE-NOT: {{.}}
func.func @scale(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> !p {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#1 : !p
}

// RUN: %{check} --entry=offset | FileCheck %s --check-prefix=OFFSET
// OFFSET: result 0 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// OFFSET-NOT: {{.}}
func.func @offset(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> !p {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#2 : !p
}

// RUN: %{check} --entry=input_scale | FileCheck %s --check-prefix=INPUT-SCALE
// INPUT-SCALE: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-SCALE-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-SCALE-NOT: {{.}}
func.func @input_scale(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#0, %0#1 : !d, !p
}

// RUN: %{check} --entry=input_offset | FileCheck %s --check-prefix=INPUT-OFFSET
// INPUT-OFFSET: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-OFFSET-NEXT: result 1 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-OFFSET-NOT: {{.}}
func.func @input_offset(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#0, %0#2 : !d, !p
}

// RUN: %{check} --entry=scale_offset | FileCheck %s --check-prefix=SCALE-OFFSET
// SCALE-OFFSET: result 0 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SCALE-OFFSET-NEXT: result 1 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// SCALE-OFFSET-NOT: {{.}}
func.func @scale_offset(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#1, %0#2 : !p, !p
}

// RUN: %{check} --entry=input_scale_offset | FileCheck %s --check-prefix=INPUT-SCALE-OFFSET
// INPUT-SCALE-OFFSET: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-SCALE-OFFSET-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-SCALE-OFFSET-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// INPUT-SCALE-OFFSET-NOT: {{.}}
func.func @input_scale_offset(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!d, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) {epsilon = 1.0e-3} : !d, !p, !p
  return %0#0, %0#1, %0#2 : !d, !p, !p
}

// In another order.
// RUN: %{check} --entry=offset_input_scale | FileCheck %s --check-prefix=REORDERED
// REORDERED: result 0 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// REORDERED-NEXT: result 1 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// REORDERED-NEXT: result 2 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
func.func @offset_input_scale(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> (!p, !d, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) : !d, !p, !p
  return %0#2, %0#0, %0#1 : !p, !d, !p
}

// No result: only an argument is returned.
// RUN: %{check} --entry=none | FileCheck %s --check-prefix=NONE
// NONE: result 0 value max_error 0 bound 0 ok
// NONE-NOT: {{.}}
func.func @none(%dy: !d, %x: !d, %g: !p, %m: !p, %v: !p) -> !p {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) scale(%g : !p) mean(%m : !p)
      variance(%v : !p) : !d, !p, !p
  return %g : !p
}
