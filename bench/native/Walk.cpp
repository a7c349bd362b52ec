//===- Walk.cpp - the memory accesses of a pass, without arithmetic -------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The floor of a schedule: it reads grad_output and input for the sums, reads
// them again for grad_input, and writes that, in the order of the schedule. The
// data of a fused neighbour are read beside them. What is still in a cache at
// the second reading is read from there. The schedule is the `variant` of
// peerCreate, see Walk.
//
// If grad_output is null, it is the floor of the forward pass, which reads only
// input and whose output is in the place of grad_input.
//
// grad_input has no meaning afterwards.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"
#include "Vectors.h"

#include <algorithm>
#include <omp.h>
#include <type_traits>
#include <vector>

namespace {

/// As in peers.py.
enum class Walk : int32_t { Rows = 0, Channels = 1, Tiles = 2, Split = 3 };

/// Bytes of a line, and of the data that `rows` and `split` read forward before
/// they step back; the longest row, in bytes read, for which `channels`
/// prefetches that of the next channel; elements of a segment of `split`.
constexpr int64_t kLine = 64, kStepBytes = 3 << 20,
                  kMostPrefetchedBytes = 128 << 10, kSegment = 16384;

/// A vector without numbers.
using Bits = int64_t __attribute__((vector_size(sizeof(Vector))));

struct State {
  Problem p;
  Walk walk;
  int64_t width; // bytes of an element
  bool streaming;
  /// The data that are read for the sums, and for the elements.
  std::vector<const void *> ofSums, ofElements;

  /// All data that are read or written.
  int64_t tensors() const { return ofElements.size() + 1; }
};

const char *lineOf(const void *base, int64_t byte) {
  return static_cast<const char *>(base) + byte / kLine * kLine;
}

/// Lines that bytes [begin, end) are in; arrays end with whole lines.
int64_t countLines(int64_t begin, int64_t end) {
  return (end + kLine - 1) / kLine - begin / kLine;
}

/// `count` tensors that are read in bytes from `begin` on.
template <size_t count> struct Inputs {
  const char *lines[count];

  Inputs(const std::vector<const void *> &tensors, int64_t begin) {
    for (size_t i = 0; i < count; ++i)
      lines[i] = lineOf(tensors[i], begin);
  }

  Bits load(int64_t byte) const {
    Bits bits = {};
    for (const char *line : lines)
      bits ^= Bits(loadFloats(reinterpret_cast<const float *>(line + byte)));
    return bits;
  }
};

/// Calls `body` with the number of `tensors` as a constant.
template <typename Body>
void withCount(const std::vector<const void *> &tensors, Body body) {
  switch (tensors.size()) {
  case 1:
    return body(std::integral_constant<size_t, 1>());
  case 2:
    return body(std::integral_constant<size_t, 2>());
  default:
    return body(std::integral_constant<size_t, 3>());
  }
}

/// Reads the lines of [begin, end), in bytes.
void read(const State &s, int64_t begin, int64_t end) {
  withCount(s.ofSums, [&](auto count) {
    Inputs<count> inputs(s.ofSums, begin);
    int64_t vectors = countLines(begin, end) * kLine / sizeof(Bits);
    Bits bits[4] = {};
    int64_t i = 0;
    auto add = [&](int64_t vector, int j) {
      bits[j] ^= inputs.load(vector * sizeof(Bits));
    };
    for (; i + 4 <= vectors; i += 4)
      for (int j = 0; j < 4; ++j)
        add(i + j, j);
    for (; i < vectors; ++i)
      add(i, 0);
    for (Bits &each : bits)
      asm volatile("" : : "v"(each));
  });
}

/// Reads the lines and writes those of grad_input.
void write(const State &s, int64_t begin, int64_t end) {
  withCount(s.ofElements, [&](auto count) {
    Inputs<count> inputs(s.ofElements, begin);
    auto *dx = const_cast<char *>(lineOf(s.p.gradInput, begin));
    int64_t bytes = countLines(begin, end) * kLine;
    for (int64_t i = 0; i < bytes; i += sizeof(Bits)) {
      auto bits = Vector(inputs.load(i));
      auto *to = reinterpret_cast<float *>(dx + i);
      if (s.streaming)
        streamFloats(to, bits);
      else
        storeFloats(to, bits);
    }
  });
}

int64_t shareOf(int64_t count, int64_t thread, int64_t threads) {
  return count * thread / threads;
}

/// All data, and then again from the end, in steps of `step` bytes.
void walkAll(const State &s, int64_t step, int64_t thread, int64_t threads) {
  int64_t bytes = s.p.elements() * s.width;
  int64_t begin = shareOf(bytes, thread, threads);
  int64_t end = shareOf(bytes, thread + 1, threads);
  read(s, begin, end);
#pragma omp barrier
  for (; end > begin; end -= step)
    write(s, std::max(begin, end - step), end);
}

/// Elements of a row of `tiles`, of 4 KiB.
int64_t countTileColumns(const State &s) { return s.width == 4 ? 1024 : 2048; }

/// Whether the schedule `channels` prefetches the next channel, so that it
/// reads the rows of both passes in the same order.
bool prefetchesChannels(const State &s, int64_t threads) {
  const Problem &p = s.p;
  int64_t rowBytes = s.ofElements.size() * p.spatial() * s.width;
  return s.streaming && rowBytes <= kMostPrefetchedBytes &&
         2 * threads * p.images * rowBytes <= p.cacheBytes;
}

/// `channels` at a time: their rows in all images, and then again, from the
/// last image on unless they are a tile or the next ones are prefetched.
void walkChannels(const State &s, int64_t channels, int64_t thread,
                  int64_t threads) {
  const Problem &p = s.p;
  int64_t row = p.spatial() * s.width, image = p.channels * row;
  int64_t units = (p.channels + channels - 1) / channels;
  bool isForward = s.walk == Walk::Tiles || prefetchesChannels(s, threads);
  for (int64_t unit = shareOf(units, thread, threads);
       unit < shareOf(units, thread + 1, threads); ++unit) {
    int64_t first = unit * channels * row;
    int64_t last = std::min((unit + 1) * channels, p.channels) * row;
    for (int64_t i = 0; i < p.images; ++i)
      read(s, i * image + first, i * image + last);
    for (int64_t i = 0; i < p.images; ++i) {
      int64_t of = isForward ? i : p.images - 1 - i;
      write(s, of * image + first, of * image + last);
    }
  }
}

} // namespace

void *peerCreate(const Problem *problem, int32_t variant, char *error,
                 int64_t size) {
  if (reinterpret_cast<uintptr_t>(problem->gradInput) % kLine != 0) {
    std::snprintf(error, size, "expected grad_input at a line");
    return nullptr;
  }
  auto *s = new State{*problem, Walk(variant), 0, false, {}, {}};
  s->width = ElementType(problem->elementType) == ElementType::F32 ? 4 : 2;
  for (const void *tensor :
       {problem->gradOutput, problem->input, problem->other})
    if (tensor) {
      s->ofElements.push_back(tensor);
      if (tensor != problem->other || problem->isOtherInSums)
        s->ofSums.push_back(tensor);
    }
  s->streaming =
      s->tensors() * problem->elements() * s->width > problem->cacheBytes;
  return s;
}

void peerRun(void *state) {
  const State &s = *static_cast<State *>(state);
#pragma omp parallel num_threads(s.p.threads)
  {
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    // The step of the schedule is that of all tensors.
    int64_t step = kStepBytes / s.tensors();
    switch (s.walk) {
    case Walk::Rows:
      walkAll(s, step, thread, threads);
      break;
    case Walk::Channels:
      walkChannels(s, 1, thread, threads);
      break;
    case Walk::Tiles:
      walkChannels(s, std::max<int64_t>(1, countTileColumns(s) / s.p.spatial()),
                   thread, threads);
      break;
    case Walk::Split:
      walkAll(s, step / (kSegment * s.width) * kSegment * s.width, thread,
              threads);
      break;
    }
    _mm_sfence();
  }
}

void peerRunInto(void *state) { peerRun(state); }

void peerDestroy(void *state) { delete static_cast<State *>(state); }

void peerVersion(char *text, int64_t size) {
  std::snprintf(text, size, "this repository threads=OpenMP");
}
