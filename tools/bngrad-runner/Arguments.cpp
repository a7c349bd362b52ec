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
#include "BNGrad/Reference/Npy.h"

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

/// The random number of an element, from its random `bits`.
static double makeRandom(ElementType type, uint64_t bits, double low,
                         double high) {
  // 53 random bits in [0, 1). Rounding may leave [low, high).
  double unit = static_cast<double>(bits >> 11) * 0x1p-53;
  double span = high - low;
  double exact =
      std::isfinite(span) ? low + span * unit : low * (1 - unit) + high * unit;
  double value = ::bngrad::roundTo(type, exact);
  if (value < low)
    return ::bngrad::nextNumber(type, value, /*upwards=*/true);
  if (value >= high)
    return ::bngrad::nextNumber(type, value, /*upwards=*/false);
  return value;
}

/// Fills `array`, which is `part` of an array of `shape`.
static void fillRandom(Array &array, const std::vector<int64_t> &shape,
                       const ::bngrad::ArrayPart &part, uint64_t seed,
                       double low, double high) {
  uint64_t key = mixBits(seed);
  ::bngrad::visitRuns(
      shape, part, [&](int64_t whole, int64_t inPart, int64_t length) {
        for (int64_t i = 0; i < length; ++i) {
          uint64_t bits = mixBits(key ^ mixBits(whole + i));
          if (array.type == ElementType::I1)
            array.data.data()[inPart + i] = static_cast<char>(bits >> 63);
          else
            ::bngrad::storeRounded(array.type, array.data.data(), inPart + i,
                                   makeRandom(array.type, bits, low, high));
        }
      });
}

/// True if a number of `type` lies in [low, high).
static bool hasNumber(ElementType type, double low, double high) {
  double first = ::bngrad::roundTo(type, low);
  if (first < low)
    first = ::bngrad::nextNumber(type, first, /*upwards=*/true);
  return first < high;
}

/// True for an error that the next argument would cause, too.
static bool isOutOfMemory(StringRef error) {
  return error.contains("out of memory");
}

namespace {
/// Makes argument number `i` from the text of its --arg.
class ArgumentMaker {
public:
  ArgumentMaker(Program &program, unsigned i, StringRef text, FindPart findPart)
      : program(program), type(program.getArgumentTypes()[i]), i(i), text(text),
        findPart(findPart) {}

  FailureOr<Array> make();

  /// Whether trying further arguments is pointless.
  bool isEnd = false;
  /// The shape of the whole argument.
  std::vector<int64_t> shape;

private:
  LogicalResult fail(const Twine &what) {
    return reportError("argument " + Twine(i) + " (" + text + "): " + what);
  }
  LogicalResult failFile(StringRef error) {
    isEnd = isOutOfMemory(error);
    return reportError("argument " + Twine(i) + ": " + error);
  }
  LogicalResult verify(ElementType elementType, ArrayRef<int64_t> given);
  LogicalResult setPart();
  FailureOr<Array> read();
  FailureOr<Array> makeRandom(StringRef spec);

  Program &program;
  const ArrayType &type;
  unsigned i;
  StringRef text;
  FindPart findPart;
  ::bngrad::ArrayPart part;
};
} // namespace

/// Checks the type and the shape of the whole argument.
LogicalResult ArgumentMaker::verify(ElementType elementType,
                                    ArrayRef<int64_t> given) {
  if (elementType != type.elementType)
    return fail(Twine("expected element type ") +
                ::bngrad::name(type.elementType) + ", got " +
                ::bngrad::name(elementType));
  if (failed(verifyCompatibleShape(type.shape, given)))
    return fail("expected shape " + printShape(type.shape) + ", got " +
                printShape(given));
  shape = given.vec();
  return success();
}

/// Sets the part of this process.
LogicalResult ArgumentMaker::setPart() {
  if (!findPart) {
    part = {std::vector<int64_t>(shape.size(), 0), shape};
    return success();
  }
  std::string error;
  FailureOr<::bngrad::ArrayPart> found = findPart(i, shape, error);
  if (failed(found))
    return fail(error);
  part = std::move(*found);
  return success();
}

FailureOr<Array> ArgumentMaker::read() {
  Array array;
  std::string error;
  if (!findPart) {
    if (!::bngrad::readNpy(text.str(), array, error))
      return failFile(error);
    if (failed(verify(array.type, array.shape)))
      return failure();
    return array;
  }
  ElementType elementType;
  std::vector<int64_t> whole;
  if (!::bngrad::readNpyHeader(text.str(), elementType, whole, error))
    return failFile(error);
  if (failed(verify(elementType, whole)) || failed(setPart()))
    return failure();
  if (!::bngrad::readNpyPart(text.str(), part, array, error))
    return failFile(error);
  return array;
}

FailureOr<Array> ArgumentMaker::makeRandom(StringRef spec) {
  std::optional<RandomSpec> random = parseRandomSpec(spec);
  if (!random)
    return fail("expected random:SEED[:LO:HI][@D0xD1x...] with LO < HI");
  if (!::bngrad::isFloat(type.elementType) &&
      type.elementType != ElementType::I1)
    return fail(Twine("expected a .npy file for element type ") +
                ::bngrad::name(type.elementType) + ", got random values");
  if (!random->shape && llvm::is_contained(type.shape, ShapedType::kDynamic))
    return fail("expected @D0xD1x... for shape " + printShape(type.shape) +
                ", got none");
  if (failed(verify(type.elementType,
                    random->shape ? *random->shape : type.shape)) ||
      failed(setPart()))
    return failure();
  Array array;
  std::string error;
  if (!allocateArray(type.elementType, part.shape, array, error)) {
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
  fillRandom(array, shape, part, random->seed, low, high);
  return array;
}

FailureOr<Array> ArgumentMaker::make() {
  if (text.empty())
    return reportError("argument " + Twine(i) +
                       ": expected PATH.npy or random:..., got ''");
  StringRef spec = text;
  return spec.consume_front("random:") ? makeRandom(spec) : read();
}

FailureOr<std::vector<Array>>
mlir::bngrad::makeArguments(Program &program, ArrayRef<std::string> specs,
                            FindPart findPart,
                            std::vector<std::vector<int64_t>> *shapes) {
  size_t expected = program.getArgumentTypes().size();
  if (specs.size() != expected)
    return reportError(printSymbol(program.getEntry()) + ": expected " +
                       Twine(expected) + " --arg, one per argument, got " +
                       Twine(specs.size()));
  std::vector<Array> arguments;
  for (auto [i, spec] : llvm::enumerate(specs)) {
    ArgumentMaker maker(program, i, spec, findPart);
    FailureOr<Array> argument = maker.make();
    if (succeeded(argument))
      arguments.push_back(std::move(*argument));
    if (maker.isEnd)
      return failure();
    if (shapes)
      shapes->push_back(std::move(maker.shape));
  }
  if (arguments.size() != expected)
    return failure();
  return arguments;
}
