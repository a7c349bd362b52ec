//===- ReluTest.cpp - batch norms with a ReLU in the C library ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "Specs.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <sstream>

using namespace bngrad;
using test::Array;

namespace {
/// The tensors of a forward pass and its gradient.
enum StepPlace {
  kOutput,
  kMean,
  kVariance,
  kInvStd,
  kRunningMean,
  kRunningVariance,
  kInput,
  kScale,
  kOffset,
  kResidual,
  kGradInput,
  kGradScale,
  kGradOffset,
  kGradResidual,
  kGradOutput,
  kNumPlaces
};

struct ReluSpec {
  test::ForwardLayout layout = {{4, 3, 50}, {1}, {}};
  bngradDtype_t type = BNGRAD_DTYPE_F32;
  /// Of all parameters.
  bngradDtype_t parameterType = BNGRAD_DTYPE_F32;
  bool hasResidual = false, hasScale = true, hasOffset = true;
  bool hasRunning = false, isGlobal = false, isUnaligned = false;
  /// grad_input, grad_scale, grad_offset, grad_residual.
  bool wants[4] = {true, true, true, true};
  /// Output replaces input or residual, grad_input output or grad_output, and
  /// grad_residual grad_output.
  bool isInPlace = false;
  unsigned seed = 1;

  std::string print() const {
    std::ostringstream os;
    for (int64_t size : layout.shape)
      os << size << "x";
    os << type << " parameters " << parameterType << " order";
    for (int dim : layout.order)
      os << " " << dim;
    os << (hasResidual ? " residual" : "") << (hasScale ? " scale" : "")
       << (hasOffset ? " offset" : "") << (hasRunning ? " running" : "")
       << (isGlobal ? " global" : "") << (isUnaligned ? " unaligned" : "")
       << (isInPlace ? " in place" : "") << " wants " << wants[0] << wants[1]
       << wants[2] << wants[3] << " seed " << seed;
    return os.str();
  }
};

/// A forward pass with a ReLU and its gradient, on a CPU or on the emulator.
class Step {
public:
  Step(const ReluSpec &spec, bngradHandle_t handle, bool isOnDevice);
  ~Step();
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;

  /// Computes both.
  bngradStatus_t run(void *stream);
  /// Empty, or the first error.
  std::string check();

  bngradStatus_t status = BNGRAD_SUCCESS;
  bngradBatchNormTrainingDescriptor_t training = nullptr;
  bngradBatchNormBackwardDescriptor_t backward = nullptr;
  Array arrays[kNumPlaces];

private:
  void create(bngradHandle_t handle);
  void setData();
  /// The place where the result of `place` is.
  StepPlace getStorage(StepPlace place) const;
  void *getData(StepPlace place);
  void copyToDevice(void *stream);
  void copyToHost(void *stream);
  std::string checkOutput();
  std::string checkGradients();
  std::vector<char> load(StepPlace place) const {
    return initial[place].empty() ? arrays[place].loadDense() : initial[place];
  }

  ReluSpec spec;
  bool isOnDevice;
  int64_t numElements = 1;
  bngradTensorDescriptor_t tensors[kNumPlaces] = {};
  /// The dense elements of operands.
  std::vector<char> initial[kNumPlaces];
  /// Output after the forward pass.
  std::vector<char> output;
  char *device[kNumPlaces] = {};
  std::vector<void *> allocated;
  std::vector<char> workspace;
};
} // namespace

static ElementType toElement(bngradDtype_t dtype) {
  const ElementType types[] = {ElementType::F16, ElementType::BF16,
                               ElementType::F32, ElementType::F64};
  return types[dtype];
}

static bool isStepData(int place) {
  return place == kOutput || place == kInput || place == kResidual ||
         place == kGradInput || place == kGradResidual || place == kGradOutput;
}

static std::vector<int64_t> makeDenseStrides(const std::vector<int64_t> &shape,
                                             const std::vector<int> &order) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    size_t dim = order.empty() ? i : static_cast<size_t>(order[i]);
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

Step::Step(const ReluSpec &given, bngradHandle_t handle, bool isOnDevice)
    : spec(given), isOnDevice(isOnDevice) {
  std::vector<int64_t> channels;
  channels.reserve(spec.layout.featureDims.size());
  for (int dim : spec.layout.featureDims)
    channels.push_back(spec.layout.shape[static_cast<size_t>(dim)]);
  for (int64_t size : spec.layout.shape)
    numElements *= size;
  auto isPresent = [&](int place) {
    switch (place) {
    case kRunningMean:
    case kRunningVariance:
      return spec.hasRunning;
    case kScale:
      return spec.hasScale;
    case kOffset:
      return spec.hasOffset;
    case kResidual:
      return spec.hasResidual;
    case kGradInput:
    case kGradScale:
    case kGradOffset:
    case kGradResidual:
      return spec.wants[place - kGradInput];
    default:
      return true;
    }
  };
  for (int i = 0; i < kNumPlaces; ++i) {
    if (!isPresent(i))
      continue;
    if (isStepData(i))
      arrays[i].create(spec.type, spec.layout.shape,
                       makeDenseStrides(spec.layout.shape, spec.layout.order));
    else
      arrays[i].create(spec.parameterType, channels,
                       makeDenseStrides(channels, {}));
  }
  setData();
  create(handle);
}

Step::~Step() {
  for (bngradTensorDescriptor_t tensor : tensors)
    bngradDestroyTensorDescriptor(tensor);
  bngradDestroyBatchNormTrainingDescriptor(training);
  bngradDestroyBatchNormBackwardDescriptor(backward);
  for (void *pointer : allocated)
    mgpuMemFree(pointer, nullptr);
}

void Step::setData() {
  std::mt19937 random(spec.seed);
  auto uniform = [&] { return random() / 2147483648.0 - 1; };
  Array index; // of the channel of each element
  index.shape = spec.layout.shape;
  index.strides.assign(index.shape.size(), 0);
  std::vector<int64_t> dense = makeDenseStrides(arrays[kMean].shape, {});
  for (size_t i = 0; i < dense.size(); ++i)
    index.strides[static_cast<size_t>(spec.layout.featureDims[i])] = dense[i];
  std::vector<double> values[kNumPlaces];
  for (int64_t channel : index.offsets()) {
    double c = static_cast<double>(channel % 5);
    // Many outputs are close to 0, on either side: for a scale of 1 and an
    // offset of 0, most elements of such a channel are close to its mean.
    bool isClose = channel % 3 == 1 && random() % 8 != 0;
    values[kInput].push_back(0.5 * c + (isClose ? 0x1p-9 : 1.0) * uniform());
    values[kResidual].push_back(0.5 * uniform());
    values[kGradOutput].push_back(uniform() + 0.125 * c + 0.25);
  }
  for (size_t i = 0, count = arrays[kMean].offsets().size(); i < count; ++i) {
    double c = static_cast<double>(i % 5);
    bool isClose = i % 3 == 1;
    values[kScale].push_back(isClose ? 1 : 0.75 + 0.25 * c);
    values[kOffset].push_back(isClose ? 0 : 0.25 * uniform() - 0.125 * c);
    values[kRunningMean].push_back(uniform());
    values[kRunningVariance].push_back(1 + 0.25 * c);
  }
  for (int i = 0; i < kNumPlaces; ++i) {
    if (!arrays[i].isPresent)
      continue;
    if (values[i].empty()) {
      arrays[i].store(std::vector<double>(arrays[i].offsets().size(), -77));
      continue;
    }
    arrays[i].store(values[i]);
    initial[i] = arrays[i].loadDense();
  }
}

void Step::create(bngradHandle_t handle) {
  for (int i = 0; i < kNumPlaces && !status; ++i)
    if (const Array &array = arrays[i]; array.isPresent)
      status = bngradCreateTensorDescriptor(
          &tensors[i], array.dtype, static_cast<int>(array.shape.size()),
          array.shape.data(), array.strides.data());
  auto setShared = [&](auto &options) {
    options.struct_size = sizeof(options);
    options.num_feature_dims = static_cast<int>(spec.layout.featureDims.size());
    std::copy(spec.layout.featureDims.begin(), spec.layout.featureDims.end(),
              options.feature_dims);
  };
  bngradBatchNormTrainingOptions_t forward = {};
  setShared(forward);
  forward.epsilon = 1e-3;
  forward.momentum = 0.25;
  bngradBatchNormBackwardOptions_t gradient = {};
  setShared(gradient);
  gradient.statistic = BNGRAD_STATISTIC_INV_STD;
  gradient.statistics =
      spec.isGlobal ? BNGRAD_STATISTICS_GLOBAL : BNGRAD_STATISTICS_BATCH;
  auto *const *t = tensors;
  if (!status)
    status = bngradCreateBatchNormTrainingReluDescriptor(
        handle, &training, &forward, t[kOutput], t[kMean], t[kVariance],
        t[kInvStd], t[kRunningMean], t[kRunningVariance], t[kInput], t[kScale],
        t[kOffset], t[kResidual]);
  if (!status)
    status = bngradCreateBatchNormBackwardReluDescriptor(
        handle, &backward, &gradient, t[kGradInput], t[kGradScale],
        t[kGradOffset], t[kGradResidual], t[kGradOutput], t[kInput], t[kScale],
        t[kMean], t[kInvStd], t[kOutput]);
  if (status || !isOnDevice)
    return;
  for (int i = 0; i < kNumPlaces; ++i)
    if (arrays[i].isPresent) {
      size_t shift = spec.isUnaligned ? byteSize(toElement(spec.type)) : 0;
      if (!isStepData(i))
        shift = 0;
      allocated.push_back(
          mgpuMemAlloc(arrays[i].memory.size() + shift, nullptr, 0));
      device[i] = static_cast<char *>(allocated.back()) + shift;
    }
}

StepPlace Step::getStorage(StepPlace place) const {
  if (!spec.isInPlace)
    return place;
  // The gradient needs the input again.
  if (place == kOutput && spec.hasResidual)
    return kResidual;
  if (place == kGradInput && !spec.wants[3])
    return spec.hasResidual ? getStorage(kOutput) : kGradOutput;
  return place == kGradResidual ? kGradOutput : place;
}

void *Step::getData(StepPlace place) {
  if (!arrays[place].isPresent)
    return nullptr;
  StepPlace storage = getStorage(place);
  return isOnDevice ? device[storage] : arrays[storage].memory.data();
}

void Step::copyToDevice(void *stream) {
  for (int i = 0; i < kNumPlaces; ++i)
    if (device[i])
      mgpuMemcpy(device[i], arrays[i].memory.data(), arrays[i].memory.size(),
                 stream);
}

void Step::copyToHost(void *stream) {
  for (int i = 0; i < kNumPlaces; ++i)
    if (device[i])
      mgpuMemcpy(arrays[i].memory.data(), device[i], arrays[i].memory.size(),
                 stream);
  if (isOnDevice)
    mgpuStreamSynchronize(stream);
}

bngradStatus_t Step::run(void *stream) {
  size_t sizes[2] = {};
  bngradGetBatchNormTrainingWorkspaceSize(training, &sizes[0]);
  bngradGetBatchNormBackwardWorkspaceSize(backward, &sizes[1]);
  size_t size = std::max(sizes[0], sizes[1]);
  void *memory;
  if (isOnDevice) {
    allocated.push_back(mgpuMemAlloc(size, nullptr, 0));
    memory = allocated.back();
  } else {
    workspace.resize(size);
    memory = workspace.data();
  }
  copyToDevice(stream);
  void *d[kNumPlaces];
  for (int i = 0; i < kNumPlaces; ++i)
    d[i] = getData(static_cast<StepPlace>(i));
  bngradStatus_t result = bngradBatchNormTrainingRelu(
      training, memory, sizes[0], d[kOutput], d[kMean], d[kVariance],
      d[kInvStd], d[kRunningMean], d[kRunningVariance], d[kInput], d[kScale],
      d[kOffset], d[kResidual], stream);
  copyToHost(stream);
  output = arrays[getStorage(kOutput)].loadDense();
  if (!result)
    result = bngradBatchNormBackwardRelu(
        backward, memory, sizes[1], d[kGradInput], d[kGradScale],
        d[kGradOffset], d[kGradResidual], d[kGradOutput], d[kInput], d[kScale],
        d[kMean], d[kInvStd], d[kOutput], stream);
  copyToHost(stream);
  return result;
}

static std::string compareTo(const char *name, bngradDtype_t dtype,
                             const char *bytes, const ReferenceResult &exact) {
  CheckSummary summary = checkResult(toElement(dtype), bytes, exact);
  if (summary.ok)
    return "";
  return std::string(name) + ": error " + std::to_string(summary.maxError) +
         " at " + std::to_string(summary.index) + " of bound " +
         std::to_string(summary.bound);
}

/// Half a unit in the last place of 1.
static double getRoundoff(bngradDtype_t dtype) {
  const double roundoffs[] = {0x1p-11, 0x1p-8, 0x1p-24, 0x1p-53};
  return roundoffs[dtype];
}

std::string Step::checkOutput() {
  ReferenceProblem problem;
  problem.shape = spec.layout.shape;
  problem.featureDims.assign(spec.layout.featureDims.begin(),
                             spec.layout.featureDims.end());
  problem.epsilon = 1e-3;
  ElementType type = toElement(spec.type);
  ElementType parameterType = toElement(spec.parameterType);
  problem[Role::Input] = {type, initial[kInput].data()};
  if (spec.hasScale)
    problem[Role::Scale] = {parameterType, initial[kScale].data()};
  if (spec.hasOffset)
    problem[Role::Offset] = {parameterType, initial[kOffset].data()};
  problem[Role::Output].type = type;
  for (Role role : {Role::Mean, Role::Variance, Role::InvStd})
    problem[role].type = parameterType;
  ReferenceTraining exact = computeReferenceTraining(problem);
  for (size_t i = 0; i < exact.output.value.size(); ++i) {
    double &value = exact.output.value[i], &bound = exact.output.bound[i];
    if (spec.hasResidual) {
      value += loadAsDouble(type, initial[kResidual].data(),
                            static_cast<int64_t>(i));
      bound += getRoundoff(spec.type) * (std::fabs(value) + bound);
    }
    // Its slope is at most 1.
    value = std::max(value, 0.0);
  }
  std::string error =
      compareTo("output", spec.type, output.data(), exact.output);
  const std::pair<StepPlace, const ReferenceResult *> statistics[] = {
      {kMean, &exact.mean},
      {kVariance, &exact.variance},
      {kInvStd, &exact.invStd}};
  for (auto [place, result] : statistics)
    if (error.empty())
      error = compareTo("statistics", spec.parameterType,
                        arrays[place].loadDense().data(), *result);
  return error;
}

std::string Step::checkGradients() {
  ElementType type = toElement(spec.type);
  ElementType parameterType = toElement(spec.parameterType);
  // grad_output where the output of the forward pass is positive.
  std::vector<char> masked = initial[kGradOutput];
  size_t width = byteSize(type);
  for (int64_t i = 0; i < numElements; ++i)
    if (loadAsDouble(type, output.data(), i) <= 0)
      std::fill_n(masked.begin() + i * static_cast<int64_t>(width), width, 0);
  if (spec.wants[3] && arrays[getStorage(kGradResidual)].loadDense() != masked)
    return "grad_residual differs from the masked grad_output";
  ReferenceProblem problem;
  problem.shape = spec.layout.shape;
  problem.featureDims.assign(spec.layout.featureDims.begin(),
                             spec.layout.featureDims.end());
  problem.globalStatistics = spec.isGlobal;
  std::vector<char> mean = arrays[kMean].loadDense();
  std::vector<char> invStd = arrays[kInvStd].loadDense();
  problem[Role::GradOutput] = {type, masked.data()};
  problem[Role::Input] = {type, initial[kInput].data()};
  if (spec.hasScale)
    problem[Role::Scale] = {parameterType, initial[kScale].data()};
  problem[Role::Mean] = {parameterType, mean.data()};
  problem[Role::InvStd] = {parameterType, invStd.data()};
  problem[Role::GradInput].type = type;
  for (Role role : {Role::GradScale, Role::GradOffset})
    problem[role].type = parameterType;
  ReferenceResults exact = computeReference(problem);
  const std::pair<StepPlace, const ReferenceResult *> results[] = {
      {kGradInput, &exact.gradInput},
      {kGradScale, &exact.gradScale},
      {kGradOffset, &exact.gradOffset}};
  std::string error;
  for (auto [place, result] : results)
    if (error.empty() && arrays[place].isPresent)
      error = compareTo("gradient", arrays[place].dtype,
                        arrays[getStorage(place)].loadDense().data(), *result);
  return error;
}

std::string Step::check() {
  std::string error = checkOutput();
  if (error.empty())
    error = checkGradients();
  for (int i = 0; i < kNumPlaces && error.empty(); ++i)
    if (arrays[i].isPresent && !arrays[i].isGuarded())
      error = "written beyond tensor " + std::to_string(i);
  return error;
}

static std::vector<ReluSpec> makeReluSpecs() {
  ReluSpec planes;
  ReluSpec rows = planes;
  rows.layout = {{3, 64, 5}, {1}, {0, 2, 1}};
  rows.type = BNGRAD_DTYPE_BF16;
  ReluSpec half = planes;
  half.layout = {{2, 3, 2000}, {1}, {}};
  half.type = BNGRAD_DTYPE_F16;
  half.hasOffset = false;
  half.hasRunning = true;
  ReluSpec wide = planes;
  wide.type = wide.parameterType = BNGRAD_DTYPE_F64;
  wide.hasScale = false;
  ReluSpec apart = planes;
  apart.layout = {{3, 4, 2, 5}, {0, 2}, {}};
  ReluSpec channel = planes;
  channel.layout = {{30, 1, 70}, {1}, {}};
  ReluSpec one = planes;
  one.layout = {{1, 4}, {1}, {}};
  ReluSpec none = planes;
  none.layout = {{0, 4}, {1}, {}};
  std::vector<ReluSpec> specs;
  for (ReluSpec spec : {planes, rows, half, wide, apart, channel, one, none})
    for (bool hasResidual : {false, true}) {
      spec.hasResidual = hasResidual;
      // Without a residual, it has no gradient.
      spec.wants[3] = hasResidual;
      specs.push_back(spec);
    }
  ReluSpec global = planes;
  global.isGlobal = true;
  specs.push_back(global);
  return specs;
}

/// All layouts, in place or not, and some sets of results. The quick suite
/// takes every third of them from `first` on.
static std::vector<ReluSpec> makeAllReluSpecs(size_t first) {
  std::vector<ReluSpec> specs = makeReluSpecs();
  ReluSpec inPlace = specs[0];
  inPlace.isInPlace = true;
  inPlace.hasResidual = true;
  specs.push_back(inPlace);
  inPlace.wants[3] = false;
  specs.push_back(inPlace);
  inPlace.hasResidual = false;
  specs.push_back(inPlace);
  ReluSpec parameters = specs[2];
  parameters.wants[0] = parameters.wants[3] = false;
  specs.push_back(parameters);
  if (test::isLongTest())
    return specs;
  std::vector<ReluSpec> some;
  for (size_t i = first; i < specs.size(); i += 3)
    some.push_back(specs[i]);
  return some;
}

TEST(Relu, Values) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  test::Handle handle;
  ASSERT_EQ(handle.status, BNGRAD_SUCCESS) << bngradGetLastError();
  for (const ReluSpec &spec : makeAllReluSpecs(0)) {
    SCOPED_TRACE(spec.print());
    Step step(spec, handle, /*isOnDevice=*/false);
    ASSERT_EQ(step.status, BNGRAD_SUCCESS) << bngradGetLastError();
    ASSERT_EQ(step.run(nullptr), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(step.check(), "");
  }
  unsetenv("BNGRAD_CACHE_DIR");
}

TEST(Relu, Emulator) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  bngradHandle_t handle = nullptr;
  ASSERT_EQ(bngradCreateHandle(&handle, BNGRAD_DEVICE_CUDA_EMULATOR, 0),
            BNGRAD_SUCCESS)
      << bngradGetLastError();
  void *stream = mgpuStreamCreate();
  std::vector<ReluSpec> specs = makeAllReluSpecs(1);
  for (size_t i = 0, count = specs.size(); i < count; i += 5) {
    specs.push_back(specs[i]);
    specs.back().isUnaligned = true;
  }
  for (const ReluSpec &spec : specs) {
    SCOPED_TRACE(spec.print());
    Step step(spec, handle, /*isOnDevice=*/true);
    ASSERT_EQ(step.status, BNGRAD_SUCCESS) << bngradGetLastError();
    ASSERT_EQ(step.run(stream), BNGRAD_SUCCESS) << bngradGetLastError();
    EXPECT_EQ(step.check(), "");
    EXPECT_EQ(bngradCudaTakeStatus(), 0);
  }
  mgpuStreamDestroy(stream);
  bngradDestroyHandle(handle);
  unsetenv("BNGRAD_CACHE_DIR");
}

TEST(Relu, Description) {
  setenv("BNGRAD_CACHE_DIR", "", 1);
  test::Handle handle;
  Step step(makeReluSpecs()[0], handle, /*isOnDevice=*/false);
  ASSERT_EQ(step.status, BNGRAD_SUCCESS) << bngradGetLastError();
  char text[BNGRAD_DESCRIPTION_SIZE];
  ASSERT_EQ(bngradDescribeBatchNormTraining(step.training, text, sizeof(text)),
            BNGRAD_SUCCESS);
  EXPECT_STREQ(text, "part=training_relu\nkernel=compiled\n"
                     "reason=it has a ReLU\n");
  ASSERT_EQ(bngradDescribeBatchNormBackward(step.backward, text, sizeof(text)),
            BNGRAD_SUCCESS);
  EXPECT_STREQ(text, "part=whole_relu\nkernel=compiled\n"
                     "reason=it has a ReLU\n");
  unsetenv("BNGRAD_CACHE_DIR");
}
