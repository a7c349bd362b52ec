//===- CheckedEntries.cpp - entries that check their arguments ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckEmitter.h"
#include "HelperFunctions.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::bngrad;

/// bngrad_report reports error `number`. Its message, a status byte followed by
/// a printf format, starts at `texts[starts[number]]`. The function prints the
/// message to `text`, which has `size` bytes, unless `text` is null, and
/// returns the status.
static constexpr StringLiteral kCheckHelpers = R"mlir(
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func internal @bngrad_report(%texts: !llvm.ptr, %starts: !llvm.ptr, %number: i64, %expected: i64, %actual: i64, %text: !llvm.ptr, %size: i64) -> i32 attributes {passthrough = ["cold", "noinline"]} {
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.getelementptr %starts[%number] : (!llvm.ptr, i64) -> !llvm.ptr, i32
  %start = llvm.load %slot : !llvm.ptr -> i32
  %format = llvm.getelementptr %texts[%start] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %status_byte = llvm.load %format : !llvm.ptr -> i8
  %status = llvm.zext %status_byte : i8 to i32
  %words = llvm.getelementptr %format[1] : (!llvm.ptr) -> !llvm.ptr, i8
  %is_null = llvm.icmp "eq" %text, %null : !llvm.ptr
  llvm.cond_br %is_null, ^return, ^print
^print:
  %length = llvm.call @snprintf(%text, %size, %words, %expected, %actual) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : (!llvm.ptr, i64, !llvm.ptr, i64, i64) -> i32
  llvm.br ^return
^return:
  llvm.return %status : i32
}
)mlir";

/// Adds i32 NAME.check(parameters, workspace, workspace_size, threads, text,
/// text_size), which runs all checks and returns their status.
static func::FuncOp addCheckFunction(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp check =
      exported.addEntry(b, exported.getName() + ".check",
                        {pointer, i64, pointer, pointer, i64}, b.getI32Type());
  check.setPrivate();
  check->setAttr("llvm.linkage", LLVM::LinkageAttr::get(
                                     b.getContext(), LLVM::Linkage::Internal));
  ValueRange all = check.getArguments();
  ValueRange more = all.take_back(5);
  EntryArguments arguments{all.drop_back(5), more[0], more[1],
                           more[2],          more[3], more[4]};
  Value status = CheckEmitter(exported, b).emit(arguments);
  func::ReturnOp::create(b, exported.getLoc(), status);
  return check;
}

/// Adds int32_t NAME_checked(descriptors, void *workspace, size_t
/// workspace_size, const bngrad_threads_t *threads).
static void addCheckedEntry(const FunctionEntries &exported,
                            func::FuncOp check) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  func::FuncOp entry = exported.addEntry(b, exported.getName() + "_checked",
                                         {pointer, i64, pointer}, i32);
  SmallVector<Value> all(entry.getArguments());
  all.push_back(LLVM::ZeroOp::create(b, loc, pointer));
  all.push_back(LLVM::ConstantOp::create(b, loc, i64, 0));
  Value status = func::CallOp::create(b, loc, check, all).getResult(0);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  Value isValid =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, status, zero);
  auto choice = scf::IfOp::create(
      b, loc, isValid,
      [&](OpBuilder &b, Location loc) {
        ValueRange arguments = entry.getArguments();
        SmallVector<Value> operands =
            exported.fromDescriptors(b, arguments.drop_back(3));
        Value start =
            LLVM::PtrToIntOp::create(b, loc, i64, arguments.take_back(3)[0]);
        Value rest =
            arith::ConstantIntOp::create(b, loc, kBufferAlignment - 1, 64);
        Value mask =
            arith::ConstantIntOp::create(b, loc, -kBufferAlignment, 64);
        start = arith::AddIOp::create(b, loc, start, rest);
        start = arith::AndIOp::create(b, loc, start, mask);
        Value memory = LLVM::IntToPtrOp::create(b, loc, pointer, start);
        Value result = exported.call(b, operands, memory, arguments.back());
        Value isSuccess = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq, result, zero);
        Value failed = arith::ConstantIntOp::create(
            b, loc, static_cast<int64_t>(Status::InternalError), 32);
        Value lost = arith::ConstantIntOp::create(
            b, loc, static_cast<int64_t>(Status::ProcessError), 32);
        Value isLost = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             result, lost);
        Value isOwn = arith::OrIOp::create(b, loc, isSuccess, isLost);
        Value code = arith::SelectOp::create(b, loc, isOwn, result, failed);
        scf::YieldOp::create(b, loc, code);
      },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(b, loc, status);
      });
  func::ReturnOp::create(b, loc, choice.getResult(0));
}

/// Adds int32_t NAME_diagnose(parameters of NAME_checked, char *text, size_t
/// text_size).
static void addDiagnoseEntry(const FunctionEntries &exported,
                             func::FuncOp check) {
  OpBuilder b(exported.getFunction().getContext());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName() + "_diagnose",
                        {pointer, i64, pointer, pointer, i64}, b.getI32Type());
  auto call =
      func::CallOp::create(b, exported.getLoc(), check, entry.getArguments());
  func::ReturnOp::create(b, exported.getLoc(), call.getResults());
}

/// Adds size_t NAME_workspace(descriptors), which returns 0 if a descriptor is
/// null.
static void addWorkspaceEntry(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  Type i64 = b.getI64Type();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName() + "_workspace", {}, i64);
  Value isNull = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  for (auto [type, value] :
       llvm::zip_equal(exported.getParameters(), entry.getArguments()))
    if (isa<MemRefType>(type)) {
      Value address = LLVM::PtrToIntOp::create(b, loc, i64, value);
      Value same = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         address, zero);
      isNull = b.createOrFold<arith::OrIOp>(loc, isNull, same);
    }
  auto choice = scf::IfOp::create(
      b, loc, isNull,
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, zero); },
      [&](OpBuilder &b, Location loc) {
        scf::YieldOp::create(
            b, loc, createWorkspaceSize(b, exported, entry.getArguments()));
      });
  func::ReturnOp::create(b, loc, choice.getResult(0));
}

/// Adds int32_t NAME_infer(descriptors, const bngrad_threads_t *threads, char
/// *text, size_t text_size).
static void addInferEntry(const FunctionEntries &exported) {
  OpBuilder b(exported.getFunction().getContext());
  Location loc = exported.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp entry =
      exported.addEntry(b, exported.getName() + "_infer",
                        {pointer, pointer, i64}, b.getI32Type());
  ValueRange all = entry.getArguments();
  ValueRange more = all.take_back(3);
  Value null = LLVM::ZeroOp::create(b, loc, pointer);
  Value zero = LLVM::ConstantOp::create(b, loc, i64, 0);
  EntryArguments arguments{all.drop_back(3), null,    zero,
                           more[0],          more[1], more[2]};
  Value status = CheckEmitter(exported, b).emitInference(arguments);
  func::ReturnOp::create(b, loc, status);
}

void mlir::bngrad::addCheckedEntries(const FunctionEntries &exported,
                                     bool infer) {
  func::FuncOp check = addCheckFunction(exported);
  addCheckedEntry(exported, check);
  addDiagnoseEntry(exported, check);
  addWorkspaceEntry(exported);
  if (infer && exported.getShapeFunction())
    addInferEntry(exported);
}

LogicalResult mlir::bngrad::addCheckHelpers(ModuleOp module) {
  return addHelperFunctions(module, kCheckHelpers, "print errors");
}
