//===- Schedule.h - parameters of a schedule --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parameters of `#bngrad.schedule`; docs/schedules.md has an example of
// each kind.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_SCHEDULE_H
#define BNGRAD_DIALECT_SCHEDULE_H

#include "BNGrad/Dialect/ScheduleKind.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <tuple>

namespace mlir::bngrad {

/// The most shares of a parallel loop. Each may have its own tables.
inline constexpr int64_t kMostThreads = 4096;

/// The most shares of a loop that has one share for each thread of a call.
inline constexpr int64_t kMostPoolThreads = 64;

/// Parameters of the kinds for CPUs, which Schedules.def describes.
struct CpuSchedule {
#define BNGRAD_CPU_PARAMETER(member, name, oldName, value, ...)                \
  int64_t member = value;
#include "BNGrad/Dialect/Schedules.def"
  /// Whether products that allow `contract` are fused with the sums that use
  /// them; the target must have the instruction.
  bool fma = false;

  /// All members.
  auto asTuple() const {
    return std::tuple(
#define BNGRAD_CPU_PARAMETER(member, ...) member,
#include "BNGrad/Dialect/Schedules.def"
        fma);
  }

  bool operator==(const CpuSchedule &other) const {
    return asTuple() == other.asTuple();
  }
  friend llvm::hash_code hash_value(const CpuSchedule &schedule) {
    return llvm::hash_value(schedule.asTuple());
  }
};

/// Parameters of the kinds for GPUs. Each kind has some of them.
struct GpuSchedule {
  // Limits of every GPU that PTX describes.
  static constexpr int64_t kWarpSize = 32;
  static constexpr int64_t kMostThreads = 1024; // of a block
  static constexpr int64_t kMostClusterBlocks = 16;

#define BNGRAD_GPU_PARAMETER(member, name, oldName, value, ...)                \
  int64_t member = value;
#include "BNGrad/Dialect/Schedules.def"
  /// As in CpuSchedule.
  bool fma = false;

  /// All members.
  auto asTuple() const {
    return std::tuple(
#define BNGRAD_GPU_PARAMETER(member, ...) member,
#include "BNGrad/Dialect/Schedules.def"
        fma);
  }

  bool operator==(const GpuSchedule &other) const {
    return asTuple() == other.asTuple();
  }
  friend llvm::hash_code hash_value(const GpuSchedule &schedule) {
    return llvm::hash_value(schedule.asTuple());
  }
};

/// The name of the parameter `fma`, which every kind with parameters has.
inline constexpr llvm::StringLiteral kFmaParameter = "fma";

/// The values that an integer parameter may have.
struct ParameterRange {
  enum class Form { Interval, PowersOf2, Multiples };

  Form form;
  int64_t least;
  int64_t most;

  bool contains(int64_t value) const;
  /// Returns text such as "a power of 2 in [64, 2048]", which completes
  /// "expected columns to be ...".
  std::string describe() const;
};

/// An integer parameter of CpuSchedule or GpuSchedule.
template <typename Schedule> struct ScheduleParameter {
  llvm::StringLiteral name;
  int64_t Schedule::*member;
  /// Its name before CPU and GPU parameters were separated; may be empty.
  llvm::StringLiteral oldName;
  ParameterRange range;
  llvm::StringLiteral unit;
  llvm::StringLiteral meaning;
};

/// The integer parameters of all kinds, and of one.
template <typename Schedule>
llvm::ArrayRef<ScheduleParameter<Schedule>> getScheduleParameters();
template <typename Schedule>
llvm::SmallVector<ScheduleParameter<Schedule>>
getScheduleParameters(ScheduleKind kind);

llvm::StringRef stringifyScheduleKind(ScheduleKind kind);
std::optional<ScheduleKind> symbolizeScheduleKind(llvm::StringRef name);

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_SCHEDULE_H
