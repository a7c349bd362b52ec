//===- CompilerLibrary.cpp - libBNGradCompiler.so -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerLibrary.h"
#include "CacheEntry.h"

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/InitAll.h"

#include "lld/Common/Driver.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace mlir::bngrad;
namespace fs = llvm::sys::fs;

/// Splits gradients into their halves; equal halves become one.
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

/// A temporary file that is removed.
namespace {
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) {
    code = fs::createTemporaryFile("bngrad", suffix, descriptor, path);
    remover.setFile(path, !code);
  }
  ~TemporaryFile() {
    if (descriptor >= 0)
      (void)fs::closeFile(descriptor);
  }

  std::error_code code;
  int descriptor = -1;
  SmallString<64> path;

private:
  llvm::FileRemover remover;
};
} // namespace

/// An error if there is no place beside `path` for a shared object of so many
/// bytes of code. lld maps it: on a full disk the process would end.
static std::error_code verifySpace(StringRef path, size_t bytes) {
  llvm::ErrorOr<fs::space_info> space =
      fs::disk_space(llvm::sys::path::parent_path(path));
  constexpr uint64_t kTables = 1 << 20;
  if (space && space->available < 2 * bytes + kTables)
    return std::make_error_code(std::errc::no_space_on_device);
  return {};
}

/// The shared object of an object file, or failure and `error`.
static FailureOr<std::string> link(StringRef object, const char *library,
                                   std::string &error) {
  TemporaryFile input("o"), output("so");
  if (input.code || output.code) {
    error = "temporary file: cannot write: " +
            (input.code ? input.code : output.code).message();
    return failure();
  }
  {
    llvm::raw_fd_ostream os(input.descriptor, /*shouldClose=*/false);
    os << object;
    os.flush();
    if (os.has_error()) {
      error = "temporary file: cannot write: " + os.error().message();
      os.clear_error();
      return failure();
    }
  }
  if (std::error_code code = verifySpace(output.path, object.size())) {
    error = "temporary file: cannot write: " + code.message();
    return failure();
  }
  // The libraries of C and mathematics are in the process.
  SmallVector<const char *> arguments = {"ld.lld",
                                         "-shared",
                                         "-z",
                                         "relro",
                                         "-z",
                                         "now",
                                         "-o",
                                         output.path.c_str(),
                                         input.path.c_str()};
  if (library)
    arguments.push_back(library);
  std::string text;
  llvm::raw_string_ostream os(text);
  static std::mutex mutex; // lld has global state
  std::lock_guard<std::mutex> lock(mutex);
  lld::Result result =
      lld::lldMain(arguments, os, os, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    error = "cannot link: " + StringRef(text).trim().split('\n').first.str();
    return failure();
  }
  auto image = llvm::MemoryBuffer::getFile(output.path);
  if (!image) {
    error = "temporary file: cannot read: " + image.getError().message();
    return failure();
  }
  return (*image)->getBuffer().str();
}

/// Keeps `image` in the cache. An error is none of the caller's. With
/// llvm::localCache a full disk would end the process.
static void keep(const bngradCompileRequest_t &request,
                 const std::string &image) {
  // pruneCache removes it, too, if this process ends before it has its name.
  SmallString<128> model(request.folder), path(request.folder);
  llvm::sys::path::append(model, "Thin-%%%%%%.tmp.o");
  llvm::sys::path::append(path, ::bngrad::getCacheFileName(request.key));
  llvm::Expected<fs::TempFile> file =
      fs::TempFile::create(model, fs::owner_read | fs::owner_write);
  if (!file)
    return llvm::consumeError(file.takeError());
  std::string text(request.text, request.text_size);
  ::bngrad::CacheEntryHeader header =
      ::bngrad::makeCacheEntryHeader(text, image);
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os.write(reinterpret_cast<const char *>(&header), sizeof(header));
  os << text << image;
  os.flush();
  bool isWhole = !os.has_error();
  os.clear_error();
  llvm::consumeError(isWhole ? file->keep(path) : file->discard());

  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::hours(1);
  policy.MaxSizeBytes = uint64_t(256) << 20;
  llvm::pruneCache(request.folder, policy);
}

int32_t bngradCompile(const bngradCompileRequest_t *request) {
  if (request->struct_size != sizeof(*request))
    return 2;
  std::string error;
  FailureOr<std::string> image = compileText(*request, error);
  if (succeeded(image))
    image = link(*image, request->library, error);
  if (failed(image)) {
    snprintf(request->error, request->error_size, "%s", error.c_str());
    return 1;
  }
  if (request->folder)
    keep(*request, *image);
  request->take(request->context, image->data(), image->size());
  return 0;
}
