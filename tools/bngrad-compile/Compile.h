//===- Compile.h - from the bngrad level to an output -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_COMPILE_COMPILE_H
#define BNGRAD_COMPILE_COMPILE_H

#include "common/CodeGen.h"

#include "BNGrad/Transforms/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::bngrad {

/// The kind of an output, by the extension of its file.
enum class OutputKind { MLIR, LLVMIR, Assembly, Object, SharedObject, PTX };

/// Where the gradients run; the code around them runs on a CPU.
enum class Device { Cpu, Cuda };

/// How to compile for Device::Cuda.
struct CudaCompileOptions {
  std::string chips; // comma-separated; empty: the pipeline's default
  CudaFormat format = CudaFormat::Isa;
  bool deviceArguments = false;
};

/// How to compile.
struct CompileOptions {
  std::string path; // of the input, for errors
  OutputKind kind = OutputKind::Object;
  Device device = Device::Cpu;
  CudaCompileOptions cuda; // for Device::Cuda
  CodeGenTarget codeGen;
  std::string schedule; // empty: chosen
  int64_t threads = 0;  // 0: this machine's
};

/// Compiles `module`, which is at the bngrad level, to the text or the object
/// file that `options.kind` says; to an object file for a shared object, and to
/// the text of the one module of kernels for PTX.
///
/// Errors: one line on standard error and failure.
FailureOr<std::string> compile(ModuleOp module, const CompileOptions &options);

/// The libraries that a shared object for `device` is linked with, beside those
/// of C and mathematics: absolute paths.
std::vector<std::string> getLibraries(Device device);

} // namespace mlir::bngrad

#endif // BNGRAD_COMPILE_COMPILE_H
