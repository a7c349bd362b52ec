//===- HostCpu.cpp - the CPU that code is generated for -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/HostCpu.h"

#include "../../Runtime/Kernels/InstructionSet.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The whole CPU.
static HostCpu findWhole() {
  HostCpu cpu;
  cpu.name = llvm::sys::getHostCPUName().str();
  cpu.hasFeature = llvm::sys::getHostCPUFeatures();
  llvm::SubtargetFeatures features;
  SmallVector<StringRef> names(cpu.hasFeature.keys());
  llvm::sort(names); // a hash table has no order
  for (StringRef name : names)
    features.AddFeature(name, cpu.hasFeature.lookup(name));
  cpu.features = features.getString();
  return cpu;
}

/// A CPU with only the instructions of `set`.
static HostCpu restrictTo(const bngradInstructionSet_t &set) {
  HostCpu cpu;
  cpu.name = set.cpu;
  cpu.features = set.features;
  SmallVector<StringRef> features;
  if (llvm::Triple(llvm::sys::getProcessTriple()).isX86())
    llvm::X86::getFeaturesForCPU(set.cpu, features);
  if (StringRef feature = set.features; feature.consume_front("+"))
    features.push_back(feature);
  for (StringRef feature : features) {
    cpu.hasFeature[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, cpu.hasFeature);
  }
  return cpu;
}

HostCpu HostCpu::get() {
  char error[256];
  int index = bngradReadInstructionSet(error, sizeof(error));
  if (index >= 0)
    return restrictTo(bngradInstructionSets[index]);
  // Never destroyed: threads may compile while the process ends.
  static const HostCpu &whole = *new HostCpu(findWhole());
  return whole;
}

LogicalResult HostCpu::verify(std::string &reason) {
  char error[256];
  if (bngradReadInstructionSet(error, sizeof(error)) != -2)
    return success();
  reason = error;
  return failure();
}
