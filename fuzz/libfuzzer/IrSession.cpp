//===- IrSession.cpp - IR through passes, many times in one process -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IrSession.h"

#include "BNGrad/Dialect/Nesting.h"
#include "BNGrad/InitAll.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"

#include <cstdlib>

using namespace mlir;
using llvm::StringRef;

namespace bngrad::fuzz {

/// Attributes and types are only freed with the context.
static constexpr unsigned kInputsPerContext = 2000;
static constexpr size_t kMaxPipelines = 64;

[[noreturn]] static void reportFault(const llvm::Twine &what) {
  llvm::errs() << "bngrad-fuzz: fault: " << what << "\n";
  std::abort();
}

bool splitInput(StringRef data, StringRef &pipeline, StringRef &ir) {
  if (!data.consume_front(kHeader))
    return false;
  std::tie(pipeline, ir) = data.split('\n');
  return true;
}

/// Whether all passes of the text are BNGrad's, or upstream's passes that
/// simplify IR: faults of other passes are upstream's.
static bool hasOnlyOwnPasses(StringRef text) {
  if (text.size() > 1000)
    return false;
  unsigned depth = 0;
  std::string name;
  auto isKnown = [&] {
    StringRef pass = name;
    bool known = pass.empty() || pass.starts_with("bngrad-") ||
                 pass == "builtin.module" || pass == "func.func" ||
                 pass == "gpu.module" || pass == "canonicalize" ||
                 pass == "cse";
    name.clear();
    return known;
  };
  for (char c : text) {
    if (c == '{')
      ++depth;
    else if (c == '}')
      depth = depth ? depth - 1 : 0;
    else if (depth == 0 && (llvm::isAlnum(c) || c == '-' || c == '.'))
      name += c;
    if (depth == 0 && !llvm::isAlnum(c) && c != '-' && c != '.' && !isKnown())
      return false;
  }
  return isKnown();
}

namespace {

/// Checks the duties of a pass, and writes its input.
class Judge : public PassInstrumentation {
public:
  explicit Judge(const unsigned &numErrors) : numErrors(numErrors) {
    if (const char *dir = std::getenv("BNGRAD_FUZZ_TRACE"))
      traceDir = dir;
  }

  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    errorsBefore.push_back(numErrors);
    if (!traceDir.empty())
      trace(pass, op);
  }

  void runAfterPass(Pass *pass, Operation *) override {
    if (!pass->getArgument().empty() && !errorsBefore.empty())
      errorsBefore.pop_back();
  }

  void runAfterPassFailed(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty() || errorsBefore.empty())
      return;
    unsigned ofPass = numErrors - errorsBefore.pop_back_val();
    bool isOurs = pass->getArgument().starts_with("bngrad-");
    if (!isOurs)
      return;
    if (ofPass == 0)
      reportFault(pass->getArgument() + " failed without an error");
    // The pass manager verifies after a pass that has succeeded: then all
    // errors are the verifier's. This one runs the verifier itself, and fails.
    if (pass->getArgument() == "bngrad-import")
      return;
    unsigned before = numErrors;
    if (failed(verify(op)) && numErrors - before == ofPass)
      reportFault("IR is not valid after " + pass->getArgument());
  }

private:
  void trace(Pass *pass, Operation *op) {
    std::error_code error;
    std::string text;
    llvm::raw_string_ostream os(text);
    pass->printAsTextualPipeline(os);
    Operation *top = op;
    for (; top->getParentOp(); top = top->getParentOp())
      text = (top->getName().getStringRef() + "(" + text + ")").str();
    text = (top->getName().getStringRef() + "(" + text + ")").str();
    llvm::raw_fd_ostream(traceDir + "/pass", error) << text << "\n";
    llvm::raw_fd_ostream file(traceDir + "/before.mlir", error);
    top->print(file, OpPrintingFlags().printGenericOpForm().assumeVerified());
  }

  const unsigned &numErrors;
  SmallVector<unsigned> errorsBefore;
  std::string traceDir;
};

} // namespace

struct IrSession::State {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  llvm::StringMap<std::unique_ptr<PassManager>> pipelines;
  unsigned numInputs = 0, numErrors = 0;
  bool isVerbose = std::getenv("BNGRAD_FUZZ_VERBOSE") != nullptr;
};

IrSession::IrSession() : state(std::make_unique<State>()) {
  mlir::bngrad::registerAllDialects(state->registry);
  mlir::bngrad::registerAllPasses();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  renewContext();
}

IrSession::~IrSession() = default;

void IrSession::renewContext() {
  state->pipelines.clear();
  state->context = std::make_unique<MLIRContext>(
      state->registry, MLIRContext::Threading::DISABLED);
  state->context->allowUnregisteredDialects();
  // A pass manager that runs again must not have seen its anchors unregistered.
  state->context->loadDialect<func::FuncDialect, gpu::GPUDialect>();
  state->numInputs = 0;
  state->context->getDiagEngine().registerHandler([this](
                                                      Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      ++state->numErrors;
    if (state->isVerbose)
      llvm::errs() << diagnostic.getLocation() << ": " << diagnostic << "\n";
    return success();
  });
}

OwningOpRef<ModuleOp> IrSession::parse(StringRef ir) {
  // The parser of text needs a zero at the end.
  return mlir::bngrad::parseModule(llvm::MemoryBuffer::getMemBufferCopy(ir),
                                   state->context.get());
}

PassManager *IrSession::getPipeline(StringRef text) {
  if (auto it = state->pipelines.find(text); it != state->pipelines.end())
    return it->second.get();
  if (state->pipelines.size() > kMaxPipelines)
    state->pipelines.clear();
  std::unique_ptr<PassManager> &pm = state->pipelines[text];
  if (!hasOnlyOwnPasses(text))
    return nullptr;
  std::string errors;
  llvm::raw_string_ostream os(errors);
  FailureOr<OpPassManager> parsed = parsePassPipeline(text, os);
  if (failed(parsed) || parsed->getOpAnchorName() != "builtin.module")
    return nullptr;
  pm = std::make_unique<PassManager>(state->context.get());
  static_cast<OpPassManager &>(*pm) = std::move(*parsed);
  pm->addInstrumentation(std::make_unique<Judge>(state->numErrors));
  return pm.get();
}

bool IrSession::run(StringRef pipeline, StringRef ir) {
  if (++state->numInputs > kInputsPerContext)
    renewContext();
  OwningOpRef<ModuleOp> module = parse(ir);
  if (!module)
    return false;
  PassManager *pm = getPipeline(pipeline);
  if (!pm)
    return false;
  unsigned before = state->numErrors;
  if (failed(pm->run(*module)) && state->numErrors == before)
    reportFault(llvm::Twine("no error from a pipeline that fails"));
  return true;
}

std::string IrSession::toBytecode(StringRef ir) {
  std::string bytes;
  if (OwningOpRef<ModuleOp> module = parse(ir)) {
    llvm::raw_string_ostream os(bytes);
    if (failed(writeBytecodeToFile(*module, os)))
      bytes.clear();
  }
  return bytes;
}

std::vector<std::string> IrSession::splitFunctions(StringRef ir) {
  std::vector<std::string> functions;
  OwningOpRef<ModuleOp> module = parse(ir);
  if (!module)
    return functions;
  for (Operation &op : *module->getBody()) {
    llvm::raw_string_ostream os(functions.emplace_back());
    op.print(os, OpPrintingFlags().useLocalScope());
    os << "\n";
  }
  // A function that uses others is not valid IR alone.
  if (functions.size() > 1)
    llvm::erase_if(functions,
                   [&](const std::string &text) { return !parse(text); });
  return functions;
}

IrSession &getSession() {
  // Never destroyed: the process ends by a crash or at once.
  static IrSession *session = new IrSession();
  return *session;
}

} // namespace bngrad::fuzz
