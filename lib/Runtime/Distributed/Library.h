//===- Library.h - back ends that are loaded --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_LIBRARY_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_LIBRARY_H

#include "Backend.h"

#include <mutex>
#include <string>

namespace bngrad::distributed {

/// A back end. It is never unloaded, as MPI cannot be.
struct Library {
  const bngradBackend_t *functions = nullptr;
  /// Where it was loaded from.
  std::string path;
  /// Held during calls unless the back end is concurrent.
  std::mutex mutex;
};

/// Loads and initializes the back end `choice`: openmpi, mpich or a path. If
/// empty, the settings or else the MPI that the process has loaded decide.
///
/// Errors: returns null and sets the text.
Library *loadLibrary(std::string choice);

/// While a scope exists, the calling thread may call the back end.
class LibraryScope {
public:
  /// On an error, `status` is nonzero and the text is set.
  explicit LibraryScope(Library &library);

  int status = 0;

private:
  std::unique_lock<std::mutex> lock;
};

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_LIBRARY_H
