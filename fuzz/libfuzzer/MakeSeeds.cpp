//===- MakeSeeds.cpp - inputs from the tests ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fuzz-make-seeds OUT FILE.mlir...
//
// Splits each file at `// -----` and writes each function that is valid alone
// to OUT, without attribute aliases and with a pipeline in its first line.
//
//===----------------------------------------------------------------------===//

#include "IrMutator.h"
#include "IrSession.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace bngrad::fuzz;
using llvm::StringRef;

/// Larger ones are slow, and failures are hard to read.
static constexpr size_t kMaxSize = 8192;

int main(int argc, char **argv) {
  StringRef out = argc > 1 ? argv[1] : "";
  unsigned numSeeds = 0;
  for (int i = 2; i < argc; ++i) {
    auto buffer = llvm::MemoryBuffer::getFile(argv[i]);
    if (!buffer)
      continue;
    llvm::SmallVector<StringRef> pieces;
    (*buffer)->getBuffer().split(pieces, "// -----");
    std::string stem = llvm::sys::path::stem(argv[i]).str();
    for (StringRef piece : pieces)
      for (const std::string &text : getSession().splitFunctions(piece)) {
        if (text.size() > kMaxSize)
          continue;
        std::error_code error;
        llvm::raw_fd_ostream file(
            (out + "/" + stem + "-" + llvm::Twine(numSeeds) + ".mlir").str(),
            error);
        file << kHeader << IrMutator(++numSeeds * 7919).mutatePipeline() << "\n"
             << text;
      }
  }
  llvm::outs() << numSeeds << " seeds\n";
  return numSeeds == 0;
}
