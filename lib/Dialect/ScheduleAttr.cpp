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

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

StringRef mlir::bngrad::stringifyScheduleKind(ScheduleKind kind) {
  return getInfo(kind).name;
}

std::optional<ScheduleKind>
mlir::bngrad::symbolizeScheduleKind(StringRef name) {
  for (const ScheduleInfo &info : kSchedules)
    if (info.name == name)
      return info.kind;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

bool ParameterRange::contains(int64_t value) const {
  if (value < least || value > most)
    return false;
  switch (form) {
  case Form::Interval:
    return true;
  case Form::PowersOf2:
    return llvm::isPowerOf2_64(value);
  case Form::Multiples:
    return value % least == 0;
  }
  llvm_unreachable("unknown form");
}

std::string ParameterRange::describe() const {
  // At most this many powers are listed one by one.
  constexpr int64_t kMostNamed = 16;
  std::string text;
  llvm::raw_string_ostream os(text);
  if (form == Form::PowersOf2 && most / least <= kMostNamed) {
    for (int64_t value = least; value <= most; value *= 2)
      os << (value == least ? "" : value == most ? " or " : ", ") << value;
    return text;
  }
  if (form == Form::PowersOf2)
    os << "a power of 2 ";
  if (form == Form::Multiples)
    os << "a multiple of " << least << " ";
  if (most == std::numeric_limits<int64_t>::max())
    os << "at least " << least;
  else
    os << "in [" << least << ", " << most << "]";
  return text;
}

static constexpr ParameterRange between(int64_t least, int64_t most) {
  return {ParameterRange::Form::Interval, least, most};
}
static constexpr ParameterRange atLeast(int64_t least) {
  return between(least, std::numeric_limits<int64_t>::max());
}
static constexpr ParameterRange powerOf2(int64_t least, int64_t most) {
  return {ParameterRange::Form::PowersOf2, least, most};
}
static constexpr ParameterRange multipleOf(int64_t divisor, int64_t most) {
  return {ParameterRange::Form::Multiples, divisor, most};
}

template <>
ArrayRef<ScheduleParameter<CpuSchedule>> mlir::bngrad::getScheduleParameters() {
  static constexpr ScheduleParameter<CpuSchedule> kAll[] = {
#define BNGRAD_CPU_PARAMETER(member, name, oldName, value, range, unit,        \
                             meaning)                                          \
  {name, &CpuSchedule::member, oldName, range, unit, meaning},
#include "BNGrad/Dialect/Schedules.def"
  };
  return kAll;
}

template <>
ArrayRef<ScheduleParameter<GpuSchedule>> mlir::bngrad::getScheduleParameters() {
  static constexpr ScheduleParameter<GpuSchedule> kAll[] = {
#define BNGRAD_GPU_PARAMETER(member, name, oldName, value, range, unit,        \
                             meaning)                                          \
  {name, &GpuSchedule::member, oldName, range, unit, meaning},
#include "BNGrad/Dialect/Schedules.def"
  };
  return kAll;
}

/// The parameters of all kinds of a target whose bit in `mask` is set.
template <typename Schedule>
static SmallVector<ScheduleParameter<Schedule>>
selectParameters(uint32_t mask) {
  SmallVector<ScheduleParameter<Schedule>> selected;
  for (auto [i, parameter] : llvm::enumerate(getScheduleParameters<Schedule>()))
    if (mask >> i & 1)
      selected.push_back(parameter);
  return selected;
}

template <>
SmallVector<ScheduleParameter<CpuSchedule>>
mlir::bngrad::getScheduleParameters(ScheduleKind kind) {
  return selectParameters<CpuSchedule>(getInfo(kind).parameters.cpu);
}

template <>
SmallVector<ScheduleParameter<GpuSchedule>>
mlir::bngrad::getScheduleParameters(ScheduleKind kind) {
  return selectParameters<GpuSchedule>(getInfo(kind).parameters.gpu);
}

/// True if all parameters that `kind` lacks have their defaults. A kind without
/// parameters has no fma either.
template <typename Schedule>
static bool hasOnlyParametersOf(ScheduleKind kind, const Schedule &schedule) {
  SmallVector<ScheduleParameter<Schedule>> parameters =
      getScheduleParameters<Schedule>(kind);
  Schedule allowed;
  for (const ScheduleParameter<Schedule> &parameter : parameters)
    allowed.*parameter.member = schedule.*parameter.member;
  if (!parameters.empty())
    allowed.fma = schedule.fma;
  return allowed == schedule;
}

/// Fails with an error that lists the parameters of `kind`.
template <typename Schedule>
static ParseResult
refuseParameter(AsmParser &parser, SMLoc loc, StringRef name, ScheduleKind kind,
                ArrayRef<ScheduleParameter<Schedule>> parameters) {
  InFlightDiagnostic error = parser.emitError(loc);
  for (const ScheduleParameter<Schedule> &parameter : parameters)
    if (!name.empty() && parameter.oldName == name)
      return error << "expected '" << parameter.name << "', the new name of '"
                   << name << "' of '" << stringifyScheduleKind(kind) << "'";
  if (parameters.empty())
    return error << "expected no parameters of '" << stringifyScheduleKind(kind)
                 << "', got '" << name << "'";
  error << "expected a parameter of '" << stringifyScheduleKind(kind) << "' (";
  for (const ScheduleParameter<Schedule> &parameter : parameters)
    error << parameter.name << ", ";
  return error << kFmaParameter << "), got '" << name << "'";
}

/// Parses the value of parameter `name`. A bool does not count as an integer.
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
                                   Schedule &schedule) {
  SmallVector<ScheduleParameter<Schedule>> parameters =
      getScheduleParameters<Schedule>(kind);
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
    const auto *parameter = llvm::find_if(
        parameters, [&](const auto &known) { return known.name == name; });
    bool isFma = name == kFmaParameter && !parameters.empty();
    if (!isFma && parameter == parameters.end())
      return refuseParameter<Schedule>(parser, loc, name, kind, parameters);
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
static void printParameters(AsmPrinter &printer, const Schedule &schedule) {
  const Schedule defaults;
  for (const auto &parameter : getScheduleParameters<Schedule>())
    if (schedule.*parameter.member != defaults.*parameter.member)
      printer << ", " << parameter.name << " = " << schedule.*parameter.member;
  if (schedule.fma != defaults.fma)
    printer << ", " << kFmaParameter << " = "
            << (schedule.fma ? "true" : "false");
}

template <typename Schedule>
static LogicalResult
verifyParameters(function_ref<InFlightDiagnostic()> emitError,
                 const Schedule &schedule) {
  for (const auto &parameter : getScheduleParameters<Schedule>())
    if (int64_t value = schedule.*parameter.member;
        !parameter.range.contains(value))
      return emitError() << "expected " << parameter.name << " to be "
                         << parameter.range.describe() << ", got " << value;
  return success();
}

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

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
  llvm::interleaveComma(kSchedules, error,
                        [&](const ScheduleInfo &info) { error << info.name; });
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
  ParseResult parameters = isGpuKind(kind) ? parseParameters(parser, kind, gpu)
                                           : parseParameters(parser, kind, cpu);
  if (parameters || parser.parseGreater())
    return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(), kind, cpu,
                                         gpu);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyScheduleKind(getKind());
  printParameters(printer, getCpu());
  printParameters(printer, getGpu());
  printer << ">";
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ScheduleKind kind, CpuSchedule cpu,
                                   GpuSchedule gpu) {
  // The text can hold only these parameters.
  if (!hasOnlyParametersOf(kind, cpu) || !hasOnlyParametersOf(kind, gpu))
    return emitError() << "expected defaults for all but the parameters of '"
                       << stringifyScheduleKind(kind) << "'";
  return success(succeeded(verifyParameters(emitError, cpu)) &&
                 succeeded(verifyParameters(emitError, gpu)));
}

LogicalResult BNGradDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  if (attr.getName() != ScheduleAttr::kAttrName)
    return success();
  if (!isa<ScheduleAttr>(attr.getValue()))
    return op->emitOpError()
           << "expected attribute '" << ScheduleAttr::kAttrName
           << "' to be a #bngrad.schedule, got " << attr.getValue();
  // Compare names, as the dialect does not depend on linalg.
  if (op->getName().getStringRef() != "linalg.generic")
    return op->emitOpError()
           << "expected attribute '" << ScheduleAttr::kAttrName
           << "' on a linalg.generic only";
  return success();
}
