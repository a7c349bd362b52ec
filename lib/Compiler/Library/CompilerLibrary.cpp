//===- CompilerLibrary.cpp - libBNGradCompiler.so -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerLibrary.h"
#include "CacheEntry.h"
#include "Compilation.h"
#include "Link.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/InitAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::bngrad;

/// Splits gradients into their halves and merges equal halves.
static LogicalResult splitGradients(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addNestedPass<func::FuncOp>(createBNGradSplitPass());
  pm.addPass(createCSEPass());
  return pm.run(module);
}

/// The object file of `text`, or failure and `error`.
static FailureOr<std::string> compileText(const bngradCompileRequest_t &request,
                                          std::string &error) {
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      error = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      StringRef(request.text, request.text_size), &context);
  if (!module || (request.in_halves && failed(splitGradients(*module))))
    return failure();
  CompileOptions options;
  options.packed = true;
  options.threads = -1;
  if (request.chip) {
    options.device = Device::Cuda;
    options.cuda.chips = request.chip;
    options.cuda.deviceArguments = true;
  }
  return compileToObject(*module, options);
}

/// Writes all of `bytes` to a file.
static bool write(int descriptor, StringRef bytes) {
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/false);
  os << bytes;
  os.flush();
  bool isWhole = !os.has_error();
  os.clear_error();
  return isWhole;
}

/// Stores `image` in the cache and ignores errors. It does not use
/// llvm::localCache, with which a full disk would end the process, nor LLVM's
/// temporary files, which install signal handlers.
static void keep(const bngradCompileRequest_t &request,
                 const std::string &image) {
  std::string folder = request.folder;
  std::string path = folder + "/" + ::bngrad::getCacheFileName(request.key);
  // If this process ends before the rename, pruneCache removes the file.
  constexpr StringLiteral kSuffix = ".tmp.o";
  std::string temporary = folder + "/Thin-XXXXXX" + kSuffix.str();
  int descriptor =
      mkostemps(temporary.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
  if (descriptor < 0)
    return;
  std::string text(request.text, request.text_size);
  ::bngrad::CacheEntryHeader header =
      ::bngrad::makeCacheEntryHeader(text, image);
  StringRef start(reinterpret_cast<const char *>(&header), sizeof(header));
  bool isWhole = write(descriptor, start) && write(descriptor, text) &&
                 write(descriptor, image);
  close(descriptor);
  if (!isWhole || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }

  // pruneCache opens its timestamp file, and would block on a pipe.
  struct stat status;
  std::string timestamp = folder + "/llvmcache.timestamp";
  if (lstat(timestamp.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return;
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::hours(1);
  policy.MaxSizeBytes = uint64_t(256) << 20;
  llvm::pruneCache(folder, policy);
}

/// Compiles and links; on failure, sets `error`.
static FailureOr<std::string> compile(const bngradCompileRequest_t &request,
                                      std::string &error) {
  Compilation compilation;
  FailureOr<std::string> object = compileText(request, error);
  if (failed(object))
    return failure();
  FailureOr<std::string> image = link(*object, request.library, error);
  if (succeeded(image) && request.folder)
    keep(request, *image);
  return image;
}

int32_t bngradCompile(const bngradCompileRequest_t *request) {
  if (request->struct_size != sizeof(*request))
    return 2;
  std::string error;
  FailureOr<std::string> image = compile(*request, error);
  if (failed(image)) {
    snprintf(request->error, request->error_size, "%s", error.c_str());
    return 1;
  }
  request->take(request->context, image->data(), image->size());
  return 0;
}
