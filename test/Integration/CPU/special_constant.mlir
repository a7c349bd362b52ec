// A million equal terms of one sign: rounding errors add up instead of cancelling, so a plain sum in the
// accumulator type is far outside the bound. Each range below contains only one value of its type.

// RUN: bngrad-runner %s --check --entry=rows --arg=random:1:0.1:0.100000002 --arg=random:2:1:2 --arg=random:3:-2:-1 --arg=random:4 | FileCheck %s
// RUN: bngrad-runner %s --check --entry=long_rows --arg=random:1:0.1:0.100000002 --arg=random:2:1:2 --arg=random:3:-2:-1 --arg=random:4 | FileCheck %s
// RUN: bngrad-runner %s --check --entry=columns --arg=random:1:0.1:0.100000002 --arg=random:2:1:2 --arg=random:3:-2:-1 --arg=random:4 | FileCheck %s
// RUN: bngrad-runner %s --check --entry=f16 --arg=random:1:0.09997:0.1 --arg=random:2:1:2 --arg=random:3:-2:-1 --arg=random:4 | FileCheck %s
// RUN: bngrad-runner %s --check --entry=bf16 --arg=random:1:0.1:0.1002 --arg=random:2:1:2 --arg=random:3:-2:-1 --arg=random:4 | FileCheck %s

// CHECK: result 0 grad_input max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 1 grad_scale max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok
// CHECK-NEXT: result 2 grad_offset max_error {{[0-9.e+-]+}} bound {{[0-9.e+-]+}} ok

!p = tensor<2xf32>

!rows = tensor<1000x2x1000xf32>
func.func @rows(%dy: !rows, %x: !rows, %m: !p, %v: !p) -> (!rows, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%m : !p)
      variance(%v : !p) : !rows, !p, !p
  return %0#0, %0#1, %0#2 : !rows, !p, !p
}

!longrows = tensor<1x2x1000000xf32>
func.func @long_rows(%dy: !longrows, %x: !longrows, %m: !p, %v: !p) -> (!longrows, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !longrows) input(%x : !longrows) mean(%m : !p)
      variance(%v : !p) : !longrows, !p, !p
  return %0#0, %0#1, %0#2 : !longrows, !p, !p
}

!columns = tensor<1000000x2xf32>
func.func @columns(%dy: !columns, %x: !columns, %m: !p, %v: !p) -> (!columns, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !columns) input(%x : !columns) mean(%m : !p)
      variance(%v : !p) : !columns, !p, !p
  return %0#0, %0#1, %0#2 : !columns, !p, !p
}

!f16 = tensor<1000x2x1000xf16>
func.func @f16(%dy: !f16, %x: !f16, %m: !p, %v: !p) -> (!f16, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !f16) input(%x : !f16) mean(%m : !p)
      variance(%v : !p) : !f16, !p, !p
  return %0#0, %0#1, %0#2 : !f16, !p, !p
}

!bf16 = tensor<1000x2x1000xbf16>
func.func @bf16(%dy: !bf16, %x: !bf16, %m: !p, %v: !p) -> (!bf16, !p, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !bf16) input(%x : !bf16) mean(%m : !p)
      variance(%v : !p) : !bf16, !p, !p
  return %0#0, %0#1, %0#2 : !bf16, !p, !p
}
