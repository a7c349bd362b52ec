//===- Errors.h - the status of a thread ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_ERRORS_H
#define BNGRAD_RUNTIME_CUDA_ERRORS_H

#include "Driver.h"

#include <charconv>
#include <exception>
#include <new>
#include <string_view>
#include <type_traits>

namespace bngrad::cuda {

/// The status of an error that is not a CUresult.
constexpr int32_t kNoDriverCode = -1;
/// The status if host memory runs out. Compiled functions return the same.
constexpr int32_t kOutOfHostMemory = -2;

/// A line of text. It allocates nothing, as the error may be a failed
/// allocation; text that does not fit ends in `...`.
class Line {
public:
  /// Each part is text, a character, an integer or a Line.
  template <typename... Parts> explicit Line(const Parts &...parts) {
    append(parts...);
  }

  template <typename... Parts> void append(const Parts &...parts) {
    (appendPart(parts), ...);
  }

  bool empty() const { return size == 0; }
  std::string_view view() const { return {text, size}; }
  const char *c_str() const { return text; }

private:
  void appendPart(std::string_view part);
  void appendPart(char part) { appendPart(std::string_view(&part, 1)); }
  void appendPart(const Line &part) { appendPart(part.view()); }
  template <typename Integer,
            typename = std::enable_if_t<std::is_integral_v<Integer>>>
  void appendPart(Integer part) {
    char digits[24];
    const char *end = std::to_chars(digits, std::end(digits), part).ptr;
    appendPart(std::string_view(digits, size_t(end - digits)));
  }

  // Sized for the longest part, the log of the driver's assembler.
  static constexpr size_t kCapacity = 8192;
  char text[kCapacity] = "";
  size_t size = 0;
};

/// Whether the calling thread has a pending error.
bool hasError();

/// Keeps `code` as the status of the calling thread and gives the handler the
/// line `bngrad: error: <message>`; does nothing if the thread has an error.
/// Allocates nothing.
void report(int32_t code, const Line &message);

/// `result` as in `CUDA_ERROR_INVALID_VALUE (1): invalid argument`.
Line describe(const Driver &driver, CUresult result);

/// Returns the result of `function`, the body of the exported function `call`.
/// Exceptions are reported, as callers may be in C; the result is then null or
/// 0. Only a std::exception is caught: others end threads.
template <typename Function> auto guard(const char *call, Function function) {
  try {
    return function();
  } catch (const std::bad_alloc &) {
    report(kOutOfHostMemory, Line(call, ": out of host memory"));
  } catch (const std::exception &exception) {
    report(kNoDriverCode, Line(call, ": ", exception.what()));
  }
  return decltype(function())();
}

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_ERRORS_H
