//===- ElementType.h - element types of arrays ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_ELEMENTTYPE_H
#define BNGRAD_RUNTIME_ELEMENTTYPE_H

#include <cstddef>
#include <cstdint>

namespace bngrad {

/// Element types of the arrays the runtime reads, writes and checks.
///
/// Units: I1 is one byte per element, 0 or 1; all others are little-endian in
///        their natural size. BF16 is the upper half of an F32.
enum class ElementType { F16, BF16, F32, F64, I1, I64 };

/// Size of one element, in bytes.
size_t byteSize(ElementType type);

/// "f16", "bf16", "f32", "f64", "i1" or "i64": the name MLIR prints.
const char *name(ElementType type);

/// True for F16, BF16, F32 and F64.
bool isFloat(ElementType type);

/// Half the distance from 1 to the next number: the relative error of rounding
/// once to nearest. 2^-11, 2^-8, 2^-24, 2^-53.
///
/// Errors: `type` must be a float type (asserted).
double unitRoundoff(ElementType type);

/// Smallest positive number. 2^-24, 2^-133, 2^-149, 2^-1074.
///
/// Errors: `type` must be a float type (asserted).
double smallestSubnormal(ElementType type);

/// Largest finite number. 65504, 0x1.fep127, FLT_MAX, DBL_MAX.
///
/// Errors: `type` must be a float type (asserted).
double largestFinite(ElementType type);

/// Element `index` of `data` as a double: exact for the floats and I1, rounded
/// to nearest for an I64 above 2^53.
///
/// Shapes: `data` holds more than `index` elements; it need not be aligned.
/// Units:  `index` in elements.
double loadAsDouble(ElementType type, const void *data, int64_t index);

/// Stores `value` as element `index` of `data`, rounded once to nearest even,
/// directly from the double (a detour through float would round twice).
/// Subnormals and the sign of zero are kept, overflow gives infinity, and a NaN
/// stays a (quiet) NaN. I1 stores `value != 0`. I64 truncates toward zero,
/// clamps to its range, and converts NaN to 0.
///
/// Shapes: `data` holds more than `index` elements; it need not be aligned.
/// Units:  `index` in elements.
/// Source: IEEE 754-2019, 4.3.1 (roundTiesToEven) and 7.4 (overflow).
void storeRounded(ElementType type, void *data, int64_t index, double value);

/// `value` as `storeRounded` followed by `loadAsDouble` gives it.
double roundTo(ElementType type, double value);

/// The number of `type` that follows `value` upwards, or downwards: infinity
/// after the largest finite one, and the zeros count as one number.
///
/// Errors: `type` must be a float type and `value` one of its numbers
///         (asserted).
double nextNumber(ElementType type, double value, bool upwards);

} // namespace bngrad

#endif // BNGRAD_RUNTIME_ELEMENTTYPE_H
