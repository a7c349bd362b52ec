//===- ProgramLibrary.cpp - programs of libBNGradCompiler.so --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramLibrary.h"
#include "Compilation.h"
#include "Source.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/Compiler/Interface.h"
#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Transforms/CAbi/ExportC.h"
#include "BNGrad/Transforms/Schedule/CudaChip.h"
#include "BNGrad/Transforms/Schedule/ParseSchedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemAlloc.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace mlir::bngrad;
namespace json = llvm::json;

struct bngradProgram {
  std::unique_ptr<MLIRContext> context;
  CompiledProgram program;
};

/// The functions that a caller may choose from, as `@f, @g`.
static std::string listEntries(ModuleOp module, unsigned &count) {
  std::string names;
  count = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    names += (count++ == 0 ? "" : ", ") + printSymbol(function.getSymName());
  }
  return names;
}

/// The name of the function that `request` selects; emits an error on failure.
static FailureOr<std::string> findEntry(const bngradProgramRequest_t &request,
                                        Source &source) {
  if (request.entry)
    return std::string(request.entry);
  unsigned count;
  std::string names = listEntries(source.getModule(), count);
  if (count == 0)
    return source.emitError("expected a public function with a body, got none");
  if (count > 1)
    return source.emitError("expected entry to be one of " + names +
                            ", got none");
  for (auto function : source.getModule().getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      return function.getSymName().str();
  llvm_unreachable("there is one");
}

/// Parses the module of `request` and makes its entry the only public function,
/// under a name that C can call. Returns its original name.
static FailureOr<std::string> read(const bngradProgramRequest_t &request,
                                   Source &source) {
  if (failed(source.parse({request.text, request.text_size})))
    return failure();
  FailureOr<std::string> entry = findEntry(request, source);
  if (failed(entry))
    return failure();
  std::string name = findExportNameError(*entry).empty() ? *entry : "program";
  std::string reason;
  if (failed(selectEntries(source.getModule(), Entry{*entry, name}, reason)))
    return source.emitError("expected entry " + reason);
  return *entry;
}

/// The options of `request`; emits an error on failure.
static FailureOr<CompileOptions>
readOptions(const bngradProgramRequest_t &request, Source &source) {
  CompileOptions options;
  options.threads = -1;
  options.infer = true;
  std::string reason;
  if (request.schedule) {
    options.schedule = request.schedule;
    if (failed(parseSchedule(options.schedule, source.getContext(), reason)))
      return source.emitError("schedule: " + reason);
  }
  if (request.chips) {
    options.device = Device::Cuda;
    options.cuda.chips = request.chips;
    if (failed(CudaChip::parse(options.cuda.chips, reason)))
      return source.emitError("target: " + reason);
  }
  return options;
}

static bool isDynamic(const Parameter &parameter) {
  auto type = dyn_cast<ShapedType>(parameter.type);
  return type && !type.hasStaticShape();
}

static json::Object describe(const Parameter &parameter) {
  auto shaped = dyn_cast<ShapedType>(parameter.type);
  std::string type;
  llvm::raw_string_ostream(type)
      << (shaped ? shaped.getElementType() : parameter.type);
  json::Object object{{"name", parameter.name},
                      {"type", type},
                      {"shape", nullptr},
                      {"is_result", parameter.isResult},
                      {"is_written", parameter.isWritten}};
  if (!shaped)
    return object;
  json::Array shape;
  for (int64_t size : shaped.getShape())
    shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  object["shape"] = std::move(shape);
  return object;
}

/// Finds the entries of the function `name`.
static LogicalResult findEntries(const CompiledProgram &program,
                                 const ExportedFunction &function,
                                 bngradProgramEntries_t &entries) {
  entries.checked = program.lookupPacked(function.name + "_checked");
  entries.diagnose = program.lookupPacked(function.name + "_diagnose");
  entries.workspace = program.lookupPacked(function.name + "_workspace");
  entries.infer = nullptr;
  if (!entries.checked || !entries.diagnose || !entries.workspace)
    return failure();
  if (llvm::none_of(function.parameters, [](const Parameter &parameter) {
        return parameter.isResult && isDynamic(parameter);
      }))
    return success();
  entries.infer = program.lookupPacked(function.name + "_infer");
  return success(entries.infer != nullptr);
}

/// Compiles a program and returns its description.
static FailureOr<std::string> create(const bngradProgramRequest_t &request,
                                     Source &source, bngradProgram_t &program,
                                     bngradProgramEntries_t &entries) {
  FailureOr<CompileOptions> options = readOptions(request, source);
  FailureOr<std::string> entry = failure();
  if (succeeded(options))
    entry = read(request, source);
  if (failed(entry) || failed(importModule(source.getModule())))
    return failure();
  FailureOr<std::vector<ExportedFunction>> functions =
      findExportedFunctions(source.getModule());
  if (failed(functions))
    return failure();
  FailureOr<CompiledProgram> compiled =
      compileToProgram(source.getModule(), *options,
                       request.cuda_library ? request.cuda_library : "");
  if (failed(compiled) ||
      failed(findEntries(*compiled, functions->front(), entries)))
    return failure();

  json::Array parameters;
  for (const Parameter &parameter : functions->front().parameters)
    parameters.push_back(describe(parameter));
  json::Object description{{"entry", json::fixUTF8(*entry)},
                           {"parameters", std::move(parameters)}};
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(description));
  functions = failure(); // its types belong to the context
  program = new bngradProgram{source.takeContext(), std::move(*compiled)};
  return text;
}

int32_t bngradCreateProgram(const bngradProgramRequest_t *request,
                            bngradProgram_t *program,
                            bngradProgramEntries_t *entries) {
  // Foreign gradients of dialects that are not linked in are imported.
  return runAndTake(request->take, /*allowUnregisteredDialects=*/true,
                    [&](Source &source) {
                      return create(*request, source, *program, *entries);
                    });
}

void bngradDestroyProgram(bngradProgram_t program) {
  Compilation compilation;
  delete program;
}

/// The schedules of the groups of `module`, one a line.
static std::string listSchedules(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // All members of a group have the same schedule.
  module.walk([&](Block *block) {
    llvm::SmallSetVector<Attribute, 1> schedules;
    for (Operation &op : *block)
      if (auto schedule =
              op.getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName))
        schedules.insert(schedule);
    for (Attribute schedule : schedules)
      os << schedule << "\n";
  });
  return text;
}

/// The kind of output that `form` names. The stage lower ends with the module
/// that an object is made from.
static std::optional<OutputKind> getKind(StringRef form) {
  return llvm::StringSwitch<std::optional<OutputKind>>(form)
      .Case("lower", OutputKind::MLIR)
      .Case("llvm", OutputKind::LLVMIR)
      .Case("assembly", OutputKind::Assembly)
      .Case("ptx", OutputKind::PTX)
      .Default(std::nullopt);
}

static FailureOr<std::string> print(const bngradProgramRequest_t &request,
                                    StringRef form, Source &source) {
  FailureOr<CompileOptions> options = readOptions(request, source);
  if (failed(options) || failed(read(request, source)))
    return failure();
  ModuleOp module = source.getModule();
  std::optional<OutputKind> kind = getKind(form);
  if (kind == OutputKind::PTX && options->device == Device::Cpu)
    return source.emitError("expected target to be cuda for ptx, got cpu");
  if (kind == OutputKind::PTX && StringRef(request.chips).contains(','))
    return source.emitError("expected one chip for ptx, got '" +
                            Twine(request.chips) + "'");
  if (kind)
    return compile(module, *options, *kind);
  std::optional<Stage> stage =
      form == "schedules" ? Stage::Group : findStage(form);
  if (!stage)
    return source.emitError("expected stage to be " +
                            llvm::join(ArrayRef(kStageNames), ", ") +
                            ", llvm, assembly or ptx, got '" + form + "'");
  if (failed(runStages(module, *options, *stage)))
    return failure();
  if (form == "schedules")
    return listSchedules(module);
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  os << "\n";
  return text;
}

int32_t bngradPrintProgram(const bngradProgramRequest_t *request,
                           const char *form) {
  return runAndTake(
      request->take, /*allowUnregisteredDialects=*/true,
      [&](Source &source) { return print(*request, form, source); });
}

void bngradTakeText(void *context, const char *text, size_t size) {
  auto *taken = static_cast<bngradText_t *>(context);
  taken->text = static_cast<char *>(llvm::safe_malloc(size));
  taken->size = size;
  std::memcpy(taken->text, text, size);
}

void bngradFreeText(bngradText_t *text) {
  std::free(text->text);
  *text = {};
}

const char *bngradCompilerVersion() { return BNGRAD_VERSION; }
