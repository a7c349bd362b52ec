//===- Call.cpp - calls compiled functions with arrays --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "Processes.h"

#include "common/Diagnostics.h"

#include "BNGrad/Runtime/Runtime.h"

using namespace mlir;
using namespace mlir::bngrad;

/// A memref descriptor of `array`: allocated and aligned pointer,
/// offset, sizes, strides (mlir/ExecutionEngine/CRunnerUtils.h).
static std::vector<int64_t> makeDescriptor(::bngrad::Array &array) {
  auto pointer = reinterpret_cast<int64_t>(array.data.data());
  std::vector<int64_t> descriptor = {pointer, pointer, 0};
  llvm::append_range(descriptor, array.shape);
  std::vector<int64_t> strides(array.shape.size(), 1);
  for (size_t i = array.shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * array.shape[i];
  llvm::append_range(descriptor, strides);
  return descriptor;
}

std::string mlir::bngrad::getWrapperName(StringRef function) {
  return ("_mlir_ciface_" + function).str();
}

LogicalResult mlir::bngrad::call(const CompiledProgram &program,
                                 StringRef function,
                                 MutableArrayRef<::bngrad::Array> arguments,
                                 MutableArrayRef<::bngrad::Array> results) {
  CompiledProgram::PackedFunction packedFunction =
      program.lookupPacked(getWrapperName(function));
  if (!packedFunction)
    return failure();
  std::vector<std::vector<int64_t>> descriptors;
  for (::bngrad::Array &array : arguments)
    descriptors.push_back(makeDescriptor(array));
  for (::bngrad::Array &array : results)
    descriptors.push_back(makeDescriptor(array));
  // The packed wrapper takes the address of each argument, and each argument
  // is the address of a descriptor.
  std::vector<void *> pointers, packed;
  for (std::vector<int64_t> &descriptor : descriptors)
    pointers.push_back(descriptor.data());
  for (void *&pointer : pointers)
    packed.push_back(static_cast<void *>(&pointer));
  // Functions without a status leave it at 0.
  int32_t status = 0;
  packed.push_back(&status);
  packedFunction(packed.data());
  if (status == static_cast<int32_t>(BNGRAD_PROCESS_ERROR))
    return Processes::reportCollective();
  if (status != 0)
    return reportError("out of memory: cannot allocate what a function needs "
                       "beside its arguments and results");
  return success();
}
