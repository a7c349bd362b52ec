//===- Types.h - the scalar types of PTX ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_TYPES_H
#define PTX_EMULATOR_LIB_TYPES_H

#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptx {

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  U16x2,
  S16x2,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F32x2,
  F64
};

/// The type that `text` names (without the dot), or Type::None.
Type parseType(std::string_view text);

/// The width in bytes; 0 for predicates.
unsigned byteWidth(Type type);

bool isSigned(Type type);
/// A scalar or packed floating-point type.
bool isFloat(Type type);
/// Bits, unsigned or signed; no pair.
bool isInteger(Type type);

/// Three extents or coordinates, as the driver gives them.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
  bool operator==(const Dim3 &other) const {
    return x == other.x && y == other.y && z == other.z;
  }
  bool operator!=(const Dim3 &other) const { return !(*this == other); }
};

/// The coordinates of the `index`th element, x first.
Dim3 delinearize(uint64_t index, Dim3 extents);

/// The value of type T in the low bits of a 64-bit register column entry.
template <typename T> T fromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T> uint64_t toBits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

} // namespace ptx

#endif // PTX_EMULATOR_LIB_TYPES_H
