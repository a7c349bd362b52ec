//===- ParameterNames.cpp - names of the parameters of functions ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CAbi/ExportC.h"

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The name of an argument: the name in its location or else the name of the
/// bngrad operand that it is passed as. Empty if it has neither.
static std::string getArgumentName(BlockArgument argument) {
  if (auto named = dyn_cast<NameLoc>(argument.getLoc()))
    if (isCParameterName(named.getName()))
      return named.getName().str();
  SmallVector<Value> worklist = {argument};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      if (auto gradient = dyn_cast<BatchNormOpInterface>(use.getOwner())) {
        // The value may be several operands of the op. Take the first.
        OpOperand &first =
            *llvm::find_if(gradient->getOpOperands(), [&](OpOperand &operand) {
              return operand.get() == value;
            });
        return stringifyRole(gradient.getOperandRole(first)).str();
      }
      if (isa<tensor::CastOp, shard::ShardOp>(use.getOwner()))
        worklist.push_back(use.getOwner()->getResult(0));
    }
  }
  return "";
}

/// The name of the bngrad result that `value` is, or an empty string.
static std::string getResultName(Value value) {
  auto gradient = value.getDefiningOp<BatchNormOpInterface>();
  if (!gradient)
    return "";
  unsigned number = cast<OpResult>(value).getResultNumber();
  return stringifyRole(gradient.getResultRoles()[number]).str();
}

std::vector<std::string> mlir::bngrad::nameParameters(func::FuncOp function) {
  unsigned numArguments = function.getNumArguments();
  unsigned numResults = function.getNumResults();
  std::vector<std::string> names;
  names.reserve(numArguments + numResults);
  for (BlockArgument argument : function.getArguments())
    names.push_back(getArgumentName(argument));
  bool isOneBlock = llvm::hasSingleElement(function.getBody());
  for (unsigned i : llvm::seq(numResults)) {
    if (!isOneBlock) {
      names.emplace_back();
      continue;
    }
    Value value = function.front().getTerminator()->getOperand(i);
    while (
        isa_and_present<tensor::CastOp, shard::ShardOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    names.push_back(getResultName(value));
  }
  // A parameter keeps its name if no other has it. All others are numbered.
  llvm::StringMap<int> count;
  for (const std::string &name : names)
    ++count[name];
  // Reserve the names of the parameters that entries add.
  llvm::StringSet<> taken = {"workspace", "workspace_size", "threads", "text",
                             "text_size"};
  for (auto [i, name] : llvm::enumerate(names)) {
    if (name.empty() || count[name] > 1)
      name = i < numArguments ? "arg" + std::to_string(i)
                              : "result" + std::to_string(i - numArguments);
    while (!taken.insert(name).second)
      name += "_";
  }
  return names;
}
