//===- Parser.h - PTX text to Module ----------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_PARSER_H
#define PTX_EMULATOR_LIB_PARSER_H

#include "Module.h"

namespace ptx {

/// Parses a whole module. On failure, returns false and sets `error`, which
/// names the line.
bool parseModule(std::string_view text, Module &module, std::string &error);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_PARSER_H
