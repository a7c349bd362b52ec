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

/// The back end that the program, or else the environment, asks for; empty if
/// neither does.
std::string getBackendChoice();

/// How long a wait may take, in seconds.
///
/// Errors: for a bad BNGRAD_TIMEOUT, sets the text and returns nonzero.
int getTimeout(double &seconds);

/// A number of seconds as text, such as `2.5 s`.
std::string printSeconds(double seconds);

/// Whether BNGRAD_LOG_COLLECTIVES=1 asks for a line on standard error for each
/// all-reduce.
bool isLogged();

} // namespace bngrad::distributed

#endif // BNGRAD_LIB_RUNTIME_DISTRIBUTED_SETTINGS_H
