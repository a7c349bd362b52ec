//===- Arithmetic.h - instructions of both integers and floats --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last modifier of `add` and similar instructions selects the decode
// function, in decodeArithmetic().
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_INSTRUCTIONS_ARITHMETIC_H
#define PTX_EMULATOR_LIB_INSTRUCTIONS_ARITHMETIC_H

#include "Lanes.h"

namespace ptx {

bool decodeIntegerAdd(Decoder &decoder, Inst &inst);
bool decodeIntegerSub(Decoder &decoder, Inst &inst);
bool decodeIntegerMul(Decoder &decoder, Inst &inst);
bool decodeIntegerMad(Decoder &decoder, Inst &inst);
bool decodeIntegerMin(Decoder &decoder, Inst &inst);
bool decodeIntegerMax(Decoder &decoder, Inst &inst);
bool decodeIntegerDiv(Decoder &decoder, Inst &inst);
bool decodeIntegerNeg(Decoder &decoder, Inst &inst);
bool decodeIntegerAbs(Decoder &decoder, Inst &inst);

enum class FloatOp : uint8_t { Add, Sub, Mul, Fma, Min, Max, Neg, Abs };

/// f16, bf16 and their pairs (Half.cpp).
bool decodeHalf(Decoder &decoder, Inst &inst, FloatOp op);
/// ex2 and tanh of the same types.
bool decodeHalfFunction(Decoder &decoder, Inst &inst, bool isTanh);

} // namespace ptx

#endif // PTX_EMULATOR_LIB_INSTRUCTIONS_ARITHMETIC_H
