//===- OneDNN.cpp - oneDNN, versions 2 and 3 ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once per version of oneDNN, against that version's headers. All
// outputs are preallocated.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

using namespace dnnl;

namespace {

struct State {
  engine cpu{engine::kind::cpu, 0};
  stream queue{cpu};
  primitive gradient;
  std::unordered_map<int, memory> arguments;
};

} // namespace

/// Always four dimensions: version 2 has fast code for (N, C, 1, W) and
/// (N, C, 1, 1), but not for (N, C, W) and (N, C).
static memory::desc describeData(const Problem &p) {
  memory::data_type type =
      p.elementType == int(ElementType::F32)    ? memory::data_type::f32
      : p.elementType == int(ElementType::BF16) ? memory::data_type::bf16
                                                : memory::data_type::f16;
  return {{p.images, p.channels, p.height, p.width},
          type,
          p.channelsLast ? memory::format_tag::nhwc : memory::format_tag::nchw};
}

static void *create(const Problem &p) {
  auto *state = new State;
  engine &cpu = state->cpu;
  memory::desc data = describeData(p);
  memory::desc perChannel{
      {p.channels}, memory::data_type::f32, memory::format_tag::a};
  auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  float epsilon = p.epsilon;
#if DNNL_VERSION_MAJOR >= 3
  batch_normalization_forward::primitive_desc forward(
      cpu, prop_kind::forward_training, data, data, epsilon, flags);
  batch_normalization_backward::primitive_desc backward(
      cpu, prop_kind::backward, data, data, data, epsilon, flags, forward);
#else
  batch_normalization_forward::primitive_desc forward(
      {prop_kind::forward_training, data, epsilon, flags}, cpu);
  batch_normalization_backward::primitive_desc backward(
      {prop_kind::backward, data, data, epsilon, flags}, cpu, forward);
#endif
  state->gradient = batch_normalization_backward(backward);
  auto add = [&](int name, const memory::desc &desc, const void *address) {
    state->arguments.emplace(name,
                             memory(desc, cpu, const_cast<void *>(address)));
  };
  add(DNNL_ARG_SRC, data, p.input);
  add(DNNL_ARG_DIFF_DST, data, p.gradOutput);
  add(DNNL_ARG_DIFF_SRC, data, p.gradInput);
  add(DNNL_ARG_MEAN, perChannel, p.mean);
  add(DNNL_ARG_VARIANCE, perChannel, p.variance);
  add(DNNL_ARG_SCALE, perChannel, p.scale);
  // Version 2 requires a shift, although no result depends on it.
  add(DNNL_ARG_SHIFT, perChannel, p.scale);
  add(DNNL_ARG_DIFF_SCALE, perChannel, p.gradScale);
  add(DNNL_ARG_DIFF_SHIFT, perChannel, p.gradOffset);
  return state;
}

void *peerCreate(const Problem *problem, int32_t, char *error, int64_t size) {
  return createOrExplain([&] { return create(*problem); }, error, size);
}

void peerRun(void *state) {
  auto *s = static_cast<State *>(state);
  s->gradient.execute(s->queue, s->arguments);
  s->queue.wait();
}

void peerRunInto(void *state) { peerRun(state); }

void peerDestroy(void *state) { delete static_cast<State *>(state); }

void peerVersion(char *text, int64_t size) {
  const dnnl_version_t *version = dnnl_version();
  unsigned runtime = version->cpu_runtime;
  const char *threads = runtime == DNNL_RUNTIME_OMP    ? "OpenMP"
                        : runtime == DNNL_RUNTIME_TBB  ? "TBB"
                        : runtime == DNNL_RUNTIME_SYCL ? "SYCL"
                                                       : "other";
  std::snprintf(text, size, "%d.%d.%d threads=%s", version->major,
                version->minor, version->patch, threads);
}
