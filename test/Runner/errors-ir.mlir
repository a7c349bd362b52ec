// Each input that cannot be run gives one line that names the file and, if there is one, the location.

// RUN: split-file %s %t
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py

// RUN: %{fails} "cannot open input file '%t/none.mlir': No such file or directory" bngrad-runner %t/none.mlir
// RUN: %{fails} "cannot open input file '%t': Is a directory" bngrad-runner %t

// RUN: %{fails} "%t/syntax.mlir:1:25: expected..." bngrad-runner %t/syntax.mlir
// RUN: %{fails} "%t/invalid.mlir:4:10: 'bngrad.batch_norm_backward' op expected shape of mean ..., got [2]" bngrad-runner %t/invalid.mlir
// RUN: %{fails} "%t/unknown_dialect.mlir:2:3: ...nope.op..." bngrad-runner %t/unknown_dialect.mlir
// RUN: %{fails} "%t/unknown_op.mlir:2:...bngrad.nope..." bngrad-runner %t/unknown_op.mlir

// RUN: %{fails} "%t/no_function.mlir: expected exactly one public function, got 0" bngrad-runner %t/no_function.mlir
// RUN: %{fails} "%t/functions.mlir: expected exactly one public function, got 2; choose one with --entry" bngrad-runner %t/functions.mlir
// RUN: %{fails} "%t/functions.mlir: expected a function @h with a body, got none" bngrad-runner %t/functions.mlir --entry=h
// RUN: %{fails} "%t/functions.mlir: expected a function @external with a body, got none" bngrad-runner %t/functions.mlir --entry=external
// RUN: bngrad-runner %t/functions.mlir --entry=g --arg=random:1
// RUN: bngrad-runner %t/functions.mlir --entry=private --arg=random:1

// A name is printed on one line, for any contents.
// RUN: %{fails} '%t/functions.mlir: expected a function @a \22b with a body, got none' bngrad-runner %t/functions.mlir '--entry=a "b'
// RUN: %{fails} "@a\0Ab: expected 1 --arg, one per argument, got 0" bngrad-runner %t/names.mlir
// RUN: bngrad-runner %t/names.mlir --arg=random:1

// Ops that the pipelines do not lower, in the program alone and with a reference.
// RUN: %{fails} "%t/prints.mlir:4:3: expected no op that prints, got 'vector.print'" bngrad-runner %t/prints.mlir --arg=random:1
// RUN: %{fails} "%t/foreign_op.mlir:2:8: expected an op that can be lowered to LLVM IR, got 'emitc.literal'" bngrad-runner %t/foreign_op.mlir --arg=random:1
// RUN: %{fails} "%t/foreign_op.mlir:2:8: expected an op that can be lowered to LLVM IR, got 'emitc.literal'" bngrad-runner %t/foreign_op.mlir --arg=random:1 --target=cuda-emulator
// Endless input is read up to a limit.
// RUN: %{fails} "cannot open input file '/dev/zero': expected at most 2^30 bytes of what is no file, got more" bngrad-runner /dev/zero
// RUN: %{fails} "argument 0: /dev/zero: cannot open: ...a regular file" bngrad-runner %t/functions.mlir --entry=g --arg=/dev/zero

// Functions are inlined, so they must have a body and must not be recursive.
// RUN: %{fails} "%t/external.mlir:1:1: expected @other, which is called, to have a body: what is compiled calls no other code" \
// RUN:   bngrad-runner %t/external.mlir --arg=random:1
// RUN: %{fails} "%t/external_llvm.mlir: expected ops that need only libc and libm, got a use of 'other'" \
// RUN:   bngrad-runner %t/external_llvm.mlir --arg=random:1
// DEFINE: %{recursive} =
// DEFINE: %{recursion} = %{fails} "%t/%{recursive}.mlir:2:8: expected @%{recursive} ...to call itself, got a call" \
// DEFINE:   bngrad-runner %t/%{recursive}.mlir --entry=%{recursive} --arg=random:1
// REDEFINE: %{recursive} = itself
// RUN: %{recursion}
// RUN: %{fails} "%t/by_another.mlir:6:8: expected @by_another ...to call itself, got a call by @another" \
// RUN:   bngrad-runner %t/by_another.mlir --entry=by_another --arg=random:1
// RUN: %{fails} "%t/by_value.mlir:2:8: expected @by_value ...to call itself, got a call" \
// RUN:   bngrad-runner %t/by_value.mlir --arg=random:1
// RUN: %{fails} "%t/by_value.mlir:2:8: expected @by_value ...to call itself, got a call" \
// RUN:   bngrad-compile %t/by_value.mlir -o %t/by_value.o

// DEFINE: %{entry} =
// DEFINE: %{type} =
// DEFINE: %{bad-type} = %{fails} "@%{entry}: expected argument 0 to be a ranked tensor of f16, bf16, f32, f64, i1, i8, i16, i32, i64, got '%{type}'" \
// DEFINE:   bngrad-runner %t/types.mlir --entry=%{entry} --arg=random:1
// REDEFINE: %{entry} = index
// REDEFINE: %{type} = index
// RUN: %{bad-type}
// REDEFINE: %{entry} = scalar
// REDEFINE: %{type} = f32
// RUN: %{bad-type}
// REDEFINE: %{entry} = memref
// REDEFINE: %{type} = memref<2xf32>
// RUN: %{bad-type}
// REDEFINE: %{entry} = vector
// REDEFINE: %{type} = vector<2xf32>
// RUN: %{bad-type}
// REDEFINE: %{entry} = unranked
// REDEFINE: %{type} = tensor<*xf32>
// RUN: %{bad-type}
// REDEFINE: %{entry} = complex
// REDEFINE: %{type} = tensor<2xcomplex<f32>>
// RUN: %{bad-type}
// REDEFINE: %{entry} = i4
// REDEFINE: %{type} = tensor<2xi4>
// RUN: %{bad-type}
// RUN: %{fails} "@result: expected result 0 to be a ranked tensor of ..., got 'i32'" bngrad-runner %t/types.mlir --entry=result

//--- names.mlir
func.func @"a\0Ab"(%a: tensor<2xf32>) {
  return
}
//--- prints.mlir
func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %a[%c0] : tensor<1xf32>
  vector.print %0 : f32
  return %a : tensor<1xf32>
}
//--- foreign_op.mlir
func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
  %0 = emitc.literal "M_PI" : f32
  %1 = tensor.from_elements %0 : tensor<1xf32>
  return %1 : tensor<1xf32>
}
//--- syntax.mlir
func.func @f(%a: tensor<
//--- external.mlir
func.func private @other(tensor<2xf32>) -> tensor<2xf32>
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @other(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
//--- external_llvm.mlir
llvm.func @other(f32) -> f32
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  %c = arith.constant 1.0 : f32
  %0 = llvm.call @other(%c) : (f32) -> f32
  %1 = tensor.from_elements %0, %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
//--- itself.mlir
func.func @itself(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @itself(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
//--- by_another.mlir
func.func @by_another(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @another(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @another(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @by_another(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
//--- invalid.mlir
!d = tensor<2x3xf32>
!p = tensor<2xf32>
func.func @f(%dy: !d, %m: !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%dy : !d) mean(%m : !p) variance(%m : !p) : !d, !p, !p
  return
}
//--- unknown_dialect.mlir
func.func @f() {
  nope.op
  return
}
//--- unknown_op.mlir
func.func @f() {
  bngrad.nope
  return
}
//--- no_function.mlir
func.func private @private(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
//--- functions.mlir
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func @g(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func private @private(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func private @external(%a: tensor<2xf32>) -> tensor<2xf32>
//--- by_value.mlir
func.func @by_value(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.constant @by_value : (tensor<2xf32>) -> tensor<2xf32>
  %1 = func.call_indirect %0(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
//--- types.mlir
func.func @index(%a: index) {
  return
}
func.func @scalar(%a: f32) {
  return
}
func.func @memref(%a: memref<2xf32>) {
  return
}
func.func @vector(%a: vector<2xf32>) {
  return
}
func.func @unranked(%a: tensor<*xf32>) {
  return
}
func.func @complex(%a: tensor<2xcomplex<f32>>) {
  return
}
func.func @i4(%a: tensor<2xi4>) {
  return
}
func.func @result() -> i32 {
  %0 = arith.constant 1 : i32
  return %0 : i32
}
