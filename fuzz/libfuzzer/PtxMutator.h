//===- PtxMutator.h - changes PTX -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_FUZZ_PTXMUTATOR_H
#define BNGRAD_FUZZ_PTXMUTATOR_H

#include <cstdint>
#include <string>

namespace bngrad::fuzz {

/// Changes lines, instructions, modifiers, operands and numbers of a module,
/// or the launch in its first line.
std::string mutatePtx(const std::string &input, uint32_t seed);

/// The first input with lines of the second.
std::string splicePtx(const std::string &first, const std::string &second,
                      uint32_t seed);

} // namespace bngrad::fuzz

#endif // BNGRAD_FUZZ_PTXMUTATOR_H
