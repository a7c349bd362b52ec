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
enum class ElementType { F16, BF16, F32, F64, I1, I8, I16, I32, I64 };

inline constexpr ElementType kElementTypes[] = {
    ElementType::F16, ElementType::BF16, ElementType::F32,
    ElementType::F64, ElementType::I1,   ElementType::I8,
    ElementType::I16, ElementType::I32,  ElementType::I64};

/// Size of one element, in bytes.
size_t byteSize(ElementType type);

/// The name MLIR prints, such as "bf16" or "i64".
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

/// Element `index` of `data` as a double: exact, except that an I64 above 2^53
/// is rounded to nearest. Integers other than I1 are signed.
///
/// Shapes: `data` holds more than `index` elements; it need not be aligned.
/// Units:  `index` in elements.
double loadAsDouble(ElementType type, const void *data, int64_t index);

/// Stores `value` as element `index` of `data`, rounded once to nearest even,
/// directly from the double (a detour through float would round twice).
/// Subnormals and the sign of zero are kept, overflow gives infinity, and a NaN
/// stays a (quiet) NaN. I1 stores `value != 0`. Other integers truncate toward
/// zero, clamp to their range, and convert NaN to 0.
///
/// Shapes: `data` holds more than `index` elements; it need not be aligned.
/// Units:  `index` in elements.
/// Source: IEEE 754-2019, 4.3.1 (roundTiesToEven) and 7.4 (overflow).
void storeRounded(ElementType type, void *data, int64_t index, double value);

/// The result of `storeRounded` followed by `loadAsDouble`.
double roundTo(ElementType type, double value);

/// The next number of `type` above or below `value`. Infinity follows the
/// largest finite number, and the two zeros count as one number.
///
/// Errors: `type` must be a float type and `value` one of its numbers
///         (asserted).
double nextNumber(ElementType type, double value, bool upwards);

} // namespace bngrad

#endif // BNGRAD_RUNTIME_ELEMENTTYPE_H
