//===- CudaChip.cpp - what schedules depend on of a GPU -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CudaChip.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::bngrad;

static constexpr CudaChip kChips[] = {
    {"sm_75", 75, 72, 64 << 10, 80},      {"sm_80", 80, 108, 163 << 10, 80},
    {"sm_86", 86, 84, 99 << 10, 80},      {"sm_87", 87, 16, 163 << 10, 80},
    {"sm_89", 89, 142, 99 << 10, 80},     {"sm_90", 90, 132, 227 << 10, 80},
    {"sm_90a", 90, 132, 227 << 10, 80},   {"sm_100", 100, 148, 227 << 10, 86},
    {"sm_100a", 100, 148, 227 << 10, 86}, {"sm_103", 103, 148, 227 << 10, 88},
    {"sm_120", 120, 170, 99 << 10, 87},   {"sm_121", 121, 48, 99 << 10, 88},
};

ArrayRef<CudaChip> CudaChip::getAll() { return kChips; }

CudaChip CudaChip::getCommon(ArrayRef<const CudaChip *> chips) {
  CudaChip common = **llvm::min_element(
      chips, [](auto *a, auto *b) { return a->capability < b->capability; });
  for (const CudaChip *chip : chips)
    common.sharedBytes = std::min(common.sharedBytes, chip->sharedBytes);
  return common;
}

const CudaChip *CudaChip::find(StringRef name) {
  const CudaChip *chip = llvm::find_if(
      kChips, [&](const CudaChip &known) { return known.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

FailureOr<SmallVector<const CudaChip *>> CudaChip::parse(StringRef names,
                                                         std::string &reason) {
  SmallVector<StringRef> parts;
  names.split(parts, ',');
  SmallVector<const CudaChip *> chips;
  for (StringRef part : parts) {
    const CudaChip *chip = find(part.trim());
    if (!chip) {
      llvm::raw_string_ostream os(reason);
      os << "expected chip to be some of ";
      llvm::interleaveComma(kChips, os,
                            [&](const CudaChip &known) { os << known.name; });
      os << ", got '" << part << "'";
      return failure();
    }
    if (!llvm::is_contained(chips, chip))
      chips.push_back(chip);
  }
  return chips;
}
