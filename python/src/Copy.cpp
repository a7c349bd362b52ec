//===- Copy.cpp - copies and conversions of arrays ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Array.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace bngrad;
using python::Array;
using python::Dtype;

namespace {
/// A 16-bit float type with `kFraction` bits of fraction and `kExponent` bits
/// of exponent.
template <int kExponent, int kFraction> struct Half {
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;

  static double load(uint16_t bits) {
    int exponent = (bits >> kFraction) & ((1 << kExponent) - 1);
    int fraction = bits & ((1 << kFraction) - 1);
    double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == (1 << kExponent) - 1)
      return fraction == 0 ? sign * HUGE_VAL : std::nan("");
    if (exponent != 0)
      fraction += 1 << kFraction;
    return sign *
           std::ldexp(fraction, std::max(exponent, 1) - kBias - kFraction);
  }

  static uint16_t store(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    uint16_t infinity = ((1 << kExponent) - 1) << kFraction;
    if (std::isnan(value))
      return sign | infinity | 1 << (kFraction - 1);
    value = std::abs(value);
    if (std::isinf(value))
      return sign | infinity;
    int exponent = 1 - kBias; // of 0 and of subnormals
    if (value != 0)
      exponent = std::max(std::ilogb(value), exponent);
    // At most 2^(kFraction + 1); a carry increments the exponent.
    auto digits = static_cast<int64_t>(
        std::nearbyint(std::ldexp(value, kFraction - exponent)));
    int64_t bits = digits + (int64_t(exponent + kBias - 1) << kFraction);
    return sign | static_cast<uint16_t>(std::min<int64_t>(bits, infinity));
  }
};

/// How an element is stored in memory.
template <Dtype kDtype> struct Element;
template <> struct Element<Dtype::F16> {
  using Bits = uint16_t;
  static double load(Bits bits) { return Half<5, 10>::load(bits); }
  static Bits store(double value) { return Half<5, 10>::store(value); }
};
template <> struct Element<Dtype::BF16> {
  using Bits = uint16_t;
  static double load(Bits bits) { return Half<8, 7>::load(bits); }
  static Bits store(double value) { return Half<8, 7>::store(value); }
};
template <> struct Element<Dtype::F32> {
  using Bits = float;
  static double load(Bits bits) { return bits; }
  static Bits store(double value) { return static_cast<float>(value); }
};
template <> struct Element<Dtype::F64> {
  using Bits = double;
  static double load(Bits bits) { return bits; }
  static Bits store(double value) { return value; }
};

/// `count` elements that are `fromStride` and `toStride` bytes apart.
struct Row {
  const char *from;
  char *to;
  int64_t fromStride, toStride, count;
};

/// A dim of both arrays.
struct Dim {
  int64_t size, fromStride, toStride;
};
} // namespace

/// Loads an element of any alignment and byte order.
template <typename T> static T load(const char *from, bool isSwapped) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  if (isSwapped)
    std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <typename T> static void store(char *to, T value, bool isSwapped) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  if (isSwapped)
    std::reverse(bytes, bytes + sizeof(T));
  std::memcpy(to, bytes, sizeof(T));
}

template <typename T> static void copyBits(const Row &row, bool swaps) {
  for (int64_t i = 0; i < row.count; ++i)
    store(row.to + i * row.toStride,
          load<T>(row.from + i * row.fromStride, swaps), false);
}

/// Calls `function` with the Element of a float type.
template <typename Function>
static void dispatch(Dtype dtype, Function function) {
  switch (dtype) {
  case Dtype::F16:
    return function(Element<Dtype::F16>());
  case Dtype::BF16:
    return function(Element<Dtype::BF16>());
  case Dtype::F32:
    return function(Element<Dtype::F32>());
  case Dtype::F64:
    return function(Element<Dtype::F64>());
  case Dtype::Bool:
  case Dtype::I8:
  case Dtype::I16:
  case Dtype::I32:
  case Dtype::I64:
    return; // never converted
  }
}

static void convert(const Row &row, const Array &from, const Array &to) {
  dispatch(from.dtype, [&](auto source) {
    dispatch(to.dtype, [&](auto destination) {
      for (int64_t i = 0; i < row.count; ++i) {
        auto bits = load<typename decltype(source)::Bits>(
            row.from + i * row.fromStride, from.isSwapped);
        store(row.to + i * row.toStride, destination.store(source.load(bits)),
              to.isSwapped);
      }
    });
  });
}

static void copyRow(const Row &row, const Array &from, const Array &to) {
  if (from.dtype != to.dtype)
    return convert(row, from, to);
  int64_t width = python::getBytes(to.dtype);
  bool swaps = from.isSwapped != to.isSwapped;
  if (!swaps && row.fromStride == width && row.toStride == width) {
    std::memcpy(row.to, row.from, row.count * width);
    return;
  }
  switch (width) {
  case 1:
    return copyBits<uint8_t>(row, swaps);
  case 2:
    return copyBits<uint16_t>(row, swaps);
  case 4:
    return copyBits<uint32_t>(row, swaps);
  default:
    return copyBits<uint64_t>(row, swaps);
  }
}

void python::copy(const Array &from, const Array &to) {
  if (getNumElements(to) == 0)
    return;
  // Dims in the order of the destination's memory, joined if both allow it.
  int order[BNGRAD_MAX_RANK];
  findOrder(to, order);
  Dim dims[BNGRAD_MAX_RANK] = {{1, 0, 0}};
  int count = 0;
  for (int i = 0; i < to.rank; ++i) {
    Dim dim = {to.shape[order[i]], from.strides[order[i]],
               to.strides[order[i]]};
    if (dim.size == 1)
      continue;
    Dim *last = count > 0 ? &dims[count - 1] : nullptr;
    if (last && last->fromStride == dim.size * dim.fromStride &&
        last->toStride == dim.size * dim.toStride)
      *last = {last->size * dim.size, dim.fromStride, dim.toStride};
    else
      dims[count++] = dim;
  }
  Dim inner = dims[std::max(count - 1, 0)];
  Row row = {from.data, to.data, inner.fromStride, inner.toStride, inner.size};
  int64_t indices[BNGRAD_MAX_RANK] = {};
  for (;;) {
    copyRow(row, from, to);
    int i = count - 2;
    for (; i >= 0; --i) {
      row.from += dims[i].fromStride;
      row.to += dims[i].toStride;
      if (++indices[i] < dims[i].size)
        break;
      row.from -= dims[i].size * dims[i].fromStride;
      row.to -= dims[i].size * dims[i].toStride;
      indices[i] = 0;
    }
    if (i < 0)
      return;
  }
}
