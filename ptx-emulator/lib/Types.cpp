//===- Types.cpp - the scalar types of PTX ----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Types.h"

namespace ptx {

namespace {

struct TypeName {
  std::string_view name;
  Type type;
  uint8_t bytes;
};

} // namespace

static constexpr TypeName kTypes[] = {
    {"pred", Type::Pred, 0},   {"b8", Type::B8, 1},
    {"b16", Type::B16, 2},     {"b32", Type::B32, 4},
    {"b64", Type::B64, 8},     {"b128", Type::B128, 16},
    {"u8", Type::U8, 1},       {"u16", Type::U16, 2},
    {"u32", Type::U32, 4},     {"u64", Type::U64, 8},
    {"s8", Type::S8, 1},       {"s16", Type::S16, 2},
    {"s32", Type::S32, 4},     {"s64", Type::S64, 8},
    {"u16x2", Type::U16x2, 4}, {"s16x2", Type::S16x2, 4},
    {"f16", Type::F16, 2},     {"f16x2", Type::F16x2, 4},
    {"bf16", Type::BF16, 2},   {"bf16x2", Type::BF16x2, 4},
    {"tf32", Type::TF32, 4},   {"f32", Type::F32, 4},
    {"f32x2", Type::F32x2, 8}, {"f64", Type::F64, 8},
};

Type parseType(std::string_view text) {
  for (const TypeName &entry : kTypes)
    if (entry.name == text)
      return entry.type;
  return Type::None;
}

unsigned byteWidth(Type type) {
  for (const TypeName &entry : kTypes)
    if (entry.type == type)
      return entry.bytes;
  return 0;
}

bool isSigned(Type type) { return type >= Type::S8 && type <= Type::S64; }

bool isFloat(Type type) { return type >= Type::F16; }

bool isInteger(Type type) {
  return type >= Type::B8 && type <= Type::S64 && type != Type::B128;
}

Dim3 delinearize(uint64_t index, Dim3 extents) {
  Dim3 result;
  result.x = index % extents.x;
  result.y = index / extents.x % extents.y;
  result.z = index / extents.x / extents.y;
  return result;
}

} // namespace ptx
