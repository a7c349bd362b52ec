//===- Shadow.cpp - last accesses of each byte ------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include <algorithm>
#include <cstring>

namespace ptx {

void Shadow::resize(uint64_t bytes) {
  pages.clear();
  pages.resize((bytes >> kPageShift) + 1);
}

Shadow::Page &Shadow::pageFor(uint64_t offset, uint32_t bytes) {
  Page &page = pages[offset >> kPageShift];
  uint64_t pageBytes = uint64_t(1) << kPageShift;
  if (page.epoch != epoch) {
    page.epoch = epoch;
    if (!page.cells)
      page.cells.reset(new Cell[pageBytes >> page.shift]);
    std::memset(page.cells.get(), 0, (pageBytes >> page.shift) * sizeof(Cell));
  }
  uint8_t shift = page.shift;
  while ((offset | bytes) & ((uint64_t(1) << shift) - 1))
    --shift;
  if (shift != page.shift) {
    unsigned copies = 1u << (page.shift - shift);
    std::unique_ptr<Cell[]> cells(new Cell[pageBytes >> shift]);
    for (uint64_t i = 0; i < pageBytes >> shift; ++i)
      cells[i] = page.cells[i / copies];
    page.cells = std::move(cells);
    page.shift = shift;
  }
  return page;
}

template <typename Fn>
bool Shadow::forEachCell(uint64_t offset, uint32_t bytes, Fn fn) {
  while (bytes != 0) {
    uint64_t inPage = offset & ((uint64_t(1) << kPageShift) - 1);
    uint32_t count = std::min<uint64_t>(bytes, (1u << kPageShift) - inPage);
    Page &page = pageFor(offset, count);
    Cell *cell = &page.cells[inPage >> page.shift];
    Cell *end = cell + (count >> page.shift);
    for (; cell != end; ++cell)
      if (!fn(*cell))
        return false;
    offset += count;
    bytes -= count;
  }
  return true;
}

inline uint32_t Shadow::timeOf(const Actor &actor) {
  return actor.order->clockOf(actor.index) | uint32_t(actor.scope)
                                                 << kScopeShift;
}

inline bool Shadow::conflicts(uint32_t id, uint32_t time, const Actor &actor) {
  if (time == 0)
    return false;
  Scope scope = Scope(time >> kScopeShift);
  const Order &order = *actor.order;
  if (actor.scope != Scope::None && scope != Scope::None &&
      order.partyOf(order.idOf(actor.index), actor.scope)
          .sees(order.partyOf(id, scope)))
    return false;
  return !order.happenedBefore(id, clockOf(time), actor.index);
}

bool Shadow::read(uint64_t offset, uint32_t bytes, const Actor &actor,
                  Conflict &conflict) {
  uint32_t id = actor.order->idOf(actor.index);
  uint32_t time = timeOf(actor);
  return forEachCell(offset, bytes, [&](Cell &cell) {
    if (conflicts(cell.writer, cell.writeTime, actor)) {
      conflict = {cell.writer, true, cell.writeTime >> kScopeShift != 0};
      return false;
    }
    // Strong accesses of a thread do not hide its earlier weak read.
    Actor plain = {actor.order, actor.index, Scope::None};
    if (cell.reader != id && conflicts(cell.reader, cell.readTime, plain)) {
      cell.farReader = id;
      cell.farReadTime = time;
      return true;
    }
    cell.reader = id;
    cell.readTime = time;
    return true;
  });
}

bool Shadow::write(uint64_t offset, uint32_t bytes, const Actor &actor,
                   uint8_t width, bool isEqual, Conflict &conflict) {
  uint32_t id = actor.order->idOf(actor.index);
  uint32_t time = timeOf(actor);
  return forEachCell(offset, bytes, [&](Cell &cell) {
    bool isExcused = isEqual && width != 0 && cell.writeWidth == width;
    if (!isExcused && conflicts(cell.writer, cell.writeTime, actor)) {
      conflict = {cell.writer, true, cell.writeTime >> kScopeShift != 0};
      return false;
    }
    if (conflicts(cell.reader, cell.readTime, actor)) {
      conflict = {cell.reader, false, cell.readTime >> kScopeShift != 0};
      return false;
    }
    if (conflicts(cell.farReader, cell.farReadTime, actor)) {
      conflict = {cell.farReader, false, cell.farReadTime >> kScopeShift != 0};
      return false;
    }
    cell.writer = id;
    cell.writeTime = time;
    cell.writeWidth = width;
    cell.isFenced = false;
    return true;
  });
}

void Shadow::overwrite(uint64_t offset, uint32_t bytes, const Actor &actor,
                       bool isFenced) {
  uint32_t id = actor.order->idOf(actor.index);
  uint32_t time = timeOf(actor);
  forEachCell(offset, bytes, [&](Cell &cell) {
    cell.writer = id;
    cell.writeTime = time;
    cell.writeWidth = 0;
    cell.isFenced = isFenced;
    return true;
  });
}

std::vector<Shadow::Accessed> Shadow::getAccessed() const {
  std::vector<Accessed> parts;
  for (uint64_t i = 0; i < pages.size(); ++i) {
    const Page &page = pages[i];
    if (page.epoch != epoch)
      continue;
    uint64_t bytes = uint64_t(1) << page.shift;
    for (uint64_t j = 0; j < uint64_t(1) << (kPageShift - page.shift); ++j) {
      const Cell &cell = page.cells[j];
      Accessed part = {(i << kPageShift) + j * bytes, bytes,
                       cell.readTime != 0 || cell.farReadTime != 0,
                       cell.writeTime != 0};
      Accessed *last = parts.empty() ? nullptr : &parts.back();
      if (last && last->offset + last->bytes == part.offset &&
          last->isRead == part.isRead && last->isWritten == part.isWritten)
        last->bytes += bytes;
      else if (part.isRead || part.isWritten)
        parts.push_back(part);
    }
  }
  return parts;
}

bool Shadow::isFenced(uint64_t offset, uint32_t bytes, const Actor &actor,
                      ProxySpace space, Conflict &conflict) {
  const Order &order = *actor.order;
  return forEachCell(offset, bytes, [&](Cell &cell) {
    uint32_t clock = clockOf(cell.writeTime);
    if (cell.writeTime == 0 || cell.isFenced ||
        !order.happenedBefore(cell.writer, clock, actor.index) ||
        order.isFenced(cell.writer, clock, actor.index, space))
      return true;
    conflict = {cell.writer, true, cell.writeTime >> kScopeShift != 0};
    return false;
  });
}

} // namespace ptx
