//===- Matrix.cpp - fragments of matrices -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ldmatrix loads matrices of 8x8 elements of 16 bits. Lane 8m + r has the
// address of row r of matrix m, and lane l gets the elements 2(l % 4) and
// 2(l % 4) + 1 of row l / 4 of each; of column l / 4 with .trans.
//
//===----------------------------------------------------------------------===//

#include "MemoryModifiers.h"

namespace ptx {

static constexpr unsigned kRows = 8;
static constexpr unsigned kRowBytes = 16;

/// mode: whether the matrices are transposed.
static void executeLoadMatrix(Warp &warp, const Inst &inst, uint32_t mask) {
  if (mask != warp.existing || mask != ~0u) {
    // Missing lanes may still arrive.
    if (mask != warp.alive)
      return warp.suspend(mask, warp.pc(), Wait::Lanes, ~0u);
    return warp.report(__builtin_ctz(mask), "divergent-shuffle",
                       "expected all 32 lanes of the warp, got lanes " +
                           hex(mask));
  }
  unsigned numRows = inst.dest.count * kRows;
  const uint64_t *base = warp.in(inst.source[0]);
  if (!warp.checkSources(inst, ~uint32_t(0) >> (32 - numRows), 0, 1))
    return;
  Place rows[32];
  for (unsigned lane = 0; lane < numRows; ++lane) {
    uint64_t address = base[lane] + inst.offset;
    if (inst.space == Space::Shared)
      address &= 0xFFFFFFFF;
    if (!findPlace(warp, lane, inst.space, address, kRowBytes, kRowBytes,
                   rows[lane]))
      return;
    if (rows[lane].space != Space::Shared)
      return warp.report(lane, "out-of-bounds",
                         "expected a row in shared memory, got address " +
                             hex(address));
    if (!checkAccess(warp, lane, rows[lane], kRowBytes, AccessKind::Read,
                     Scope::None))
      return;
  }
  for (unsigned i = 0; i < inst.dest.count; ++i) {
    uint64_t *d = warp.out(inst.dest[i]);
    uint8_t undefined[32] = {};
    uint32_t affected = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      d[lane] = 0;
      for (unsigned half = 0; half < 2; ++half) {
        unsigned major = lane / 4, minor = 2 * (lane % 4) + half;
        const Place &row = rows[i * kRows + (inst.mode ? minor : major)];
        unsigned at = 2 * (inst.mode ? major : minor);
        uint16_t element = 0;
        std::memcpy(&element, row.data() + at, 2);
        d[lane] |= uint64_t(element) << (16 * half);
        for (unsigned byte = 0; byte < 2; ++byte)
          undefined[lane] |=
              uint8_t(!row.region->defined.test(row.offset + at + byte))
              << (2 * half + byte);
      }
      affected |= uint32_t(undefined[lane] != 0) << lane;
    }
    warp.define(inst.dest[i], mask, affected,
                [&](unsigned lane) { return undefined[lane]; });
  }
  countRequest(warp, rows, numRows, kRowBytes, AccessKind::Read);
}

static bool decodeLoadMatrix(Decoder &decoder, Inst &inst) {
  if (!decoder.take("sync") || !decoder.take("aligned"))
    return decoder.unknown();
  if (!decoder.take("m8n8"))
    return decoder.unsupported("expected .m8n8");
  int count = decoder.takeOneOf({"x1", "x2", "x4"});
  inst.mode = decoder.take("trans");
  inst.space = Space::Generic;
  takeMemorySpace(decoder, inst.space);
  inst.type = decoder.takeType();
  if (count < 0 || inst.type != Type::B16)
    return decoder.unknown();
  inst.handler = executeLoadMatrix;
  inst.undefinedRule = UndefinedRule::Handler;
  std::vector<SyntaxOperand> elements = decoder.elements(0);
  if (elements.size() != size_t(1) << count)
    return decoder.unsupported("expected " + std::to_string(1 << count) +
                               " elements");
  for (const SyntaxOperand &element : elements)
    if (!decoder.dest(inst, element, Type::B32))
      return false;
  return decoder.address(inst, 1) && decoder.expectOperands(2);
}

void addMatrixInstructions(DecodeTable &table) {
  table["ldmatrix"] = decodeLoadMatrix;
}

} // namespace ptx
