//===- Shadow.h - last accesses of each byte --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PTX_EMULATOR_LIB_SHADOW_H
#define PTX_EMULATOR_LIB_SHADOW_H

#include "Order.h"

namespace bngrad::ptx {

/// The actor of the current access.
struct Actor {
  const Order *order;
  uint32_t index; // in its cluster
  bool strong;    // atomic or volatile
};

/// An earlier access that conflicts with the current one.
struct Conflict {
  uint32_t id;
  bool wrote;
};

/// The last write and the last reads of every byte. A page has granules of 4
/// bytes, and changes to smaller ones at the first smaller access.
class Shadow {
public:
  void resize(uint64_t bytes);
  /// Forgets all accesses; called for each launch (or each block, for shared
  /// memory) and cheap.
  void forget() { ++epoch; }

  bool read(uint64_t offset, uint32_t bytes, const Actor &actor,
            Conflict &conflict);
  bool write(uint64_t offset, uint32_t bytes, const Actor &actor,
             Conflict &conflict);

  /// Makes the actor the last writer, without a check.
  void overwrite(uint64_t offset, uint32_t bytes, const Actor &actor);

private:
  // Times of strong accesses have kStrong set; 0: no access.
  struct Cell {
    uint32_t writer, writeTime;
    uint32_t reader, readTime;
    uint32_t farReader, farReadTime; // concurrent with `reader`
  };
  struct Page {
    std::unique_ptr<Cell[]> cells;
    uint64_t epoch = 0;
    uint8_t shift = 2;
  };
  static constexpr uint32_t kStrong = 1u << 31;
  static constexpr unsigned kPageShift = 12;

  Page &pageFor(uint64_t offset, uint32_t bytes);
  template <typename Fn>
  bool forEachCell(uint64_t offset, uint32_t bytes, Fn fn);
  static bool conflicts(uint32_t id, uint32_t time, const Actor &actor);

  std::vector<Page> pages;
  uint64_t epoch = 1;
};

} // namespace bngrad::ptx

#endif // PTX_EMULATOR_LIB_SHADOW_H
