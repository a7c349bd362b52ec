//===- Errors.h - exceptions of bngrad --------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_ERRORS_H
#define BNGRAD_PYTHON_SRC_ERRORS_H

#include "Array.h"

#include <nanobind/nanobind.h>

#include <string>

namespace bngrad::python {

/// Throws the exception for `status`, which is not a success; see
/// bngrad/_errors.py.
[[noreturn]] void throwError(bngradStatus_t status, const std::string &message);

/// Throws the exception for the last call of the C library if it failed.
/// `statistic` replaces the name of that operand in its text.
void check(bngradStatus_t status, const char *statistic = "statistic");

/// The name of the type of an object, such as "torch.Tensor".
std::string getTypeName(nanobind::handle object);

/// `name`: expected `expected`, got `actual`.
[[noreturn]] void throwType(const char *name, const std::string &expected,
                            const std::string &actual);
/// Replaces Python's exception that `object` is not a number of this kind; any
/// other, such as KeyboardInterrupt, stays.
[[noreturn]] void throwNoNumber(const char *name, const std::string &expected,
                                nanobind::handle object);
/// Throws because no operand may have the element type `actual` or, if
/// `expected` is not null, because a parameter of that type has it.
[[noreturn]] void throwDtype(const char *name, const std::string &actual,
                             const Dtype *expected);
[[noreturn]] void throwReadOnly(const char *name);
void verifyRank(const char *name, size_t rank);

/// Throws because two elements of an output share an address.
[[noreturn]] void throwOverlap(const char *name);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_ERRORS_H
