//===- Environment.h - environment variables --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_ENVIRONMENT_H
#define PTX_EMULATOR_LIB_ENVIRONMENT_H

#include <cstdint>
#include <string>
#include <vector>

namespace ptx {

// Empty variables count as unset. The functions return an error message, empty
// on success.

/// The value of `variable`; empty if it is not set.
std::string environment(const char *variable);

/// PTX_EMULATOR_CHIP; `chip` is empty if it is not set.
std::string readChip(std::string &chip);

/// PTX_EMULATOR_PROCESSING_CLUSTERS: the multiprocessors of each processing
/// cluster; `sizes` is unchanged if it is not set.
std::string readProcessingClusters(std::vector<uint32_t> &sizes);

/// PTX_EMULATOR_BUDGET; a default if it is not set.
std::string readBudget(uint64_t &budget);

/// The effect of a finding that a correct kernel may have.
enum class Effect : uint8_t { Allow, Warn, Error };

/// PTX_EMULATOR_EQUAL_STORES, for unordered stores of the same value to the
/// same place; warns if it is not set.
std::string readEqualStores(Effect &effect);

/// PTX_EMULATOR_UNINITIALISED, for uses of uninitialised bytes; an error if it
/// is not set.
std::string readUninitialised(Effect &effect);

/// PTX_EMULATOR_SHUFFLE_ORDER: whether shuffles and votes order the accesses of
/// their lanes.
std::string readShuffleOrder(bool &isAllowed);

/// PTX_EMULATOR_REPLACE_PTX: reads the file into `text`, which is unchanged if
/// the variable is not set.
std::string readReplacement(std::string &text);

/// PTX_EMULATOR_TRAFFIC: appends `line` to the file, if the variable is set.
std::string writeTraffic(const std::string &line);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_ENVIRONMENT_H
