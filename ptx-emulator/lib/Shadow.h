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

namespace ptx {

/// The actor of the current access.
struct Actor {
  const Order *order;
  uint32_t index; // in its cluster
  Scope scope;    // of an atomic or volatile access; None for others
};

/// An earlier access that conflicts with the current one.
struct Conflict {
  uint32_t id;
  bool wrote;
  bool isStrong; // atomic or volatile
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
  /// `width`: bytes of an element, 0 if the access has none. `isEqual`: memory
  /// already has the value, so that earlier writes of elements of the same
  /// width do not conflict.
  bool write(uint64_t offset, uint32_t bytes, const Actor &actor, uint8_t width,
             bool isEqual, Conflict &conflict);

  /// Makes the actor the last writer, without a check. `isFenced`: the
  /// asynchronous proxy knows the bytes.
  void overwrite(uint64_t offset, uint32_t bytes, const Actor &actor,
                 bool isFenced);

  /// Adjacent bytes that were accessed alike since the last forget().
  struct Accessed {
    uint64_t offset, bytes;
    bool isRead, isWritten;
  };
  std::vector<Accessed> getAccessed() const;

  /// Whether a proxy fence orders the threads' writes that precede `actor`.
  bool isFenced(uint64_t offset, uint32_t bytes, const Actor &actor,
                ProxySpace space, Conflict &conflict);

private:
  // The upper bits of a time are the scope; 0: no access.
  struct Cell {
    uint32_t writer, writeTime;
    uint32_t reader, readTime;
    uint32_t farReader, farReadTime; // concurrent with `reader`
    uint8_t writeWidth;              // of an element
    bool isFenced;                   // written by the asynchronous proxy
  };
  struct Page {
    std::unique_ptr<Cell[]> cells;
    uint64_t epoch = 0;
    uint8_t shift = 2;
  };
  static constexpr unsigned kScopeShift = 30;
  static constexpr unsigned kPageShift = 12;

  Page &pageFor(uint64_t offset, uint32_t bytes);
  template <typename Fn>
  bool forEachCell(uint64_t offset, uint32_t bytes, Fn fn);
  static uint32_t timeOf(const Actor &actor);
  static uint32_t clockOf(uint32_t time) {
    return time & ((1u << kScopeShift) - 1);
  }
  static bool conflicts(uint32_t id, uint32_t time, const Actor &actor);

  std::vector<Page> pages;
  uint64_t epoch = 1;
};

} // namespace ptx

#endif // PTX_EMULATOR_LIB_SHADOW_H
