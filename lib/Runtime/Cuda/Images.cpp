//===- Images.cpp - the image of a module for a device ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Images.h"

#include <tuple>

namespace bngrad::cuda {

std::optional<Chip> parseChip(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  if (name.substr(0, kPrefix.size()) != kPrefix)
    return std::nullopt;
  name.remove_prefix(kPrefix.size());

  Chip chip;
  if (!name.empty() && (name.back() == 'a' || name.back() == 'f')) {
    chip.suffix = name.back();
    name.remove_suffix(1);
  }
  // The last digit is the minor version.
  if (name.size() < 2 || name.size() > 3)
    return std::nullopt;
  int number = 0;
  for (char c : name) {
    if (c < '0' || c > '9')
      return std::nullopt;
    number = number * 10 + (c - '0');
  }
  chip.capability = {number / 10, number % 10};
  return chip;
}

Line printChip(Chip chip) {
  Line name("sm_", chip.capability.major, chip.capability.minor);
  if (chip.suffix)
    name.append(chip.suffix);
  return name;
}

/// Whether a device of `capability` can load `image`.
static bool fits(const Image &image, Capability capability) {
  if (!image.chip)
    return true;
  Capability chip = image.chip->capability;
  if (image.chip->suffix == 'a')
    return chip.major == capability.major && chip.minor == capability.minor;
  if (chip.major == capability.major)
    return chip.minor <= capability.minor;
  return image.isPtx && !image.chip->suffix && chip.major < capability.major;
}

/// Orders images that fit: the better one compares greater.
static std::tuple<bool, int, int, int> preference(const Image &image) {
  Chip chip = image.chip.value_or(Chip());
  int exactness = chip.suffix == 'a' ? 2 : chip.suffix == 'f' ? 1 : 0;
  return {!image.isPtx, chip.capability.major, chip.capability.minor,
          exactness};
}

const Image *chooseImage(const std::vector<Image> &images,
                         Capability capability) {
  const Image *best = nullptr;
  for (const Image &image : images)
    if (fits(image, capability) &&
        (!best || preference(image) > preference(*best)))
      best = &image;
  return best;
}

} // namespace bngrad::cuda
