//===- Gradient.cpp - gradients for tests of the C library ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gradient.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

using namespace bngrad;
using namespace bngrad::test;

const char *const bngrad::test::kOperandNames[kNumOperands] = {
    "grad_input", "grad_scale", "grad_offset", "grad_output", "input",
    "scale",      "mean",       "statistic",   "mask"};

static ElementType toElementType(bngradDtype_t dtype) {
  switch (dtype) {
  case BNGRAD_DTYPE_F16:
    return ElementType::F16;
  case BNGRAD_DTYPE_BF16:
    return ElementType::BF16;
  case BNGRAD_DTYPE_F32:
    return ElementType::F32;
  case BNGRAD_DTYPE_F64:
    return ElementType::F64;
  case BNGRAD_DTYPE_BOOL:
    return ElementType::I1;
  }
  return ElementType::I64;
}

static const char *print(bngradDtype_t dtype) {
  return name(toElementType(dtype));
}

std::string Spec::print() const {
  std::ostringstream os;
  for (int64_t size : shape)
    os << size << "x";
  os << ::print(dataType) << " features";
  for (int dim : featureDims)
    os << " " << dim;
  os << " order";
  for (int dim : order)
    os << " " << dim;
  os << " parameters " << ::print(parameterType) << " stride "
     << parameterStride << " results " << ::print(resultType)
     << (isGlobal ? " global" : " batch")
     << (isInvStd ? " inv_std" : " variance") << (hasScale ? " scale" : "")
     << (hasMask ? " mask" : "") << " wants " << wants[0] << wants[1]
     << wants[2] << " in place of "
     << (inPlaceOf == GradInput ? "none" : kOperandNames[inPlaceOf]) << " seed "
     << seed;
  return os.str();
}

static constexpr char kFill = '\x5a';

Memory::Memory(size_t size) : bytes(size + 2 * kGuard, kFill) {}

bool Memory::isGuarded() const {
  auto isFill = [](char c) { return c == kFill; };
  return std::all_of(bytes.begin(), bytes.begin() + kGuard, isFill) &&
         std::all_of(bytes.end() - kGuard, bytes.end(), isFill);
}

void Array::create(bngradDtype_t newType, const std::vector<int64_t> &newShape,
                   const std::vector<int64_t> &newStrides) {
  isPresent = true;
  dtype = newType;
  shape = newShape;
  strides = newStrides;
  int64_t last = -1;
  for (int64_t offset : offsets())
    last = std::max(last, offset);
  memory =
      Memory(static_cast<size_t>(last + 1) * byteSize(toElementType(dtype)));
}

std::vector<int64_t> Array::offsets() const {
  std::vector<int64_t> result = {0};
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::vector<int64_t> next;
    for (int64_t offset : result)
      for (int64_t i = 0; i < shape[dim]; ++i)
        next.push_back(offset + i * strides[dim]);
    result = next;
  }
  return result;
}

void Array::store(const std::vector<double> &values) {
  std::vector<int64_t> at = offsets();
  for (size_t i = 0; i < at.size(); ++i)
    storeRounded(toElementType(dtype), memory.data(), at[i], values[i]);
}

std::vector<char> Array::loadDense() const {
  size_t width = byteSize(toElementType(dtype));
  std::vector<char> result;
  for (int64_t offset : offsets()) {
    const char *element = memory.data() + static_cast<size_t>(offset) * width;
    result.insert(result.end(), element, element + width);
  }
  return result;
}

bool Array::isGuarded() const {
  size_t width = byteSize(toElementType(dtype));
  std::vector<bool> isElement(memory.size());
  for (int64_t offset : offsets())
    std::fill_n(isElement.begin() + offset * static_cast<int64_t>(width), width,
                true);
  for (size_t i = 0; i < memory.size(); ++i)
    if (!isElement[i] && memory.data()[i] != kFill)
      return false;
  return memory.isGuarded();
}

/// The strides of dense data whose dims are in memory in `order`.
static std::vector<int64_t> makeStrides(const std::vector<int64_t> &shape,
                                        std::vector<int> order,
                                        int64_t stride = 1) {
  std::vector<int64_t> strides(shape.size());
  if (order.empty())
    for (size_t dim = 0; dim < shape.size(); ++dim)
      order.push_back(static_cast<int>(dim));
  for (size_t i = order.size(); i-- > 0;) {
    auto dim = static_cast<size_t>(order[i]);
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

Gradient::Gradient(const Spec &given) : spec(given) {
  std::vector<int64_t> channels;
  channels.reserve(spec.featureDims.size());
  for (int dim : spec.featureDims)
    channels.push_back(spec.shape[static_cast<size_t>(dim)]);
  bool isDense = spec.inPlaceOf == GradInput;
  for (Operand operand : {GradOutput, Input, GradInput, Mask}) {
    bool isPresent = operand == GradInput ? spec.wants[0] && isDense
                     : operand == Mask    ? spec.hasMask
                                          : true;
    if (isPresent)
      arrays[operand].create(
          operand == Mask ? BNGRAD_DTYPE_BOOL : spec.dataType, spec.shape,
          makeStrides(spec.shape, spec.order, spec.dataStride));
  }
  for (Operand operand : {Scale, Mean, Statistic, GradScale, GradOffset}) {
    bool isResult = operand == GradScale || operand == GradOffset;
    bool isPresent = isResult           ? spec.wants[operand]
                     : operand == Scale ? spec.hasScale
                                        : true;
    if (isPresent)
      arrays[operand].create(isResult ? spec.resultType : spec.parameterType,
                             channels,
                             makeStrides(channels, {}, spec.parameterStride));
  }

  options.struct_size = sizeof(options);
  options.epsilon = spec.isInvStd ? 0 : spec.epsilon;
  options.statistics =
      spec.isGlobal ? BNGRAD_STATISTICS_GLOBAL : BNGRAD_STATISTICS_BATCH;
  options.statistic =
      spec.isInvStd ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;
  options.asynchronous = spec.isAsynchronous;
  options.num_feature_dims = static_cast<int>(spec.featureDims.size());
  std::copy(spec.featureDims.begin(), spec.featureDims.end(),
            options.feature_dims);

  // Channels that differ in each operand.
  std::mt19937 random(spec.seed);
  auto uniform = [&] { return random() / 2147483648.0 - 1; };
  Array index; // of the channel of each element
  std::vector<int64_t> channelStrides(spec.shape.size());
  std::vector<int64_t> dense = makeStrides(channels, {});
  for (size_t i = 0; i < spec.featureDims.size(); ++i)
    channelStrides[static_cast<size_t>(spec.featureDims[i])] = dense[i];
  index.shape = spec.shape;
  index.strides = channelStrides;
  for (int64_t channel : index.offsets()) {
    double c = static_cast<double>(channel % 7);
    initial[Input].push_back(0.5 * c + (1 + 0.25 * c) * uniform());
    initial[GradOutput].push_back(uniform() + 0.125 * c + 0.25);
    initial[Mask].push_back(uniform() < 0.25);
  }
  int64_t numChannels = 1;
  for (int64_t size : channels)
    numChannels *= size;
  for (int64_t channel = 0; channel < numChannels; ++channel) {
    double c = static_cast<double>(channel % 7);
    initial[Scale].push_back(0.75 + 0.25 * c + 0.125 * uniform());
    initial[Mean].push_back(0.5 * c + 0.25 * uniform());
    initial[Statistic].push_back(0.5 + 0.25 * c + 0.125 * uniform());
  }
  reset();
  expected = computeExpected(/*ofSums=*/false);
}

/// The exact results, by the reference; `ofSums`: those for an inv_std of 1, of
/// which grad_offset and grad_scale are the sums.
ReferenceResults Gradient::computeExpected(bool ofSums) const {
  ReferenceProblem problem;
  problem.shape = spec.shape;
  problem.featureDims.assign(spec.featureDims.begin(), spec.featureDims.end());
  problem.epsilon = options.epsilon;
  problem.globalStatistics = spec.isGlobal;
  std::vector<char> bytes[kNumOperands];
  for (Operand operand : {GradOutput, Input, Scale, Mean, Statistic, Mask})
    if (arrays[operand].isPresent)
      bytes[operand] = arrays[operand].loadDense();
  bool isInvStd = spec.isInvStd;
  bngradDtype_t resultType = spec.resultType;
  if (ofSums) {
    Array ones = arrays[Statistic];
    ones.store(std::vector<double>(ones.offsets().size(), 1));
    bytes[Statistic] = ones.loadDense();
    problem.epsilon = 0;
    isInvStd = true;
    resultType = sums.dtype;
  }
  const std::pair<Operand, Role> roles[] = {
      {GradOutput, Role::GradOutput},
      {Input, Role::Input},
      {Scale, Role::Scale},
      {Mean, Role::Mean},
      {Statistic, isInvStd ? Role::InvStd : Role::Variance},
      {Mask, Role::Mask}};
  for (auto [operand, role] : roles)
    if (arrays[operand].isPresent)
      problem[role] = {toElementType(arrays[operand].dtype),
                       bytes[operand].data()};
  problem[Role::GradInput].type = toElementType(spec.dataType);
  for (Role role : {Role::GradScale, Role::GradOffset})
    problem[role].type = toElementType(resultType);
  return computeReference(problem);
}

Gradient::~Gradient() {
  for (bngradTensorDescriptor_t tensor : tensors)
    bngradDestroyTensorDescriptor(tensor);
  bngradDestroyTensorDescriptor(sumsTensor);
  for (auto *owned : {descriptor, reduce, elemt})
    bngradDestroyBatchNormBackwardDescriptor(owned);
}

/// Restores inputs and clears outputs.
void Gradient::reset() {
  for (int i = 0; i < kNumOperands; ++i) {
    Array &array = arrays[i];
    if (!array.isPresent)
      continue;
    if (i >= GradOutput)
      array.store(initial[i]);
    else
      array.store(std::vector<double>(array.offsets().size(), -77));
  }
}

void *Gradient::data(Operand operand) {
  if (operand == GradInput && spec.wants[0] && spec.inPlaceOf != GradInput)
    return arrays[spec.inPlaceOf].memory.data();
  return arrays[operand].isPresent ? arrays[operand].memory.data() : nullptr;
}

bngradStatus_t Gradient::createTensors() {
  for (int i = 0; i < kNumOperands; ++i) {
    auto operand = static_cast<Operand>(i);
    if (!data(operand) || tensors[i])
      continue;
    const Array &array =
        arrays[operand == GradInput ? spec.inPlaceOf : operand];
    if (bngradStatus_t status = bngradCreateTensorDescriptor(
            &tensors[i], array.dtype, static_cast<int>(array.shape.size()),
            array.shape.data(), array.strides.data()))
      return status;
  }
  return BNGRAD_SUCCESS;
}

bngradStatus_t Gradient::create(bngradHandle_t handle) {
  if (bngradStatus_t status = createTensors())
    return status;
  if (bngradStatus_t status = bngradCreateBatchNormBackwardDescriptor(
          handle, &descriptor, &options, tensors[GradInput], tensors[GradScale],
          tensors[GradOffset], tensors[GradOutput], tensors[Input],
          tensors[Scale], tensors[Mean], tensors[Statistic], tensors[Mask]))
    return status;
  size_t size;
  bngradStatus_t status =
      bngradGetBatchNormBackwardWorkspaceSize(descriptor, &size);
  workspace = Memory(size);
  return status;
}

bngradStatus_t Gradient::run() {
  reset();
  return bngradBatchNormBackward(
      descriptor, workspace.data(), workspace.size(), data(GradInput),
      data(GradScale), data(GradOffset), data(GradOutput), data(Input),
      data(Scale), data(Mean), data(Statistic), data(Mask), nullptr);
}

bngradStatus_t Gradient::runAsync(const bngradExecutor_t *executor,
                                  const bngradCompletion_t *done) {
  reset();
  return bngradBatchNormBackwardAsync(
      descriptor, workspace.data(), workspace.size(), data(GradInput),
      data(GradScale), data(GradOffset), data(GradOutput), data(Input),
      data(Scale), data(Mean), data(Statistic), data(Mask), nullptr, executor,
      done);
}

bngradStatus_t Gradient::createHalves(bngradHandle_t handle) {
  if (bngradStatus_t status = createTensors())
    return status;
  std::vector<int64_t> shape = arrays[Mean].shape;
  shape.insert(shape.begin(), 2);
  bool isF64 = spec.dataType == BNGRAD_DTYPE_F64 ||
               spec.parameterType == BNGRAD_DTYPE_F64;
  sums.create(isF64 ? BNGRAD_DTYPE_F64 : BNGRAD_DTYPE_F32, shape,
              makeStrides(shape, {}));
  expectedSums = computeExpected(/*ofSums=*/true);
  if (bngradStatus_t status = bngradCreateTensorDescriptor(
          &sumsTensor, sums.dtype, static_cast<int>(shape.size()), shape.data(),
          nullptr))
    return status;
  if (bngradStatus_t status = bngradCreateBatchNormBackwardReduceDescriptor(
          handle, &reduce, &options, sumsTensor, tensors[GradOutput],
          tensors[Input], tensors[Mean], tensors[Mask]))
    return status;
  if (bngradStatus_t status = bngradCreateBatchNormBackwardElemtDescriptor(
          handle, &elemt, &options, tensors[GradInput], tensors[GradOutput],
          tensors[Input], tensors[Scale], tensors[Mean], tensors[Statistic],
          sumsTensor, tensors[Mask]))
    return status;
  size_t most = 0;
  for (auto *half : {reduce, elemt}) {
    size_t size;
    if (bngradStatus_t status =
            bngradGetBatchNormBackwardWorkspaceSize(half, &size))
      return status;
    most = std::max(most, size);
  }
  workspace = Memory(most);
  return BNGRAD_SUCCESS;
}

bngradStatus_t Gradient::runHalves() {
  reset();
  sums.store(std::vector<double>(sums.offsets().size(), -77));
  if (bngradStatus_t status = bngradBatchNormBackwardReduce(
          reduce, workspace.data(), workspace.size(), sums.memory.data(),
          data(GradOutput), data(Input), data(Mean), data(Mask), nullptr))
    return status;
  int64_t count = 1;
  for (size_t dim = 0; dim < spec.shape.size(); ++dim)
    if (std::find(spec.featureDims.begin(), spec.featureDims.end(), dim) ==
        spec.featureDims.end())
      count *= spec.shape[dim];
  return bngradBatchNormBackwardElemt(
      elemt, workspace.data(), workspace.size(), data(GradInput),
      data(GradOutput), data(Input), data(Scale), data(Mean), data(Statistic),
      sums.memory.data(), &count, data(Mask), nullptr);
}

static std::string checkArray(const char *name, const Array &array,
                              const ReferenceResult &exact) {
  std::vector<char> bytes = array.loadDense();
  CheckSummary summary =
      checkResult(toElementType(array.dtype), bytes.data(), exact);
  if (summary.ok)
    return "";
  return std::string(name) + ": error " + std::to_string(summary.maxError) +
         " at " + std::to_string(summary.index) + " of bound " +
         std::to_string(summary.bound);
}

std::string Gradient::checkHalves() {
  std::string error =
      checkArray("grad_input", arrays[spec.inPlaceOf], expected.gradInput);
  // The rows: the sums of grad_output, and of that times the centered input.
  std::vector<char> bytes = sums.loadDense();
  const char *row = bytes.data();
  for (const ReferenceResult *result :
       {&expectedSums.gradOffset, &expectedSums.gradScale}) {
    CheckSummary summary = checkResult(toElementType(sums.dtype), row, *result);
    if (error.empty() && !summary.ok)
      error = "sums: error " + std::to_string(summary.maxError) + " at " +
              std::to_string(summary.index);
    row += bytes.size() / 2;
  }
  if (error.empty() && !sums.isGuarded())
    error = "sums: written out of bounds";
  return error.empty() ? checkMemory() : error;
}

std::vector<char> Gradient::results() const {
  std::vector<char> all;
  for (int i = 0; i < 3; ++i) {
    if (!spec.wants[i])
      continue;
    std::vector<char> bytes =
        arrays[i == GradInput ? spec.inPlaceOf : i].loadDense();
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

std::string Gradient::check() {
  const ReferenceResult *exact[] = {&expected.gradInput, &expected.gradScale,
                                    &expected.gradOffset};
  for (int i = 0; i < 3; ++i) {
    if (!spec.wants[i])
      continue;
    const Array &array = arrays[i == GradInput ? spec.inPlaceOf : i];
    std::string error = checkArray(kOperandNames[i], array, *exact[i]);
    if (!error.empty())
      return error;
  }
  return checkMemory();
}

/// Empty, or the first write where none may be.
std::string Gradient::checkMemory() {
  for (int i = 0; i < kNumOperands; ++i) {
    const Array &array = arrays[i];
    if (!array.isPresent)
      continue;
    if (!array.isGuarded())
      return std::string(kOperandNames[i]) + ": written out of bounds";
    bool isOutput = i < GradOutput || (i == spec.inPlaceOf && spec.wants[0]);
    Array before = array;
    if (!isOutput) {
      before.store(initial[i]);
      if (before.loadDense() != array.loadDense())
        return std::string(kOperandNames[i]) + ": changed";
    }
  }
  if (!workspace.isGuarded())
    return "workspace: written out of bounds";
  return "";
}

static int getCount(void *context) {
  return static_cast<int>(reinterpret_cast<intptr_t>(context));
}

static void runReversed(void *, int n, void (*body)(void *, int, int),
                        void *data) {
  for (int thread = n; thread-- > 0;)
    body(data, thread, n);
}

bngrad_threads_t bngrad::test::makeReversedThreads(int count) {
  return {sizeof(bngrad_threads_t),
          reinterpret_cast<void *>(static_cast<intptr_t>(count)), getCount,
          runReversed};
}
