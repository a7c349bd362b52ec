//===- Ready.cpp - the C library with its ready kernels -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

#include "BNGrad/Runtime/Runtime.h"

#include <algorithm>
#include <vector>

namespace {
struct State {
  const Problem *problem;
  bngradHandle_t handle = nullptr;
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  std::vector<char> workspace;
};
} // namespace

static bngradStatus_t create(State &s) {
  const Problem &p = *s.problem;
  constexpr bngradDtype_t kTypes[] = {BNGRAD_DTYPE_F32, BNGRAD_DTYPE_BF16,
                                      BNGRAD_DTYPE_F16};
  const int64_t shape[] = {p.images, p.channels, p.height, p.width};
  const int64_t inner = p.spatial();
  const int64_t rows[] = {p.channels * inner, inner, p.width, 1};
  const int64_t last[] = {p.channels * inner, 1, p.width * p.channels,
                          p.channels};
  bngradTensorDescriptor_t data = nullptr, vector = nullptr;
  bngradStatus_t status = bngradCreateTensorDescriptor(
      &data, kTypes[p.elementType], 4, shape, p.channelsLast ? last : rows);
  if (!status)
    status = bngradCreateTensorDescriptor(&vector, BNGRAD_DTYPE_F32, 1,
                                          &p.channels, nullptr);
  if (!status)
    status = bngradCreateHandle(&s.handle, BNGRAD_DEVICE_CPU, 0);
  bngradBatchNormBackwardOptions_t options = {};
  options.struct_size = sizeof(options);
  options.epsilon = p.epsilon;
  if (!status)
    status = bngradCreateBatchNormBackwardDescriptor(
        s.handle, &s.descriptor, &options, data, vector, vector, data, data,
        vector, vector, vector, nullptr);
  size_t size = 0;
  if (!status)
    status = bngradGetBatchNormBackwardWorkspaceSize(s.descriptor, &size);
  s.workspace.resize(size);
  bngradDestroyTensorDescriptor(data);
  bngradDestroyTensorDescriptor(vector);
  return status;
}

void *peerCreate(const Problem *problem, int32_t, char *error, int64_t size) {
  auto *s = new State{problem, nullptr, nullptr, {}};
  if (create(*s) == BNGRAD_SUCCESS)
    return s;
  std::snprintf(error, size, "%s", bngradGetLastError());
  peerDestroy(s);
  return nullptr;
}

void peerRun(void *state) {
  auto &s = *static_cast<State *>(state);
  const Problem &p = *s.problem;
  bngradBatchNormBackward(s.descriptor, s.workspace.data(), s.workspace.size(),
                          p.gradInput, p.gradScale, p.gradOffset, p.gradOutput,
                          p.input, p.scale, p.mean, p.variance, nullptr,
                          nullptr);
}

void peerRunInto(void *state) { peerRun(state); }

void peerDestroy(void *state) {
  auto *s = static_cast<State *>(state);
  bngradDestroyBatchNormBackwardDescriptor(s->descriptor);
  bngradDestroyHandle(s->handle);
  delete s;
}

void peerVersion(char *text, int64_t size) {
  std::snprintf(text, size, "%s", bngradVersion());
}
