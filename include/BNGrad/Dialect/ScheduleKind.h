//===- ScheduleKind.h - the kinds of #bngrad.schedule -----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes each kind of schedule for the compiler and for the C library,
// without MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_SCHEDULEKIND_H
#define BNGRAD_DIALECT_SCHEDULEKIND_H

#include <cstdint>
#include <initializer_list>

namespace mlir::bngrad {

/// The loops or kernels of a group.
enum class ScheduleKind : uint32_t {
#define BNGRAD_SCHEDULE(kind, ...) kind,
#include "BNGrad/Dialect/Schedules.def"
};

/// The target of a kind. `Any`: scalar loops on a CPU or on the host of a GPU.
enum class ScheduleTarget { Any, Cpu, Gpu };

/// The merged loops over the data that a kind supports. N and S are reduced,
/// and C is a feature.
enum class ScheduleLoops {
  Any,
  EndInReduced,   // [N, C, S], [C, S], or more of them with S last
  ChannelRows,    // [N, C, S] or [C, S]
  RowsOfChannels, // [N, C]
  OfKernels       // for kernels, which check the loops themselves
};

/// The loops that tables of per-channel values cover. Each operand must be
/// data, per-channel, or uniform in these loops.
enum class ScheduleTables {
  None,
  LastTwoLoops, // and data are dense
  AllLoops
};

/// How a kind is chosen for a group.
enum class ScheduleChoice {
  Otherwise, // no other kind fits, or there are no elements
  ByLoops,   // by its loops, whatever their sizes
  BySizes,   // by the rules of SizeRules.h, instead of `sizes`
  ForGpu     // by ChooseGpuSchedule.h
};

/// What a thread reads between its two reads of an element.
enum class ScheduleReuse { Channel, Tile, All };

/// Which parameters a kind has, as a bit for each in their order. Every kind
/// with parameters also has `fma`.
struct ScheduleParameters {
  uint32_t cpu = 0, gpu = 0;
};

struct ScheduleInfo {
  ScheduleKind kind;
  const char *name;
  ScheduleTarget target;
  ScheduleLoops loops;
  ScheduleTables tables;
  ScheduleChoice choice;
  ScheduleReuse reuse;
  ScheduleParameters parameters;
  const char *summary;
};

namespace detail {
enum GpuParameter : uint32_t {
#define BNGRAD_GPU_PARAMETER(member, ...) member,
#include "BNGrad/Dialect/Schedules.def"
};

constexpr ScheduleParameters
gpuParameters(std::initializer_list<GpuParameter> parameters) {
  ScheduleParameters found;
  for (GpuParameter parameter : parameters)
    found.gpu |= uint32_t(1) << parameter;
  return found;
}

inline constexpr ScheduleParameters kNoParameters;
/// Each kind for CPUs has all of them: if strides call for another kind, that
/// kind uses them.
inline constexpr ScheduleParameters kCpuParameters = {~uint32_t(0), 0};

inline constexpr ScheduleInfo kSchedules[] = {
#define BNGRAD_SCHEDULE(kind, name, target, loops, tables, choice, reuse,      \
                        parameters, summary)                                   \
  {ScheduleKind::kind,                                                         \
   name,                                                                       \
   ScheduleTarget::target,                                                     \
   ScheduleLoops::loops,                                                       \
   ScheduleTables::tables,                                                     \
   ScheduleChoice::choice,                                                     \
   ScheduleReuse::reuse,                                                       \
   parameters,                                                                 \
   summary},
#include "BNGrad/Dialect/Schedules.def"
};
} // namespace detail

/// All kinds, in the order of ScheduleKind.
inline constexpr auto &kSchedules = detail::kSchedules;

constexpr const ScheduleInfo &getInfo(ScheduleKind kind) {
  return kSchedules[static_cast<uint32_t>(kind)];
}

/// True for GPU kernels, and for CPU loops with vectors, respectively.
constexpr bool isGpuKind(ScheduleKind kind) {
  return getInfo(kind).target == ScheduleTarget::Gpu;
}
constexpr bool isCpuKind(ScheduleKind kind) {
  return getInfo(kind).target == ScheduleTarget::Cpu;
}

/// True for kernels whose blocks form clusters.
constexpr bool usesClusters(ScheduleKind kind) {
  return getInfo(kind).parameters.gpu >> detail::clusterBlocks & 1;
}

} // namespace mlir::bngrad

#endif // BNGRAD_DIALECT_SCHEDULEKIND_H
