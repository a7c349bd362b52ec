//===- ForeignDialects.cpp - dialects of other projects -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/ForeignDialects.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#define GET_OP_CLASSES
#include "ForeignOps.h.inc"

#define GET_OP_CLASSES
#include "ForeignOps.cpp.inc"

using namespace mlir;
using namespace mlir::bngrad;

namespace {
struct Description {
  StringLiteral name;
  /// A command that prints the form that bngrad reads.
  StringLiteral command;
  /// Whether bytecode stores its types and attributes as text.
  bool hasTextInBytecode = false;
};
} // namespace

static constexpr StringLiteral kLegalize =
    "torch-mlir-opt --stablehlo-legalize-to-linalg --mlir-print-op-generic";
static constexpr StringLiteral kPrint =
    "torch-mlir-opt --mlir-print-op-generic";
static constexpr Description kStableHlo = {"stablehlo", kLegalize};
static constexpr Description kChlo = {"chlo", kLegalize};
static constexpr Description kMhlo = {"mhlo", "--mlir-print-op-generic"};
static constexpr Description kVhlo = {"vhlo",
                                      "stablehlo-translate --deserialize"};
static constexpr Description kTorch = {"torch", kPrint, true};
static constexpr Description kTorchConversion = {"torch_c", kPrint, true};
static constexpr Description kShardy = {"sdy", "--mlir-print-op-generic", true};

namespace {
/// Attributes and types of a dialect that has its own encoding in bytecode.
struct UnreadBytecode : BytecodeDialectInterface {
  UnreadBytecode(Dialect *dialect, StringRef command)
      : BytecodeDialectInterface(dialect), command(command) {}

  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    report(reader, "attributes");
    return {};
  }
  Type readType(DialectBytecodeReader &reader) const override {
    report(reader, "types");
    return {};
  }
  void report(DialectBytecodeReader &reader, StringRef kind) const {
    reader.emitError() << "expected bytecode without " << kind << " of '"
                       << getDialect()->getNamespace()
                       << "', which only that dialect reads: print the module "
                          "as text ("
                       << command << ")";
  }

  StringRef command;
};

template <const Description &description>
class ForeignDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForeignDialect)

  explicit ForeignDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context,
                TypeID::get<ForeignDialect<description>>()) {
    allowUnknownOperations();
    allowUnknownTypes();
    if constexpr (&description == &kStableHlo)
      addOperations<stablehlo::BatchNormGradOp, stablehlo::BatchNormInferenceOp,
                    stablehlo::BatchNormTrainingOp>();
    if constexpr (&description == &kMhlo)
      addOperations<mhlo::BatchNormGradOp, mhlo::BatchNormInferenceOp,
                    mhlo::BatchNormTrainingOp>();
    if (!description.hasTextInBytecode)
      addInterface(std::make_unique<UnreadBytecode>(this, description.command));
  }

  static constexpr StringLiteral getDialectNamespace() {
    return description.name;
  }

  Type parseType(DialectAsmParser &parser) const override {
    return OpaqueType::get(StringAttr::get(getContext(), getNamespace()),
                           parser.getFullSymbolSpec());
  }

  Attribute parseAttribute(DialectAsmParser &parser, Type type) const override {
    return OpaqueAttr::get(StringAttr::get(getContext(), getNamespace()),
                           parser.getFullSymbolSpec(),
                           type ? type : NoneType::get(getContext()));
  }

  /// Called for an op that is not in generic form.
  std::optional<ParseOpHook>
  getParseOperationHook(StringRef /*name*/) const override {
    return ParseOpHook(reportForm);
  }

private:
  static ParseResult reportForm(OpAsmParser &parser, OperationState &) {
    // The message follows "custom op '<name>'".
    return parser.emitError(parser.getNameLoc())
           << "is read in generic form only: print the module by "
           << description.command;
  }
};
} // namespace

void mlir::bngrad::registerForeignDialects(DialectRegistry &registry) {
  registry.insert<ForeignDialect<kStableHlo>, ForeignDialect<kChlo>,
                  ForeignDialect<kMhlo>, ForeignDialect<kVhlo>,
                  ForeignDialect<kTorch>, ForeignDialect<kTorchConversion>,
                  ForeignDialect<kShardy>>();
}
