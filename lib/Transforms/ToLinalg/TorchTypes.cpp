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
static constexpr StringLiteral kTorch = "!torch.";

/// `type` as text, whether its dialect is known or not.
static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Whether `type` is a torch-mlir type whose text begins with `prefix`.
static bool startsWith(Type type, StringRef prefix) {
  return (type.getDialect().getNamespace() == "torch" ||
          isa<OpaqueType>(type)) &&
         StringRef(print(type)).starts_with(prefix);
}

bool mlir::bngrad::isTorchType(Type type) { return startsWith(type, kTorch); }

bool mlir::bngrad::isVTensor(Type type) { return startsWith(type, kVTensor); }

/// The builtin type of a dtype that torch-mlir prints as `text`; null for a
/// type of a dialect, such as `!torch.qint8`, and for `unk`.
static Type parseElementType(StringRef text, MLIRContext *context) {
  if (text.consume_front("complex<")) {
    text.consume_back(">");
    Type part = parseElementType(text, context);
    return isa_and_nonnull<FloatType>(part) ? ComplexType::get(part) : Type();
  }
  StringRef digits = text;
  if (digits.consume_front("si") || digits.consume_front("ui") ||
      digits.consume_front("i")) {
    unsigned width = 0;
    bool isWidth = !digits.getAsInteger(10, width) && width > 0 && width <= 64;
    return isWidth ? IntegerType::get(context, width) : Type();
  }
  return llvm::StringSwitch<Type>(text)
      .Case("f16", Float16Type::get(context))
      .Case("bf16", BFloat16Type::get(context))
      .Case("f32", Float32Type::get(context))
      .Case("f64", Float64Type::get(context))
      .Case("f8E5M2", Float8E5M2Type::get(context))
      .Case("f8E4M3FN", Float8E4M3FNType::get(context))
      .Case("f8E5M2FNUZ", Float8E5M2FNUZType::get(context))
      .Case("f8E4M3FNUZ", Float8E4M3FNUZType::get(context))
      .Default(Type());
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
  Type elementType = parseElementType(elementName, type.getContext());
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
