//===- Settings.h - back end and timeout ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_RUNTIME_DISTRIBUTED_SETTINGS_H
#define BNGRAD_LIB_RUNTIME_DISTRIBUTED_SETTINGS_H

#include <string>

namespace bngrad::distributed {

/// The back end that the program, or else the environment, asks for;
/// empty: none.
std::string getBackendChoice();

/// How long a wait may take, in seconds.
///
/// Errors: a text and another value than 0 for BNGRAD_TIMEOUT.
int getTimeout(double &seconds);

/// A number of seconds as text, such as `2.5 s`.
std::string printSeconds(double seconds);

/// Whether each all-reduce is a line on standard error, by
/// BNGRAD_LOG_COLLECTIVES=1.
bool isLogged();

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_SETTINGS_H
