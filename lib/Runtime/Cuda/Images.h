//===- Images.h - the image of a module for a device ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_RUNTIME_CUDA_IMAGES_H
#define BNGRAD_RUNTIME_CUDA_IMAGES_H

#include "Context.h"

#include <optional>
#include <string_view>
#include <vector>

namespace bngrad::cuda {

/// A chip as compilers name it: sm_90, sm_90a (that chip alone), sm_100f (its
/// family).
struct Chip {
  Capability capability;
  /// 'a', 'f', or 0.
  char suffix = 0;
};

/// The chip called `name`, such as "sm_90a"; none if there is no such chip.
std::optional<Chip> parseChip(std::string_view name);

Line printChip(Chip chip);

/// An image of a module.
struct Image {
  const void *data;
  bool isPtx;
  /// For PTX.
  int optLevel;
  /// None if it fits every device.
  std::optional<Chip> chip;
};

/// The image for a device: the newest binary that runs there, else the newest
/// PTX that does; null if none fits. Among equally new images, it is the one
/// for fewer chips, and among equal ones the first.
///
/// Source: CUDA C++ Programming Guide, "Binary Compatibility", "PTX
/// Compatibility", "Family-Specific" and "Architecture-Specific Features".
const Image *chooseImage(const std::vector<Image> &images,
                         Capability capability);

} // namespace bngrad::cuda

#endif // BNGRAD_RUNTIME_CUDA_IMAGES_H
