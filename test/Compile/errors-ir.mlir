// Each input that cannot be compiled gives a one-line error with the file, the location and the function.

// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{file} =
// DEFINE: %{message} =
// DEFINE: %{run} = %{fails} "%t/%{file}.mlir:%{message}" bngrad-compile %t/%{file}.mlir -o %t/out.o --header=%t/out.h

// RUN: %{fails} "cannot open input file '%t/none.mlir': No such file or directory" bngrad-compile %t/none.mlir -o %t/out.o
// RUN: %{fails} "cannot open input file '%t': Is a directory" bngrad-compile %t -o %t/out.o
// REDEFINE: %{file} = syntax
// REDEFINE: %{message} = 1:25: expected...
// RUN: %{run}
// REDEFINE: %{file} = invalid
// REDEFINE: %{message} = 4:10: 'bngrad.batch_norm_backward' op expected shape of mean ..., got [2]
// RUN: %{run}
// REDEFINE: %{file} = unknown
// REDEFINE: %{message} = 2:3: expected an op of a registered dialect, got 'nope.op'
// RUN: %{run}
// RUN: %{fails} "%t/empty.mlir: expected a public function, got none" bngrad-compile %t/empty.mlir -o %t/out.o
// REDEFINE: %{file} = external
// REDEFINE: %{message} = 1:1: expected @other, which is called, to have a body: what is compiled calls no other code
// RUN: %{run}
// REDEFINE: %{file} = scalar_result
// REDEFINE: %{message} = 1:1: expected result 0 of @f to be a ranked tensor of index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64, got 'f32'
// RUN: %{run}
// REDEFINE: %{file} = memref_result
// REDEFINE: %{message} = 1:1: expected result 0 of @f to be a ranked tensor of ..., got 'memref<2xf32>'
// RUN: %{run}
// REDEFINE: %{file} = unranked
// REDEFINE: %{message} = 1:1: expected argument 0 of @f to be a ranked tensor, a strided memref or a scalar of index, i1, i8, i16, i32, i64, f16, bf16, f32 or f64, got 'tensor<*xf32>'
// RUN: %{run}
// REDEFINE: %{file} = complex
// REDEFINE: %{message} = 1:1: expected argument 1 of @f to be ..., got 'tensor<2xcomplex<f32>>'
// RUN: %{run}
// REDEFINE: %{file} = i7
// REDEFINE: %{message} = 1:1: expected argument 0 of @f to be ..., got 'i7'
// RUN: %{run}
// REDEFINE: %{file} = vector
// REDEFINE: %{message} = 1:1: expected argument 0 of @f to be ..., got 'vector<2xf32>'
// RUN: %{run}
// REDEFINE: %{file} = print
// REDEFINE: %{message} = 2:3: expected no op that prints, got 'vector.print'
// RUN: %{run}
// REDEFINE: %{file} = written_buffer
// REDEFINE: %{message} = 3:8: 'bufferization.to_buffer' op expected the buffer of a tensor to be read only, got one that may be written to: use memref.alloc or a memref argument
// RUN: %{run}
// REDEFINE: %{file} = assert
// REDEFINE: %{message} = 5:3: expected the condition of cf.assert to follow from the arguments, got one that depends on memory that the function writes
// RUN: %{run}
// REDEFINE: %{file} = call
// REDEFINE: %{message} = 3:3: expected calls to be inlined, got 'llvm.call'
// RUN: %{run}
// REDEFINE: %{file} = foreign_op
// REDEFINE: %{message} = 3:8: expected an op that can be lowered to LLVM IR, got 'emitc.literal'
// RUN: %{run}
// RUN: %{fails} "%t/%{file}.mlir:%{message}" bngrad-compile %t/%{file}.mlir -o %t/out.o --target=cuda
// REDEFINE: %{file} = entry
// REDEFINE: %{message} = 2:1: expected no symbol called '_mlir_ciface_f', the name of a C entry of @f
// RUN: %{run}
// REDEFINE: %{file} = status
// REDEFINE: %{message} = 2:1: expected 'bngradCudaTakeStatus' to be a func.func, got 'llvm.func'
// RUN: %{fails} "%t/%{file}.mlir:%{message}" bngrad-compile %t/%{file}.mlir -o %t/out.o --target=cuda

// Without a location, the error names the file.
// RUN: %{fails} "%t/nowhere.mlir: expected argument 0 of @f to be ..., got 'i7'" bngrad-compile %t/nowhere.mlir -o %t/out.o
// REDEFINE: %{file} = import
// REDEFINE: %{message} = 2:10: ...
// RUN: %{run}

// Names that C or a library defines.
// REDEFINE: %{run} = sed 's/NAME/%{file}/' %t/names.mlir > %t/name.mlir && %{fails} "%t/name.mlir:1:1: expected a name that C can call, got '%{file}' (%{message})" bngrad-compile %t/name.mlir -o %t/out.o
// REDEFINE: %{file} = malloc
// REDEFINE: %{message} = declared in ... since C99 and C++11
// RUN: %{run}
// REDEFINE: %{file} = expf
// RUN: %{run}
// REDEFINE: %{file} = printf
// RUN: %{run}
// REDEFINE: %{file} = signal
// RUN: %{run}
// REDEFINE: %{file} = erfcf
// RUN: %{run}
// REDEFINE: %{file} = abort
// RUN: %{run}
// REDEFINE: %{file} = int32_t
// RUN: %{run}
// REDEFINE: %{file} = int
// REDEFINE: %{message} = a keyword since C99 and C++11
// RUN: %{run}
// REDEFINE: %{file} = template
// REDEFINE: %{message} = a keyword since C++11
// RUN: %{run}
// REDEFINE: %{file} = _f
// REDEFINE: %{message} = names with a leading underscore are reserved since C99 and C++11
// RUN: %{run}
// REDEFINE: %{file} = bngradCudaTakeStatus
// REDEFINE: %{message} = reserved for the runtime libraries
// RUN: %{run}
// REDEFINE: %{file} = a.b
// REDEFINE: %{message} = ...a C identifier
// RUN: %{run}
// RUN: sed 's/NAME/"2 words"/' %t/names.mlir > %t/name.mlir
// RUN: %{fails} "%t/name.mlir:1:1: expected a name that C can call, got '2 words' (...a C identifier)" bngrad-compile %t/name.mlir -o %t/out.o

// RUN: ls %t | FileCheck %s --check-prefix=LEFT --implicit-check-not=out
// LEFT: complex.mlir

//--- syntax.mlir
func.func @f(%a: tensor<
//--- invalid.mlir
!d = tensor<2x3xf32>
!p = tensor<2xf32>
func.func @f(%dy: !d, %m: !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%dy : !d) mean(%m : !p) variance(%m : !p) : !d, !p, !p
  return
}
//--- unknown.mlir
func.func @f() {
  "nope.op"() : () -> ()
  return
}
//--- empty.mlir
func.func private @f() {
  return
}
//--- external.mlir
func.func private @other()
func.func @f() {
  call @other() : () -> ()
  return
}
//--- scalar_result.mlir
func.func @f(%a: f32) -> f32 {
  return %a : f32
}
//--- memref_result.mlir
func.func @f(%a: memref<2xf32>) -> memref<2xf32> {
  return %a : memref<2xf32>
}
//--- unranked.mlir
func.func @f(%a: tensor<*xf32>) {
  return
}
//--- complex.mlir
func.func @f(%a: f32, %b: tensor<2xcomplex<f32>>) {
  return
}
//--- i7.mlir
func.func @f(%a: i7) {
  return
}
//--- vector.mlir
func.func @f(%a: vector<2xf32>) {
  return
}
//--- print.mlir
func.func @f(%a: f32) {
  vector.print %a : f32
  return
}
//--- written_buffer.mlir
func.func @f(%a: tensor<f32>) {
  %0 = arith.constant 1.0 : f32
  %1 = bufferization.to_buffer %a : tensor<f32> to memref<f32>
  memref.store %0, %1[] : memref<f32>
  return
}
//--- assert.mlir
func.func @f(%a: memref<i1>) {
  %0 = arith.constant true
  memref.store %0, %a[] : memref<i1>
  %1 = memref.load %a[] : memref<i1>
  cf.assert %1, "expected it to be true"
  return
}
//--- call.mlir
llvm.func @elsewhere()
func.func @f(%a: f32) {
  llvm.call @elsewhere() : () -> ()
  return
}
//--- foreign_op.mlir
func.func @f(%a: f32, %b: memref<f32>) {
  // The first of two.
  %0 = emitc.literal "M_PI" : f32
  %1 = emitc.literal "M_E" : f32
  memref.store %0, %b[] : memref<f32>
  memref.store %1, %b[] : memref<f32>
  return
}
//--- entry.mlir
func.func @f(%a: f32) { return }
llvm.func @_mlir_ciface_f() { llvm.return }
//--- status.mlir
func.func @f(%a: f32) { return }
llvm.func @bngradCudaTakeStatus() -> i64
//--- nowhere.mlir
func.func @f(%a: i7) { return } loc(unknown)
//--- import.mlir
func.func @f(%x: tensor<8x4xf32>, %p: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %p, %p, %p, %x) <{epsilon = 0.001 : f32, feature_index = 7 : i64}>
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
}
//--- names.mlir
func.func @NAME(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.negf %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}
