//===- Arguments.cpp - the values of --arg --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "common/Diagnostics.h"

#include "BNGrad/Compiler/Interface.h"
#include "BNGrad/Runtime/Npy.h"

#include <cmath>

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

namespace {
/// `random:SEED[:LO:HI][@D0xD1x...]`
struct RandomSpec {
  uint64_t seed = 0;
  std::optional<std::pair<double, double>> range;
  std::optional<std::vector<int64_t>> shape;
};
} // namespace

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape)) {
    text += i ? ", " : "";
    text += ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  }
  return text + "]";
}

/// Parses the text after `random:`.
static std::optional<RandomSpec> parseRandomSpec(StringRef text) {
  RandomSpec spec;
  auto [values, shape] = text.split('@');
  if (text.contains('@')) {
    spec.shape.emplace();
    SmallVector<StringRef> sizes;
    // `@` alone is the shape of a tensor of rank 0.
    if (!shape.empty())
      shape.split(sizes, 'x');
    for (StringRef size : sizes) {
      int64_t value;
      if (size.getAsInteger(10, value) || value < 0)
        return std::nullopt;
      spec.shape->push_back(value);
    }
  }
  SmallVector<StringRef> fields;
  values.split(fields, ':');
  if (fields[0].getAsInteger(10, spec.seed))
    return std::nullopt;
  if (fields.size() == 1)
    return spec;
  double low, high;
  if (fields.size() != 3 || fields[1].getAsDouble(low) ||
      fields[2].getAsDouble(high) || !std::isfinite(low) ||
      !std::isfinite(high) || !(low < high))
    return std::nullopt;
  spec.range = {low, high};
  return spec;
}

/// SplitMix64 (S. Vigna, public domain): a bijection that leaves no pattern in
/// consecutive inputs.
static uint64_t mixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static void fillRandom(Array &array, uint64_t seed, double low, double high) {
  int64_t count = array.numElements();
  uint64_t key = mixBits(seed);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = mixBits(key ^ mixBits(i));
    if (array.type == ElementType::I1) {
      array.data.data()[i] = static_cast<char>(bits >> 63);
      continue;
    }
    // 53 random bits in [0, 1). Rounding may leave [low, high).
    double unit = static_cast<double>(bits >> 11) * 0x1p-53;
    double span = high - low;
    double exact = std::isfinite(span) ? low + span * unit
                                       : low * (1 - unit) + high * unit;
    double value = ::bngrad::roundTo(array.type, exact);
    if (value < low)
      value = ::bngrad::nextNumber(array.type, value, /*upwards=*/true);
    else if (value >= high)
      value = ::bngrad::nextNumber(array.type, value, /*upwards=*/false);
    ::bngrad::storeRounded(array.type, array.data.data(), i, value);
  }
}

/// True if a number of `type` lies in [low, high).
static bool hasNumber(ElementType type, double low, double high) {
  double first = ::bngrad::roundTo(type, low);
  if (first < low)
    first = ::bngrad::nextNumber(type, first, /*upwards=*/true);
  return first < high;
}

/// True for an error that the next argument would have, too.
static bool isOutOfMemory(StringRef error) {
  return error.contains("out of memory");
}

/// Sets `isEnd` where no further argument is worth a try.
static FailureOr<Array> makeArgument(Program &program, unsigned i,
                                     StringRef text, bool &isEnd) {
  const ArrayType &type = program.getArgumentTypes()[i];
  auto fail = [&](const Twine &what) {
    return reportError("argument " + Twine(i) + " (" + text + "): " + what);
  };
  auto fits = [&](ArrayRef<int64_t> shape) {
    return succeeded(verifyCompatibleShape(type.shape, shape));
  };
  Array array;
  std::string error;
  StringRef spec = text;
  if (text.empty())
    return reportError("argument " + Twine(i) +
                       ": expected PATH.npy or random:..., got ''");
  if (!spec.consume_front("random:")) {
    if (!::bngrad::readNpy(text.str(), array, error)) {
      isEnd = isOutOfMemory(error);
      return reportError("argument " + Twine(i) + ": " + error);
    }
    if (array.type != type.elementType)
      return fail(Twine("expected element type ") +
                  ::bngrad::name(type.elementType) + ", got " +
                  ::bngrad::name(array.type));
    if (!fits(array.shape))
      return fail("expected shape " + printShape(type.shape) + ", got " +
                  printShape(array.shape));
    return array;
  }

  std::optional<RandomSpec> random = parseRandomSpec(spec);
  if (!random)
    return fail("expected random:SEED[:LO:HI][@D0xD1x...] with LO < HI");
  if (type.elementType == ElementType::I64)
    return fail("expected a .npy file for element type i64, got random values");
  if (!random->shape && llvm::is_contained(type.shape, ShapedType::kDynamic))
    return fail("expected @D0xD1x... for shape " + printShape(type.shape) +
                ", got none");
  if (random->shape && !fits(*random->shape))
    return fail("expected shape " + printShape(type.shape) + ", got " +
                printShape(*random->shape));
  if (!allocateArray(type.elementType,
                     random->shape ? *random->shape : type.shape, array,
                     error)) {
    isEnd = isOutOfMemory(error);
    return fail(error);
  }
  bool isStatistic = program.getRole(i) == ArgumentRole::Statistic;
  auto [low, high] = random->range.value_or(isStatistic ? std::pair(0.5, 1.5)
                                                        : std::pair(-1.0, 1.0));
  if (type.elementType != ElementType::I1 &&
      !hasNumber(type.elementType, low, high))
    return fail(Twine("expected LO:HI to hold a number of type ") +
                ::bngrad::name(type.elementType) + ", got none");
  fillRandom(array, random->seed, low, high);
  return array;
}

FailureOr<std::vector<Array>>
mlir::bngrad::makeArguments(Program &program, ArrayRef<std::string> specs) {
  size_t expected = program.getArgumentTypes().size();
  if (specs.size() != expected)
    return reportError(printSymbol(program.getEntry()) + ": expected " +
                       Twine(expected) + " --arg, one per argument, got " +
                       Twine(specs.size()));
  std::vector<Array> arguments;
  bool isEnd = false;
  for (auto [i, spec] : llvm::enumerate(specs)) {
    FailureOr<Array> argument = makeArgument(program, i, spec, isEnd);
    if (succeeded(argument))
      arguments.push_back(std::move(*argument));
    if (isEnd)
      return failure();
  }
  if (arguments.size() != expected)
    return failure();
  return arguments;
}
