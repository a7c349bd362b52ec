//===- Unlocked.h - without Python's lock -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_UNLOCKED_H
#define BNGRAD_PYTHON_SRC_UNLOCKED_H

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace bngrad::python {

/// Releases the GIL while it exists. A daemon thread that takes the GIL after
/// the interpreter has ended hangs here forever, as in Python 3.14. Older
/// versions call pthread_exit instead, which would unwind noexcept C++
/// functions and so abort the process.
class Unlocked {
public:
  Unlocked() : state(PyEval_SaveThread()) {}
  Unlocked(const Unlocked &) = delete;
  Unlocked &operator=(const Unlocked &) = delete;
  ~Unlocked() { lock(state); }

private:
  struct Stop {
    bool hasLock = false;
    ~Stop() {
      while (!hasLock)
        pause();
    }
  };

  // A separate function, as pthread_exit needs a frame that may be unwound.
  [[gnu::noinline]] static void lock(PyThreadState *state) {
    Stop stop;
    PyEval_RestoreThread(state);
    stop.hasLock = true;
  }

  PyThreadState *state;
};

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_UNLOCKED_H
