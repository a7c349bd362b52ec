//===- Processes.cpp - the processes of a run -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Processes.h"

#include "common/Diagnostics.h"

#include "BNGrad/Runtime/Collectives.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace mlir;
using namespace mlir::bngrad;

/// The group of --mpi; null if there is only this process.
static bngradCollectiveGroup_t group;
/// Lines that were reported since the processes last met.
static std::vector<std::string> lines;

/// Reads the rank that launchers set, as MPI is not initialized yet.
static bool isFirstOfLauncher() {
  for (const char *name :
       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char *rank = std::getenv(name))
      return StringRef(rank) == "0";
  return true;
}

void Processes::silenceOthers() {
  if (!isFirstOfLauncher())
    setErrorHandler([](StringRef) {});
}

int64_t Processes::getRank() { return bngradGetCollectiveGroupRank(group); }

int64_t Processes::getSize() { return bngradGetCollectiveGroupSize(group); }

LogicalResult Processes::initialize(StringRef mpi) {
  if (!mpi.empty()) {
    if (bngradSetCollectiveBackend(mpi.str().c_str()) != 0)
      return reportError(Twine("--mpi: ") + bngradGetCollectiveError());
    group = bngradGetDefaultCollectiveGroup();
    if (!group)
      return reportError(Twine("--mpi: ") + bngradGetCollectiveError());
  }
  if (isShared())
    setErrorHandler([](StringRef line) { lines.push_back(line.str()); });
  return success();
}

/// Adds `data` over all processes; false and an error on failure.
static bool add(const char *op, std::vector<int64_t> &data) {
  int64_t size = Processes::getSize(), axis = 0;
  bngradCollective_t collective = {
      sizeof(collective), op, "", BNGRAD_COLLECTIVE_I64, 1, &size, 1, &axis};
  int64_t request = bngradGroupAllReduceStart(
      group, &collective, data.data(), static_cast<int64_t>(data.size()));
  return bngradAllReduceWait(request) == 0;
}

void Processes::printErrors(bool isOfAll) {
  setErrorHandler(nullptr);
  for (const std::string &line : lines)
    if (!isOfAll)
      (void)reportError("rank " + Twine(getRank()) + ": " + line);
    else if (getRank() == 0)
      (void)reportError(line);
  lines.clear();
}

LogicalResult Processes::agree(LogicalResult result) {
  if (!isShared())
    return result;
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  // If all processes have the same value, its sum is a multiple of it.
  auto hash = static_cast<int64_t>(llvm::xxh3_64bits(text) >> 24);
  std::vector<int64_t> data = {failed(result), hash};
  if (!add("state of bngrad-runner", data)) {
    // After a failed collective, this one would report the same error.
    if (lines.empty())
      lines.push_back(bngradGetCollectiveError());
    printErrors(/*isOfAll=*/false);
    return failure();
  }
  if (data[0] == 0)
    return success();
  printErrors(data[1] == getSize() * hash);
  return failure();
}

FailureOr<std::string> Processes::broadcast(std::string text) {
  if (!isShared())
    return text;
  // All but the first process add zeros, first to its length.
  std::vector<int64_t> length = {
      getRank() == 0 ? static_cast<int64_t>(text.size()) : 0};
  if (!add("length of a text of bngrad-runner", length))
    return reportError(bngradGetCollectiveError());
  auto size = static_cast<size_t>(length.front());
  std::vector<int64_t> data(size / sizeof(int64_t) + 1);
  if (getRank() == 0)
    std::memcpy(data.data(), text.data(), size);
  if (!add("text of bngrad-runner", data))
    return reportError(bngradGetCollectiveError());
  return std::string(reinterpret_cast<const char *>(data.data()), size);
}

LogicalResult Processes::reportCollective() {
  return reportError(bngradGetCollectiveError());
}
