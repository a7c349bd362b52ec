//===- TorchTypes.cpp - tensors of torch-mlir -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TorchTypes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::bngrad;

static constexpr StringLiteral kVTensor = "!torch.vtensor";

/// `type` as text, whether its dialect is known or not.
static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool mlir::bngrad::isVTensor(Type type) {
  return (type.getDialect().getNamespace() == "torch" ||
          isa<OpaqueType>(type)) &&
         StringRef(print(type)).starts_with(kVTensor);
}

RankedTensorType mlir::bngrad::getBuiltinTensor(Type type) {
  if (!isVTensor(type))
    return {};
  std::string printed = print(type);
  StringRef text = printed;
  text.consume_front(kVTensor);
  if (!text.consume_front("<[") || !text.consume_back(">"))
    return {};
  auto [dims, elementName] = text.split("],");
  SmallVector<int64_t> shape;
  SmallVector<StringRef> sizes;
  if (!dims.empty())
    dims.split(sizes, ',');
  for (StringRef size : sizes) {
    int64_t value = ShapedType::kDynamic;
    if (size != "?" && (size.getAsInteger(10, value) || value < 0))
      return {};
    shape.push_back(value);
  }
  MLIRContext *context = type.getContext();
  Type elementType = llvm::StringSwitch<Type>(elementName)
                         .Case("f16", Float16Type::get(context))
                         .Case("bf16", BFloat16Type::get(context))
                         .Case("f32", Float32Type::get(context))
                         .Case("f64", Float64Type::get(context))
                         .Case("i1", IntegerType::get(context, 1))
                         .Case("si32", IntegerType::get(context, 32))
                         .Case("si64", IntegerType::get(context, 64))
                         .Default(Type());
  return elementType ? RankedTensorType::get(shape, elementType)
                     : RankedTensorType();
}

Value mlir::bngrad::castTorchTensor(OpBuilder &b, Location loc, Value value,
                                    Type type, TorchCasts casts) {
  switch (casts) {
  case TorchCasts::Builtin:
    return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
  case TorchCasts::TorchConversion:
    OperationState state(loc,
                         isVTensor(type) ? "torch_c.from_builtin_tensor"
                                         : "torch_c.to_builtin_tensor",
                         value, type);
    return b.create(state)->getResult(0);
  }
  llvm_unreachable("unknown casts");
}
