//===- ScheduleAttr.cpp - #bngrad.schedule --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::bngrad;

static constexpr int64_t kMost = 1 << 20;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

namespace {
/// A parameter by name. `oldName`: its name before CPU and GPU had their own.
template <typename Schedule> struct Parameter {
  StringLiteral name;
  int64_t Schedule::*member;
  StringLiteral oldName = "";
};
} // namespace

static constexpr StringLiteral kFma = "fma";

static ArrayRef<Parameter<CpuSchedule>> getCpuParameters(ScheduleKind kind) {
  static constexpr Parameter<CpuSchedule> kAll[] = {
      {"threads", &CpuSchedule::threads},
      {"vector_bits", &CpuSchedule::vectorBits},
      {"streaming_bytes", &CpuSchedule::streamingBytes},
      {"columns", &CpuSchedule::columns},
      {"row_blocks", &CpuSchedule::rowBlocks, "blocks"}};
  switch (kind) {
  case ScheduleKind::Channels:
  case ScheduleKind::Tiles:
  case ScheduleKind::Rows:
  case ScheduleKind::Split:
  case ScheduleKind::Sizes:
    return kAll;
  case ScheduleKind::Loops:
  case ScheduleKind::TwoPass:
  case ScheduleKind::OnePass:
    return {};
  }
  llvm_unreachable("unknown kind");
}

static ArrayRef<Parameter<GpuSchedule>> getGpuParameters(ScheduleKind kind) {
  static constexpr Parameter<GpuSchedule> kTwoPass[] = {
      {"block_threads", &GpuSchedule::blockThreads, "threads"},
      {"access_bits", &GpuSchedule::accessBits, "vector_bits"},
      {"block_accesses", &GpuSchedule::blockAccesses, "columns"},
      {"sum_blocks", &GpuSchedule::sumBlocks, "blocks"}};
  static constexpr Parameter<GpuSchedule> kOnePass[] = {
      {"block_threads", &GpuSchedule::blockThreads, "threads"},
      {"access_bits", &GpuSchedule::accessBits, "vector_bits"},
      {"block_channels", &GpuSchedule::blockChannels, "columns"},
      {"cluster_blocks", &GpuSchedule::clusterBlocks, "cluster"}};
  switch (kind) {
  case ScheduleKind::TwoPass:
    return kTwoPass;
  case ScheduleKind::OnePass:
    return kOnePass;
  case ScheduleKind::Loops:
  case ScheduleKind::Channels:
  case ScheduleKind::Tiles:
  case ScheduleKind::Rows:
  case ScheduleKind::Split:
  case ScheduleKind::Sizes:
    return {};
  }
  llvm_unreachable("unknown kind");
}

/// True if all but `parameters` and fma have their defaults. Without
/// parameters, a kind has no fma either.
template <typename Schedule>
static bool hasOnly(ArrayRef<Parameter<Schedule>> parameters,
                    const Schedule &schedule) {
  Schedule allowed;
  for (const Parameter<Schedule> &parameter : parameters)
    allowed.*parameter.member = schedule.*parameter.member;
  if (!parameters.empty())
    allowed.fma = schedule.fma;
  return allowed == schedule;
}

/// Fails with an error that lists the parameters of `kind`.
template <typename Schedule>
static ParseResult refuseParameter(AsmParser &parser, SMLoc loc, StringRef name,
                                   ScheduleKind kind,
                                   ArrayRef<Parameter<Schedule>> parameters) {
  InFlightDiagnostic error = parser.emitError(loc);
  for (const Parameter<Schedule> &parameter : parameters)
    if (!name.empty() && parameter.oldName == name)
      return error << "expected '" << parameter.name << "', as '" << name
                   << "' of '" << stringifyScheduleKind(kind)
                   << "' is called now";
  if (parameters.empty())
    return error << "expected no parameters of '" << stringifyScheduleKind(kind)
                 << "', got '" << name << "'";
  error << "expected a parameter of '" << stringifyScheduleKind(kind) << "' (";
  for (const Parameter<Schedule> &parameter : parameters)
    error << parameter.name << ", ";
  return error << kFma << "), got '" << name << "'";
}

/// Parses the value of parameter `name`. A bool is no integer here.
static ParseResult parseInteger(AsmParser &parser, StringRef name,
                                int64_t &value) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  APInt integer;
  bool isKeyword = succeeded(parser.parseOptionalKeyword(&keyword));
  OptionalParseResult parsed = std::nullopt;
  if (!isKeyword)
    parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value() && succeeded(*parsed) && integer.isSignedIntN(64)) {
    value = integer.getSExtValue();
    return success();
  }
  InFlightDiagnostic error = parser.emitError(loc);
  error << "expected '" << name << "' to be an integer of 64 bits";
  if (isKeyword)
    error << ", got '" << keyword << "'";
  else if (parsed.has_value())
    error << ", got " << llvm::toString(integer, 10, /*Signed=*/true);
  return error;
}

static ParseResult parseBool(AsmParser &parser, StringRef name, bool &value) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword, {"true", "false"}))) {
    value = keyword == "true";
    return success();
  }
  InFlightDiagnostic error = parser.emitError(loc);
  error << "expected '" << name << "' to be true or false";
  int64_t integer = 0;
  if (succeeded(parser.parseOptionalKeyword(&keyword)))
    error << ", got '" << keyword << "'";
  else if (OptionalParseResult parsed = parser.parseOptionalInteger(integer);
           parsed.has_value() && succeeded(*parsed))
    error << ", got " << integer;
  return error;
}

/// Parses `, name = value` until the end.
template <typename Schedule>
static ParseResult parseParameters(AsmParser &parser, ScheduleKind kind,
                                   ArrayRef<Parameter<Schedule>> parameters,
                                   Schedule &schedule) {
  SmallVector<StringRef> seen;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    if (llvm::is_contained(seen, name))
      return parser.emitError(loc)
             << "expected parameter '" << name << "' once, got it twice";
    seen.push_back(name);
    const auto *parameter =
        llvm::find_if(parameters, [&](const Parameter<Schedule> &known) {
          return known.name == name;
        });
    bool isFma = name == kFma && !parameters.empty();
    if (!isFma && parameter == parameters.end())
      return refuseParameter(parser, loc, name, kind, parameters);
    if (parser.parseEqual())
      return failure();
    if (isFma ? parseBool(parser, name, schedule.fma)
              : parseInteger(parser, name, schedule.*parameter->member))
      return failure();
  }
  return success();
}

/// Prints the parameters that differ from their defaults.
template <typename Schedule>
static void printParameters(AsmPrinter &printer,
                            ArrayRef<Parameter<Schedule>> parameters,
                            const Schedule &schedule) {
  const Schedule defaults;
  for (const Parameter<Schedule> &parameter : parameters)
    if (schedule.*parameter.member != defaults.*parameter.member)
      printer << ", " << parameter.name << " = " << schedule.*parameter.member;
  if (schedule.fma != defaults.fma)
    printer << ", " << kFma << " = " << (schedule.fma ? "true" : "false");
}

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

bool mlir::bngrad::isGpuKind(ScheduleKind kind) {
  switch (kind) {
  case ScheduleKind::TwoPass:
  case ScheduleKind::OnePass:
    return true;
  case ScheduleKind::Loops:
  case ScheduleKind::Channels:
  case ScheduleKind::Tiles:
  case ScheduleKind::Rows:
  case ScheduleKind::Split:
  case ScheduleKind::Sizes:
    return false;
  }
  llvm_unreachable("unknown kind");
}

/// The kind at the parser's position.
static ParseResult parseKind(AsmParser &parser, ScheduleKind &kind) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  std::optional<ScheduleKind> found;
  if (succeeded(parser.parseOptionalKeyword(&name)))
    found = symbolizeScheduleKind(name);
  if (found) {
    kind = *found;
    return success();
  }
  InFlightDiagnostic error = parser.emitError(loc, "expected a kind (");
  llvm::interleaveComma(
      llvm::seq_inclusive<uint32_t>(0, getMaxEnumValForScheduleKind()), error,
      [&](uint32_t value) {
        error << stringifyScheduleKind(*symbolizeScheduleKind(value));
      });
  error << ")";
  if (!name.empty())
    error << ", got '" << name << "'";
  return error;
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  ScheduleKind kind = ScheduleKind::Loops;
  CpuSchedule cpu;
  GpuSchedule gpu;
  if (parser.parseLess() || parseKind(parser, kind))
    return {};
  ParseResult parameters =
      isGpuKind(kind)
          ? parseParameters(parser, kind, getGpuParameters(kind), gpu)
          : parseParameters(parser, kind, getCpuParameters(kind), cpu);
  if (parameters || parser.parseGreater())
    return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(), kind, cpu,
                                         gpu);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyScheduleKind(getKind());
  if (isGpuKind(getKind()))
    printParameters(printer, getGpuParameters(getKind()), getGpu());
  else
    printParameters(printer, getCpuParameters(getKind()), getCpu());
  printer << ">";
}

static LogicalResult verifyRange(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef name, int64_t value,
                                 int64_t least = 1, int64_t most = kMost) {
  if (value >= least && value <= most)
    return success();
  return emitError() << "expected " << name << " to be in [" << least << ", "
                     << most << "], got " << value;
}

static LogicalResult
verifyParameters(function_ref<InFlightDiagnostic()> emitError,
                 const CpuSchedule &cpu) {
  // The longest registers are those of SVE. Code grows with the length: each
  // vector is cut into as many as the target needs.
  constexpr int64_t kMostVectorBits = 2048;
  if (failed(verifyRange(emitError, "threads", cpu.threads, 0, kMostThreads)) ||
      failed(verifyRange(emitError, "columns", cpu.columns)) ||
      failed(verifyRange(emitError, "row_blocks", cpu.rowBlocks)))
    return failure();
  if (cpu.vectorBits < 64 || cpu.vectorBits > kMostVectorBits ||
      !llvm::isPowerOf2_64(cpu.vectorBits))
    return emitError() << "expected vector_bits to be a power of 2 in [64, "
                       << kMostVectorBits << "], got " << cpu.vectorBits;
  if (cpu.streamingBytes < 0)
    return emitError() << "expected streaming_bytes to be at least 0, got "
                       << cpu.streamingBytes;
  return success();
}

static LogicalResult
verifyParameters(function_ref<InFlightDiagnostic()> emitError,
                 const GpuSchedule &gpu) {
  constexpr int64_t warpSize = GpuSchedule::kWarpSize;
  if (gpu.blockThreads < warpSize ||
      gpu.blockThreads > GpuSchedule::kMostThreads ||
      gpu.blockThreads % warpSize != 0)
    return emitError() << "expected block_threads to be a multiple of "
                       << warpSize << " in [" << warpSize << ", "
                       << GpuSchedule::kMostThreads << "], got "
                       << gpu.blockThreads;
  if (gpu.accessBits != 64 && gpu.accessBits != 128)
    return emitError() << "expected access_bits to be 64 or 128, got "
                       << gpu.accessBits;
  if (gpu.clusterBlocks < 1 ||
      gpu.clusterBlocks > GpuSchedule::kMostClusterBlocks ||
      !llvm::isPowerOf2_64(gpu.clusterBlocks))
    return emitError() << "expected cluster_blocks to be 1, 2, 4, 8 or 16, got "
                       << gpu.clusterBlocks;
  if (failed(verifyRange(emitError, "block_accesses", gpu.blockAccesses)) ||
      failed(verifyRange(emitError, "sum_blocks", gpu.sumBlocks)))
    return failure();
  return verifyRange(emitError, "block_channels", gpu.blockChannels);
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind, CpuSchedule cpu,
                                   GpuSchedule gpu) {
  // The text has only those.
  if (!hasOnly(getCpuParameters(kind), cpu) ||
      !hasOnly(getGpuParameters(kind), gpu))
    return emitError() << "expected defaults for all but the parameters of '"
                       << stringifyScheduleKind(kind) << "'";
  return isGpuKind(kind) ? verifyParameters(emitError, gpu)
                         : verifyParameters(emitError, cpu);
}

LogicalResult BNGradDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != ScheduleAttr::kAttrName)
    return success();
  if (!isa<ScheduleAttr>(attr.getValue()))
    return op->emitOpError()
           << "expected attribute '" << ScheduleAttr::kAttrName
           << "' to be a #bngrad.schedule, got " << attr.getValue();
  // By name, as the dialect does not depend on linalg.
  if (op->getName().getStringRef() != "linalg.generic")
    return op->emitOpError()
           << "expected attribute '" << ScheduleAttr::kAttrName
           << "' on a linalg.generic only";
  return success();
}
