//===- Schedules.cpp - prints the declarations of schedules ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedules.h"

#include "BNGrad/Dialect/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir::bngrad;
using namespace llvm;

static StringRef getName(ScheduleTarget target) {
  switch (target) {
  case ScheduleTarget::Any:
    return "any";
  case ScheduleTarget::Cpu:
    return "cpu";
  case ScheduleTarget::Gpu:
    return "gpu";
  }
  llvm_unreachable("unknown target");
}

static StringRef getName(ScheduleLoops loops) {
  switch (loops) {
  case ScheduleLoops::Any:
    return "any";
  case ScheduleLoops::EndInReduced:
    return "end_in_reduced";
  case ScheduleLoops::ChannelRows:
    return "channel_rows";
  case ScheduleLoops::RowsOfChannels:
    return "rows_of_channels";
  case ScheduleLoops::OfKernels:
    return "of_kernels";
  }
  llvm_unreachable("unknown loops");
}

static StringRef describe(ScheduleLoops loops) {
  switch (loops) {
  case ScheduleLoops::Any:
    return "any";
  case ScheduleLoops::EndInReduced:
    return "[..., S]";
  case ScheduleLoops::ChannelRows:
    return "[N, C, S], [C, S]";
  case ScheduleLoops::RowsOfChannels:
    return "[N, C]";
  case ScheduleLoops::OfKernels:
    return "as its kernels allow";
  }
  llvm_unreachable("unknown loops");
}

static StringRef getName(ParameterRange::Form form) {
  switch (form) {
  case ParameterRange::Form::Interval:
    return "interval";
  case ParameterRange::Form::PowersOf2:
    return "powers_of_2";
  case ParameterRange::Form::Multiples:
    return "multiples";
  }
  llvm_unreachable("unknown form");
}

/// The names of the parameters of `kind`, for both targets.
static SmallVector<StringRef> getParameterNames(ScheduleKind kind) {
  SmallVector<StringRef> names;
  for (const auto &parameter : getScheduleParameters<CpuSchedule>(kind))
    names.push_back(parameter.name);
  for (const auto &parameter : getScheduleParameters<GpuSchedule>(kind))
    names.push_back(parameter.name);
  if (!names.empty())
    names.push_back(kFmaParameter);
  return names;
}

template <typename Schedule> static json::Array getParametersAsJson() {
  const Schedule defaults;
  json::Array parameters;
  for (const auto &parameter : getScheduleParameters<Schedule>())
    parameters.push_back(json::Object{{"name", parameter.name},
                                      {"default", defaults.*parameter.member},
                                      {"least", parameter.range.least},
                                      {"most", parameter.range.most},
                                      {"form", getName(parameter.range.form)},
                                      {"unit", parameter.unit},
                                      {"meaning", parameter.meaning}});
  return parameters;
}

static void printJson(raw_ostream &os) {
  json::Array kinds;
  for (const ScheduleInfo &info : kSchedules)
    kinds.push_back(
        json::Object{{"name", info.name},
                     {"target", getName(info.target)},
                     {"loops", getName(info.loops)},
                     {"parameters", json::Array(getParameterNames(info.kind))},
                     {"summary", info.summary}});
  os << formatv("{0:2}\n",
                json::Value(json::Object{
                    {"kinds", std::move(kinds)},
                    {"cpu_parameters", getParametersAsJson<CpuSchedule>()},
                    {"gpu_parameters", getParametersAsJson<GpuSchedule>()}}));
}

/// The kinds for GPUs that have a parameter: "all", or their names.
static std::string describeKinds(StringRef parameter) {
  SmallVector<std::string> names;
  bool areAll = true;
  for (const ScheduleInfo &info : kSchedules) {
    if (!isGpuKind(info.kind))
      continue;
    if (is_contained(getParameterNames(info.kind), parameter))
      names.push_back("`" + std::string(info.name) + "`");
    else
      areAll = false;
  }
  return areAll ? "all" : join(names, ", ");
}

template <typename Schedule>
static void printParameters(raw_ostream &os, bool hasKinds) {
  const Schedule defaults;
  StringRef kinds = hasKinds ? " kinds |" : "";
  os << "| parameter |" << kinds << " unit | default | values | meaning |\n"
     << "|---|" << (hasKinds ? "---|" : "") << "---|---|---|---|\n";
  auto begin = [&](StringRef name) {
    os << "| `" << name << "` | ";
    if (hasKinds)
      os << describeKinds(name) << " | ";
  };
  for (const auto &parameter : getScheduleParameters<Schedule>()) {
    begin(parameter.name);
    os << parameter.unit << " | " << defaults.*parameter.member << " | "
       << parameter.range.describe() << " | " << parameter.meaning << " |\n";
  }
  begin(kFmaParameter);
  os << "| " << (defaults.fma ? "true" : "false")
     << " | true or false | products that allow `contract` are fused with the "
        "sums that use them; the target must have the instruction |\n";
}

static void printMarkdown(raw_ostream &os) {
  os << "| kind | target | loops | description |\n|---|---|---|---|\n";
  for (const ScheduleInfo &info : kSchedules)
    os << "| `" << info.name << "` | "
       << (isGpuKind(info.kind)   ? "GPU"
           : isCpuKind(info.kind) ? "CPU"
                                  : "any")
       << " | " << describe(info.loops) << " | " << info.summary << " |\n";
  os << "\n";
  printParameters<CpuSchedule>(os, /*hasKinds=*/false);
  os << "\n";
  printParameters<GpuSchedule>(os, /*hasKinds=*/true);
}

void mlir::bngrad::printSchedules(raw_ostream &os, SchedulesFormat format) {
  switch (format) {
  case SchedulesFormat::None:
    return;
  case SchedulesFormat::Json:
    return printJson(os);
  case SchedulesFormat::Markdown:
    return printMarkdown(os);
  }
}
