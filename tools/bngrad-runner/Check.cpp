//===- Check.cpp - --check ------------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "PlainProgram.h"
#include "Processes.h"
#include "common/Diagnostics.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace mlir::bngrad;
using ::bngrad::Array;
using ::bngrad::ElementType;

/// The first element that is not checked because its bound overflows; the
/// exact value of an element may.
static std::optional<int64_t>
findWithoutBound(ElementType type, const ::bngrad::ReferenceResult &reference) {
  double largest = ::bngrad::largestFinite(type);
  for (auto [i, bound] : llvm::enumerate(reference.bound))
    if (!(bound <= largest) &&
        std::isfinite(::bngrad::roundTo(type, reference.value[i])))
      return i;
  return std::nullopt;
}

/// |l - r|; infinite if only one is NaN.
static double getDistance(ElementType type, const void *l, const void *r,
                          int64_t index) {
  if (type == ElementType::I64) {
    // Converted to double, adjacent integers above 2^53 are equal.
    int64_t left = static_cast<const int64_t *>(l)[index];
    int64_t right = static_cast<const int64_t *>(r)[index];
    return static_cast<double>(static_cast<uint64_t>(std::max(left, right)) -
                               static_cast<uint64_t>(std::min(left, right)));
  }
  double distance = std::fabs(::bngrad::loadAsDouble(type, l, index) -
                              ::bngrad::loadAsDouble(type, r, index));
  return std::isnan(distance) ? std::numeric_limits<double>::infinity()
                              : distance;
}

/// Compares `result` with `expected` bit by bit.
static ::bngrad::CheckSummary compareExactly(const Array &result,
                                             const Array &expected) {
  ::bngrad::CheckSummary summary;
  const char *l = result.data.data(), *r = expected.data.data();
  size_t size = ::bngrad::byteSize(result.type);
  for (int64_t i = 0, e = result.numElements(); i < e; ++i) {
    if (std::memcmp(l + i * size, r + i * size, size) == 0)
      continue;
    summary.ok = false;
    summary.maxError =
        std::max(summary.maxError, getDistance(result.type, l, r, i));
  }
  return summary;
}

/// Reduces the expected whole array to its part.
static LogicalResult takePart(Expectation &expectation,
                              const ::bngrad::ArrayPart &part) {
  Array &whole = expectation.value;
  Array taken;
  std::string error;
  if (!::bngrad::allocateArray(whole.type, part.shape, taken, error))
    return reportError("--check: " + error);
  size_t size = ::bngrad::byteSize(whole.type);
  auto reference = std::make_shared<::bngrad::ReferenceResult>();
  ::bngrad::visitRuns(
      whole.shape, part, [&](int64_t from, int64_t to, int64_t length) {
        std::memcpy(taken.data.data() + to * size,
                    whole.data.data() + from * size, length * size);
        if (!expectation.reference)
          return;
        auto append = [&](std::vector<double> &to,
                          const std::vector<double> &values) {
          to.insert(to.end(), values.begin() + from,
                    values.begin() + from + length);
        };
        append(reference->value, expectation.reference->value);
        append(reference->bound, expectation.reference->bound);
      });
  whole = std::move(taken);
  if (expectation.reference)
    expectation.reference = std::move(reference);
  return success();
}

LogicalResult mlir::bngrad::checkResults(Program &program,
                                         MutableArrayRef<Array> arguments,
                                         MutableArrayRef<Array> results,
                                         ArrayRef<::bngrad::ArrayPart> parts) {
  FailureOr<std::vector<Expectation>> expectations =
      evaluatePlainly(program, arguments);
  if (failed(expectations))
    return failure();
  for (auto [i, part] : llvm::enumerate(parts))
    if (failed(takePart((*expectations)[i], part)))
      return failure();
  for (auto [i, expectation] : llvm::enumerate(*expectations)) {
    if (!expectation.reference)
      continue;
    if (auto index = findWithoutBound(results[i].type, *expectation.reference))
      return reportError(expectation.location + ": result " + Twine(i) +
                         ": expected a bound that can be derived, got one "
                         "that overflows at element " +
                         Twine(*index));
  }

  bool ok = true;
  // Print whole lines, as processes may share a terminal.
  std::string text;
  llvm::raw_string_ostream lines(text);
  for (auto [i, expectation] : llvm::enumerate(*expectations)) {
    const Array &result = results[i];
    ::bngrad::CheckSummary summary =
        expectation.reference
            ? ::bngrad::checkResult(result.type, result.data.data(),
                                    *expectation.reference)
            : compareExactly(result, expectation.value);
    if (Processes::isShared())
      lines << "rank " << Processes::getRank() << ": ";
    lines << "result " << i << " " << expectation.name << " max_error "
          << llvm::format("%.3g", summary.maxError) << " bound "
          << llvm::format("%.3g", summary.bound)
          << (summary.ok ? " ok" : " FAILED") << "\n";
    ok &= summary.ok;
  }
  llvm::outs() << text;
  llvm::outs().flush();
  return success(ok);
}
