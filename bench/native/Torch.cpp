//===- Torch.cpp - PyTorch ------------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls `native_batch_norm_backward` of libtorch_cpu, which needs neither
// Python nor a GPU. PyTorch cannot write its results to given outputs. Variant
// 0 allocates as PyTorch does; variant 1 reuses the same buffers, which
// excludes page faults from the time.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <torch/version.h>

namespace {

/// Keeps freed memory for the next allocation of the same size.
class KeepingAllocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0)
      return {nullptr, c10::Device(c10::kCPU)};
    auto found = kept.find(bytes);
    void *memory;
    if (found != kept.end()) {
      memory = found->second;
      kept.erase(found);
    } else {
      // The alignment of the benchmark's data.
      size_t alignment = bytes < (2 << 20) ? 64 : 2 << 20;
      size_t rounded = (bytes + alignment - 1) / alignment * alignment;
      memory = std::aligned_alloc(alignment, rounded);
      if (alignment > 64)
        madvise(memory, rounded, MADV_HUGEPAGE);
    }
    sizes[memory] = bytes;
    return {memory, memory, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void *to, const void *from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  void drop() {
    for (auto &[bytes, memory] : kept) {
      sizes.erase(memory);
      std::free(memory);
    }
    kept.clear();
  }

  static KeepingAllocator &get() {
    static auto *instance = new KeepingAllocator;
    return *instance;
  }

private:
  static void release(void *memory) {
    get().kept.emplace(get().sizes[memory], memory);
  }

  std::multimap<size_t, void *> kept;
  std::map<void *, size_t> sizes;
};

struct State {
  const Problem *problem;
  bool keep;
  at::Tensor gradOutput, input, scale, mean, invStd;

  std::tuple<at::Tensor, at::Tensor, at::Tensor> compute() {
    return at::native_batch_norm_backward(gradOutput, input, scale, {}, {},
                                          mean, invStd, /*train=*/true,
                                          problem->epsilon, {true, true, true});
  }
};

} // namespace

static at::Tensor wrapData(const Problem &p, const void *data) {
  std::vector<int64_t> sizes{p.images, p.channels};
  std::vector<int64_t> strides;
  if (p.rank == 4)
    sizes.push_back(p.height);
  if (p.rank > 2)
    sizes.push_back(p.width);
  int64_t c = p.channels, h = p.height, w = p.width;
  if (p.rank == 2)
    strides = {c, 1};
  else if (p.rank == 3)
    strides = p.channelsLast ? std::vector<int64_t>{w * c, 1, c}
                             : std::vector<int64_t>{c * w, w, 1};
  else
    strides = p.channelsLast ? std::vector<int64_t>{h * w * c, 1, w * c, c}
                             : std::vector<int64_t>{c * h * w, h * w, w, 1};
  at::ScalarType type = p.elementType == int(ElementType::F32) ? at::kFloat
                        : p.elementType == int(ElementType::BF16)
                            ? at::kBFloat16
                            : at::kHalf;
  return at::from_blob(const_cast<void *>(data), sizes, strides, type);
}

static void *create(const Problem &p, bool keep) {
  at::set_num_threads(p.threads);
  c10::InferenceMode guard;
  auto wrap = [&](const float *data) {
    return at::from_blob(const_cast<float *>(data), {p.channels}, at::kFloat);
  };
  auto *state = new State{&p,
                          keep,
                          wrapData(p, p.gradOutput),
                          wrapData(p, p.input),
                          wrap(p.scale),
                          wrap(p.mean),
                          wrap(p.variance).clone()};
  auto *invStd = state->invStd.mutable_data_ptr<float>();
  for (int64_t c = 0; c < p.channels; ++c)
    invStd[c] = 1 / std::sqrt(double(p.variance[c]) + p.epsilon);
  return state;
}

void *peerCreate(const Problem *problem, int32_t variant, char *error,
                 int64_t size) {
  return createOrExplain([&] { return create(*problem, variant == 1); }, error,
                         size);
}

void peerRun(void *state) {
  auto *s = static_cast<State *>(state);
  c10::InferenceMode guard;
  if (!s->keep) {
    s->compute();
    return;
  }
  c10::Allocator *before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&KeepingAllocator::get(), 100);
  s->compute();
  c10::SetCPUAllocator(before, 100);
}

void peerRunInto(void *state) {
  auto *s = static_cast<State *>(state);
  c10::InferenceMode guard;
  const Problem &p = *s->problem;
  auto [gradInput, gradScale, gradOffset] = s->compute();
  wrapData(p, p.gradInput).copy_(gradInput);
  at::from_blob(p.gradScale, {p.channels}, at::kFloat).copy_(gradScale);
  at::from_blob(p.gradOffset, {p.channels}, at::kFloat).copy_(gradOffset);
}

void peerDestroy(void *state) {
  delete static_cast<State *>(state);
  KeepingAllocator::get().drop();
}

void peerVersion(char *text, int64_t size) {
  std::snprintf(text, size, "%s threads=OpenMP", TORCH_VERSION);
}
