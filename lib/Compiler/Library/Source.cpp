//===- Source.cpp - modules from text, and their diagnostics --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "Compilation.h"

#include "BNGrad/Dialect/ForeignDialects.h"
#include "BNGrad/Dialect/Nesting.h"
#include "BNGrad/InitAll.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::bngrad;
namespace json = llvm::json;

/// The name of the text in diagnostics.
static constexpr StringLiteral kSourceName = "<mlir>";

static StringRef getName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("an unknown severity");
}

static json::Object toJson(Diagnostic &diagnostic) {
  json::Array notes;
  for (Diagnostic &note : diagnostic.getNotes())
    notes.push_back(toJson(note));
  json::Object object{{"severity", getName(diagnostic.getSeverity())},
                      {"message", json::fixUTF8(diagnostic.str())},
                      {"file", ""},
                      {"line", 0},
                      {"column", 0},
                      {"notes", std::move(notes)}};
  // A module that the text does not contain has line 0.
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
      place && place.getLine() != 0) {
    object["file"] = json::fixUTF8(place.getFilename().getValue());
    object["line"] = place.getLine();
    object["column"] = place.getColumn();
  }
  return object;
}

Source::Source(bool allowUnregisteredDialects) {
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  registerForeignDialects(registry);
  context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->allowUnregisteredDialects(allowUnregisteredDialects);
  handler = std::make_unique<ScopedDiagnosticHandler>(
      context.get(), [this](Diagnostic &diagnostic) {
        diagnostics.push_back(toJson(diagnostic));
        return success();
      });
}

LogicalResult Source::parse(StringRef text) {
  module = parseModule(llvm::MemoryBuffer::getMemBufferCopy(text, kSourceName),
                       context.get());
  return success(static_cast<bool>(module));
}

LogicalResult Source::emitError(const Twine &message) {
  return mlir::emitError(UnknownLoc::get(context.get()), message);
}

std::string Source::takeDiagnostics() {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(diagnostics));
  return text;
}

std::unique_ptr<MLIRContext> Source::takeContext() {
  module = nullptr;
  handler.reset();
  return std::move(context);
}

int32_t mlir::bngrad::runAndTake(
    const bngradTake_t &take, bool allowUnregisteredDialects,
    function_ref<FailureOr<std::string>(Source &)> function) {
  std::string text;
  bool isGood = false;
  {
    Compilation compilation;
    Source source(allowUnregisteredDialects);
    FailureOr<std::string> result = function(source);
    isGood = succeeded(result);
    text = isGood ? std::move(*result) : source.takeDiagnostics();
  }
  // This call comes after the compilation, because the function may block on a
  // thread that waits in fork() for the end of the compilation.
  take.function(take.context, text.data(), text.size());
  return isGood ? 0 : 1;
}
