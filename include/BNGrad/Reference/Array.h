//===- Array.h - dense row-major arrays -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_REFERENCE_ARRAY_H
#define BNGRAD_REFERENCE_ARRAY_H

#include "BNGrad/Dialect/Alignment.h"
#include "BNGrad/Runtime/ElementType.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bngrad {

/// Owned bytes, aligned and uninitialized: results of hundreds of megabytes are
/// common, and filling them with zeros would touch every page once more than
/// needed. Move-only for the same reason.
class AlignedBuffer {
public:
  /// In bytes.
  static constexpr size_t kAlignment = mlir::bngrad::kBufferAlignment;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer &&other) noexcept
      : bytes(std::exchange(other.bytes, nullptr)),
        numBytes(std::exchange(other.numBytes, 0)) {}
  AlignedBuffer &operator=(AlignedBuffer &&other) noexcept {
    std::swap(bytes, other.bytes);
    std::swap(numBytes, other.numBytes);
    return *this;
  }
  ~AlignedBuffer() { release(); }

  /// Replaces the contents by `size` bytes of indeterminate value. Afterwards
  /// `data()` is not null, even for `size` 0: null means "absent" elsewhere.
  ///
  /// Units:  `size` in bytes.
  /// Errors: false, and an empty buffer, if there is not enough memory.
  [[nodiscard]] bool allocate(size_t size) {
    release();
    // operator new is avoided, as its handler may end the process.
    size_t lines = size / kAlignment + 1;
    bytes =
        static_cast<char *>(std::aligned_alloc(kAlignment, lines * kAlignment));
    numBytes = bytes ? size : 0;
    return bytes != nullptr;
  }

  /// Aligned to `kAlignment`; null before the first `allocate`.
  char *data() { return bytes; }
  const char *data() const { return bytes; }
  /// In bytes.
  size_t size() const { return numBytes; }

private:
  void release() {
    std::free(bytes);
    bytes = nullptr;
    numBytes = 0;
  }

  char *bytes = nullptr;
  size_t numBytes = 0;
};

/// A dense row-major array.
///
/// Shapes: rank 0 (one element) and extents of 0 are allowed.
struct Array {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  AlignedBuffer data;

  /// Shapes: `shape` has passed `computeByteSize`, so nothing overflows.
  int64_t numElements() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
};

/// Size of a dense array, in bytes.
///
/// Shapes: any list of numbers, so that it can check untrusted input.
/// Errors: nullopt if an extent is negative or if the product of the extents
///         other than 0 does not fit: row-major strides must be representable
///         even when the array is empty.
inline std::optional<int64_t>
computeByteSize(ElementType type, const std::vector<int64_t> &shape) {
  int64_t size = static_cast<int64_t>(byteSize(type));
  bool isEmpty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return std::nullopt;
    if (extent == 0)
      isEmpty = true;
    else if (size > INT64_MAX / extent)
      return std::nullopt;
    else
      size *= extent;
  }
  return isEmpty ? 0 : size;
}

/// Makes `array` an uninitialized array of that type and shape.
///
/// Errors: false, an unchanged `array`, and one line in `error` if the shape is
///         invalid or memory runs out.
[[nodiscard]] bool allocateArray(ElementType type,
                                 const std::vector<int64_t> &shape,
                                 Array &array, std::string &error);

} // namespace bngrad

#endif // BNGRAD_REFERENCE_ARRAY_H
