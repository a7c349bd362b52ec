//===- Prepare.cpp - kernels that are found before a call -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python asks while it lowers a program whether there is a kernel, and lowers
// the formulas otherwise. A kernel that has to be compiled is compiled then.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string_view>

using namespace bngrad;
using namespace bngrad::jax;

namespace bngrad::jax {
/// A row-major tensor; `dtype` is a type's name, such as "bf16".
struct NamedTensor {
  const char *name;
  const char *dtype;
  int rank;
  const int64_t *sizes;
};

/// A problem, for Python's ctypes.
struct Request {
  const char *op;
  int isCuda;
  int device; // of CUDA
  double epsilon;
  int isGlobal;
  int isInvStd;
  int numFeatureDims;
  const int64_t *featureDims;
  int numTensors;
  const NamedTensor *tensors;
};
} // namespace bngrad::jax

/// The index of `name` in the names of `infos`; their number if there is none.
template <typename Infos>
static int findName(const Infos &infos, std::string_view name) {
  auto found =
      std::find_if(std::begin(infos), std::end(infos),
                   [&](const auto &info) { return info.name == name; });
  return static_cast<int>(found - std::begin(infos));
}

static bool readType(std::string_view name, bngradDtype_t &dtype) {
  static constexpr struct {
    std::string_view name;
    bngradDtype_t dtype;
  } kTypes[] = {{"f16", BNGRAD_DTYPE_F16},
                {"bf16", BNGRAD_DTYPE_BF16},
                {"f32", BNGRAD_DTYPE_F32},
                {"f64", BNGRAD_DTYPE_F64},
                {"bool", BNGRAD_DTYPE_BOOL}};
  for (const auto &type : kTypes)
    if (type.name == name) {
      dtype = type.dtype;
      return true;
    }
  return false;
}

/// False if Python and this library do not know the same names.
static bool read(const Request &request, Problem &problem) {
  int op = findName(mlir::bngrad::kOps, request.op);
  if (op == std::size(mlir::bngrad::kOps) || request.numFeatureDims < 1 ||
      request.numFeatureDims > BNGRAD_MAX_FEATURE_DIMS)
    return false;
  problem.op = static_cast<OpKind>(op);
  problem.isCuda = request.isCuda;
  problem.device = request.device;
  OpOptions &options = problem.options;
  options.struct_size = sizeof(bngradBatchNormBackwardOptions_t);
  options.epsilon = request.epsilon;
  options.statistics =
      request.isGlobal ? BNGRAD_STATISTICS_GLOBAL : BNGRAD_STATISTICS_BATCH;
  options.statistic =
      request.isInvStd ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.num_feature_dims = request.numFeatureDims;
  std::copy_n(request.featureDims, request.numFeatureDims,
              options.feature_dims);
  for (int i = 0; i < request.numTensors; ++i) {
    const NamedTensor &tensor = request.tensors[i];
    int slot = findName(mlir::bngrad::kRoles, tensor.name);
    if (slot == kNumOperands || tensor.rank > BNGRAD_MAX_RANK ||
        !readType(tensor.dtype, problem.shapes[slot].dtype))
      return false;
    problem.has[slot] = true;
    problem.shapes[slot].rank = tensor.rank;
    problem.shapes[slot].sizes = tensor.sizes;
  }
  return true;
}

/// Returns 1 if the C library computes the problem, 0 if it has no kernel and
/// cannot compile one, 2 if it cannot use the device, and otherwise -1 with the
/// error in `text`.
extern "C" __attribute__((visibility("default"))) int
bngradJaxPrepare(const Request *request, char *text, size_t size) {
  try {
    Problem problem = {};
    if (!read(*request, problem)) {
      std::snprintf(text, size, "unknown problem");
      return -1;
    }
    std::shared_ptr<const Plan> plan;
    bngradStatus_t status = Plan::find(problem, plan);
    if (status == BNGRAD_SUCCESS)
      return 1;
    if (status == BNGRAD_COMPILER_NOT_FOUND || status == BNGRAD_INTERNAL_ERROR)
      return 0;
    if (status == BNGRAD_DEVICE_NOT_SUPPORTED)
      return 2;
    std::snprintf(text, size, "%s", bngradGetLastError());
  } catch (const std::bad_alloc &) {
    std::snprintf(text, size, "out of memory");
  }
  return -1;
}
