//===- Program.h - calls of compiled programs -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_PROGRAM_H
#define BNGRAD_PYTHON_SRC_PROGRAM_H

#include "Array.h"

#include <string>
#include <vector>

namespace bngrad::python {

/// A program that libBNGradCompiler.so has compiled.
class Program {
public:
  /// `entries` has the addresses of bngradProgramEntries_t in order, 0 for
  /// null. `parameters` has a tuple for each: its name, type in MLIR, shape or
  /// None, whether it is a result, and whether its array is written. `code` is
  /// the address of bngradDestroyProgram and the bngradProgram_t, which this
  /// object then owns.
  Program(nb::handle entries, nb::handle parameters, nb::handle code);

  /// Calls the program. Returns its result, a tuple of several, or None.
  /// Results are arrays of the first array's library, or of numpy. Throws the
  /// errors of the checked entries. Needs the GIL, and releases it.
  nb::object call(const nb::args &arguments) const;

private:
  using Entry = void (*)(void **);

  struct Parameter {
    std::string name;
    Dtype dtype;
    bool isScalar, isResult, isWritten;
    std::vector<int64_t> shape; // negative if dynamic
    size_t start;               // of its descriptor or value, in words
  };
  class Frame;

  /// A call holds the program and so the code. Freeing it runs no Python: at
  /// the end of the interpreter, a thread in Python would be killed within C++
  /// functions.
  struct Code {
    explicit Code(nb::handle code)
        : destroy(
              reinterpret_cast<void (*)(void *)>(nb::cast<uintptr_t>(code[0]))),
          program(reinterpret_cast<void *>(nb::cast<uintptr_t>(code[1]))) {}
    Code(const Code &) = delete;
    Code &operator=(const Code &) = delete;
    ~Code() { destroy(program); }

    void (*destroy)(void *program);
    void *program;
  } code;
  Entry checked, diagnose, workspace, infer;
  std::vector<Parameter> parameters; // arguments, then results
  size_t numArguments = 0, numWords = 0;
};

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_PROGRAM_H
