//===- Forward.cpp - forward passes for tests of the C library ------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <sstream>

using namespace bngrad;
using namespace bngrad::test;

using Wide = long double;

static const char *const kPlaceNames[kNumPlaces] = {
    "output",           "mean",  "variance", "inv_std", "running_mean",
    "running_variance", "input", "offset",   "scale",   "mean",
    "statistic"};

/// Bits of the mantissa, and the exponent of the smallest number.
static std::pair<int, int> getFormat(bngradDtype_t dtype) {
  switch (dtype) {
  case BNGRAD_DTYPE_F16:
    return {11, -24};
  case BNGRAD_DTYPE_BF16:
    return {8, -133};
  case BNGRAD_DTYPE_F32:
    return {24, -149};
  default:
    return {53, -1074};
  }
}

static ElementType getElementType(bngradDtype_t dtype) {
  const ElementType types[] = {ElementType::F16, ElementType::BF16,
                               ElementType::F32, ElementType::F64};
  return types[dtype];
}

static std::vector<double> loadAll(const Array &array) {
  std::vector<char> bytes = array.loadDense();
  std::vector<double> values;
  size_t count = array.offsets().size();
  values.reserve(count);
  for (size_t i = 0; i < count; ++i)
    values.push_back(loadAsDouble(getElementType(array.dtype), bytes.data(),
                                  static_cast<int64_t>(i)));
  return values;
}

/// Strides in `order`; the innermost one is `stride`.
static std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape,
                                      std::vector<int> order, int64_t stride) {
  std::vector<int64_t> strides(shape.size());
  if (order.empty())
    for (size_t dim = 0; dim < shape.size(); ++dim)
      order.push_back(static_cast<int>(dim));
  for (size_t i = order.size(); i-- > 0;) {
    auto dim = static_cast<size_t>(order[i]);
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }
  return strides;
}

std::string ForwardSpec::print() const {
  std::ostringstream os;
  os << (isInference ? "inference " : "training ");
  for (int64_t size : layout.shape)
    os << size << "x";
  os << dataType << " features";
  for (int dim : layout.featureDims)
    os << " " << dim;
  os << " order";
  for (int dim : layout.order)
    os << " " << dim;
  os << " types " << outputType << parameterType << statisticType << runningType
     << " strides " << dataStride << parameterStride
     << (isInvStd ? " inv_std" : "") << (hasScale ? " scale" : "")
     << (hasOffset ? " offset" : "") << (hasRunning ? " running" : "")
     << (isUnbiased ? " unbiased" : "") << (isInPlace ? " in place" : "")
     << " wants " << wants[0] << wants[1] << wants[2] << wants[3] << " epsilon "
     << epsilon << " momentum " << momentum << " location " << location
     << " seed " << seed;
  return os.str();
}

Forward::Forward(const ForwardSpec &given) : spec(given) {
  const ForwardLayout &layout = spec.layout;
  std::vector<int64_t> channels;
  channels.reserve(layout.featureDims.size());
  for (int dim : layout.featureDims)
    channels.push_back(layout.shape[static_cast<size_t>(dim)]);
  auto addData = [&](Place place, bngradDtype_t dtype) {
    arrays[place].create(
        dtype, layout.shape,
        stridesOf(layout.shape, layout.order, spec.dataStride));
  };
  auto addChannels = [&](Place place, bngradDtype_t dtype, bool isPresent) {
    if (isPresent)
      arrays[place].create(dtype, channels,
                           stridesOf(channels, {}, spec.parameterStride));
  };
  addData(Data, spec.dataType);
  if (spec.isInference || spec.wants[0])
    addData(Output, spec.outputType);
  bool isTraining = !spec.isInference;
  for (Place place : {BatchMean, BatchVariance, BatchInvStd})
    addChannels(place, spec.statisticType, isTraining && spec.wants[place]);
  for (Place place : {RunningMean, RunningVariance})
    addChannels(place, spec.runningType, isTraining && spec.hasRunning);
  addChannels(GivenScale, spec.parameterType, spec.hasScale);
  addChannels(Offset, spec.parameterType, spec.hasOffset);
  for (Place place : {GivenMean, GivenStatistic})
    addChannels(place, spec.parameterType, spec.isInference);

  auto setShared = [&](auto &options) {
    options.struct_size = sizeof(options);
    options.epsilon = spec.isInvStd ? 0 : spec.epsilon;
    options.num_feature_dims = static_cast<int>(layout.featureDims.size());
    std::copy(layout.featureDims.begin(), layout.featureDims.end(),
              options.feature_dims);
  };
  setShared(trainingOptions);
  setShared(inferenceOptions);
  trainingOptions.momentum = spec.momentum;
  trainingOptions.unbiased_running_variance = spec.isUnbiased;
  inferenceOptions.statistic =
      spec.isInvStd ? BNGRAD_STATISTIC_INV_STD : BNGRAD_STATISTIC_VARIANCE;

  Array index; // of the channel of each element
  index.shape = layout.shape;
  index.strides.assign(layout.shape.size(), 0);
  std::vector<int64_t> dense = stridesOf(channels, {}, 1);
  for (size_t i = 0; i < channels.size(); ++i)
    index.strides[static_cast<size_t>(layout.featureDims[i])] = dense[i];
  channelOf = index.offsets();
  int64_t numChannels = 1;
  for (int64_t size : channels)
    numChannels *= size;
  std::mt19937 random(spec.seed);
  auto uniform = [&] { return random() / 2147483648.0 - 1; };
  for (int64_t channel : channelOf) {
    double c = static_cast<double>(channel % 7);
    // The last of several channels is constant.
    bool isConstant = channel > 0 && channel + 1 == numChannels;
    double spread = isConstant ? 0 : 1 + 0.25 * c;
    initial[Data].push_back(spec.location + 0.5 * c + spread * uniform());
  }
  Array perChannel;
  perChannel.shape = channels;
  perChannel.strides = dense;
  for (int64_t channel : perChannel.offsets()) {
    double c = static_cast<double>(channel % 7);
    for (Place place : {RunningMean, Offset, GivenMean})
      initial[place].push_back(0.5 * c + uniform());
    for (Place place : {RunningVariance, GivenScale, GivenStatistic})
      initial[place].push_back(0.75 + 0.25 * c + 0.125 * uniform());
  }
  reset();
  for (int i = 0; i < kNumPlaces; ++i)
    if (!initial[i].empty() && arrays[i].isPresent)
      initial[i] = loadAll(arrays[i]);
}

Forward::~Forward() {
  for (bngradTensorDescriptor_t tensor : tensors)
    bngradDestroyTensorDescriptor(tensor);
  bngradDestroyBatchNormTrainingDescriptor(training);
  bngradDestroyBatchNormInferenceDescriptor(inference);
}

void Forward::reset() {
  for (int i = 0; i < kNumPlaces; ++i) {
    Array &array = arrays[i];
    if (!array.isPresent)
      continue;
    std::vector<double> values = initial[i];
    // What is not computed stays NaN.
    values.resize(array.offsets().size(), std::nan(""));
    array.store(values);
  }
}

bngradStatus_t Forward::create(bngradHandle_t handle) {
  for (int i = 0; i < kNumPlaces; ++i) {
    const Array &array = arrays[i];
    if (!array.isPresent)
      continue;
    if (bngradStatus_t status = bngradCreateTensorDescriptor(
            &tensors[i], array.dtype, static_cast<int>(array.shape.size()),
            array.shape.data(), array.strides.data()))
      return status;
  }
  auto *const *t = tensors;
  if (spec.isInference)
    return bngradCreateBatchNormInferenceDescriptor(
        handle, &inference, &inferenceOptions, t[Output], t[Data],
        t[GivenScale], t[Offset], t[GivenMean], t[GivenStatistic]);
  return bngradCreateBatchNormTrainingDescriptor(
      handle, &training, &trainingOptions, t[Output], t[BatchMean],
      t[BatchVariance], t[BatchInvStd], t[RunningMean], t[RunningVariance],
      t[Data], t[GivenScale], t[Offset]);
}

char *Forward::data(Place place) {
  if (addresses[place])
    return static_cast<char *>(addresses[place]);
  if (place == Output && spec.isInPlace)
    place = Data;
  return arrays[place].isPresent ? arrays[place].memory.data() : nullptr;
}

size_t Forward::workspaceSize() const {
  size_t size = 0;
  if (spec.isInference)
    bngradGetBatchNormInferenceWorkspaceSize(inference, &size);
  else
    bngradGetBatchNormTrainingWorkspaceSize(training, &size);
  return size;
}

bngradStatus_t Forward::call(void *memory, void *stream) {
  void *d[kNumPlaces];
  for (int i = 0; i < kNumPlaces; ++i)
    d[i] = data(static_cast<Place>(i));
  size_t size = workspaceSize();
  if (spec.isInference)
    return bngradBatchNormInference(inference, memory, size, d[Output], d[Data],
                                    d[GivenScale], d[Offset], d[GivenMean],
                                    d[GivenStatistic], stream);
  return bngradBatchNormTraining(training, memory, size, d[Output],
                                 d[BatchMean], d[BatchVariance], d[BatchInvStd],
                                 d[RunningMean], d[RunningVariance], d[Data],
                                 d[GivenScale], d[Offset], stream);
}

bngradStatus_t Forward::callAsync(void *memory, void *stream,
                                  const bngradExecutor_t *executor,
                                  const bngradCompletion_t *done) {
  void *d[kNumPlaces];
  for (int i = 0; i < kNumPlaces; ++i)
    d[i] = data(static_cast<Place>(i));
  size_t size = workspaceSize();
  if (spec.isInference)
    return bngradBatchNormInferenceAsync(
        inference, memory, size, d[Output], d[Data], d[GivenScale], d[Offset],
        d[GivenMean], d[GivenStatistic], stream, executor, done);
  return bngradBatchNormTrainingAsync(
      training, memory, size, d[Output], d[BatchMean], d[BatchVariance],
      d[BatchInvStd], d[RunningMean], d[RunningVariance], d[Data],
      d[GivenScale], d[Offset], stream, executor, done);
}

bngradStatus_t Forward::run() {
  reset();
  workspace = Memory(workspaceSize());
  return call(workspace.data(), nullptr);
}

bngradStatus_t Forward::runAsync(const bngradExecutor_t *executor,
                                 const bngradCompletion_t *done) {
  reset();
  workspace = Memory(workspaceSize());
  return callAsync(workspace.data(), nullptr, executor, done);
}

std::vector<char> Forward::results() const {
  std::vector<char> bytes;
  for (const Array &array : arrays)
    if (array.isPresent)
      bytes.insert(bytes.end(), array.memory.data(),
                   array.memory.data() + array.memory.size());
  return bytes;
}

/// The exact value of a result, and how far a computed one may be from it apart
/// from its own rounding.
struct Forward::Expected {
  Wide exact, bound;
};

/// The statistics that output is computed with; root is that of A_v, and
/// relative 1 + A_v / (variance + epsilon).
struct Forward::Channel {
  Wide count = 0, mean = 0, variance = 0, invStd = 0, root = 0, relative = 1;
  bool isConstant = true;

  /// G.
  Wide growth(Wide u) const { return 4 * u * (4 + std::log2(count + 1)); }
};

std::string Forward::compare(const char *name, const Array &array,
                             const std::vector<Expected> &expected) {
  std::vector<double> values = loadAll(array);
  auto [bits, smallest] = getFormat(array.dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    auto [exact, bound] = expected[i];
    bool isRight = std::isnan(exact)
                       ? std::isnan(values[i])
                       : std::fabs(values[i] - exact) <=
                             bound +
                                 std::ldexp(std::fabs(exact) + bound, -bits) +
                                 std::ldexp(Wide(1), smallest);
    if (isRight)
      continue;
    std::ostringstream os;
    os << name << "[" << i << "] is " << values[i] << ", expected " << exact
       << " +- " << bound;
    return os.str();
  }
  return array.isGuarded() ? "" : std::string(name) + ": written beyond";
}

double Forward::get(Place place, int64_t channel, double absent) const {
  return arrays[place].isPresent ? initial[place][static_cast<size_t>(channel)]
                                 : absent;
}

Wide Forward::roundoff() const {
  bool isF64 = false;
  for (int i = Data; i < kNumPlaces; ++i)
    isF64 |= arrays[i].isPresent && arrays[i].dtype == BNGRAD_DTYPE_F64;
  return isF64 ? 0x1p-53L : 0x1p-24L;
}

/// The inverse standard deviation and what the bounds depend on.
void Forward::setStatistics(Channel &c) const {
  if (!c.isConstant)
    c.root = std::sqrt(c.variance) +
             2 * c.growth(roundoff()) * std::sqrt(c.mean * c.mean + c.variance);
  Wide shifted = c.variance + trainingOptions.epsilon;
  c.invStd = 1 / std::sqrt(shifted);
  c.relative = 1 + c.root * c.root / shifted;
}

std::vector<Forward::Channel> Forward::computeChannels() const {
  // A running mean has a value for each channel, present or not.
  std::vector<Channel> channels(initial[RunningMean].size());
  const std::vector<double> &x = initial[Data];
  std::vector<std::vector<Wide>> elements(channels.size());
  for (size_t i = 0; i < x.size(); ++i)
    elements[static_cast<size_t>(channelOf[i])].push_back(x[i]);
  for (size_t i = 0; i < channels.size(); ++i) {
    Channel &c = channels[i];
    c.count = static_cast<Wide>(elements[i].size());
    for (Wide element : elements[i]) {
      c.mean += element / c.count;
      c.isConstant &= element == elements[i].front();
    }
    Wide residual = 0;
    for (Wide element : elements[i])
      residual += (element - c.mean) / c.count;
    c.mean += residual;
    if (c.isConstant && c.count > 0)
      c.mean = elements[i].front();
    for (Wide element : elements[i])
      c.variance += (element - c.mean) * (element - c.mean) / c.count;
    setStatistics(c);
    if (!spec.isInference)
      continue;
    auto channel = static_cast<int64_t>(i);
    c.mean = get(GivenMean, channel, 0);
    c.invStd = get(GivenStatistic, channel, 0);
    if (!spec.isInvStd)
      c.invStd = 1 / std::sqrt(c.invStd + inferenceOptions.epsilon);
  }
  return channels;
}

std::vector<Forward::Expected>
Forward::expectChannel(Place place,
                       const std::vector<Channel> &channels) const {
  std::vector<Expected> expected;
  Wide u = roundoff();
  for (const Channel &c : channels) {
    Wide g = c.growth(u);
    Expected mean = {c.mean, g * c.root + u * std::fabs(c.mean)};
    Expected variance = {c.variance, g * c.root * c.root};
    Wide momentum = c.count == 0 ? 0 : spec.momentum;
    auto channel = static_cast<int64_t>(expected.size());
    // The update is computed in f64.
    auto update = [&](const Expected &batch, Wide by) -> Expected {
      Wide exact = (1 - momentum) * get(place, channel, 0) + by * batch.exact;
      return {exact, by * batch.bound + 0x1p-50L * (std::fabs(exact) + 1)};
    };
    switch (place) {
    case BatchMean:
      expected.push_back(mean);
      break;
    case BatchVariance:
      expected.push_back(variance);
      break;
    case BatchInvStd:
      expected.push_back({c.invStd, g * c.invStd * c.relative});
      break;
    case RunningMean:
      expected.push_back(update(mean, momentum));
      break;
    default:
      // For M = 1, 0 times infinity.
      bool isUnbiased = spec.isUnbiased && c.count > 0;
      expected.push_back(
          update(variance,
                 isUnbiased ? momentum * (c.count / (c.count - 1)) : momentum));
    }
  }
  return expected;
}

std::vector<Forward::Expected>
Forward::expectOutput(const std::vector<Channel> &channels) const {
  std::vector<Expected> expected;
  Wide u = roundoff();
  for (size_t i = 0; i < channelOf.size(); ++i) {
    const Channel &c = channels[static_cast<size_t>(channelOf[i])];
    Wide scale = get(GivenScale, channelOf[i], 1);
    Wide offset = get(Offset, channelOf[i], 0);
    Wide xmu = initial[Data][i] - c.mean, gain = std::fabs(scale) * c.invStd;
    Wide bound = 0;
    if (spec.isInference)
      bound = 16 * u * (std::fabs(xmu) * gain + std::fabs(offset));
    else if (!c.isConstant)
      bound = c.growth(u) * (gain * (std::fabs(xmu) * c.relative + c.root +
                                     u * std::fabs(c.mean)) +
                             std::fabs(offset));
    expected.push_back({xmu * scale * c.invStd + offset, bound});
  }
  return expected;
}

std::string Forward::check() const {
  std::vector<Channel> channels = computeChannels();
  for (int i = 0; i < kNumPlaces; ++i) {
    auto place = static_cast<Place>(i);
    const Array *array = &arrays[i];
    if (!array->isPresent || (place == Data && spec.isInPlace))
      continue;
    std::vector<Expected> expected;
    if (place == Output)
      expected = expectOutput(channels);
    else if (place < kNumWritten)
      expected = expectChannel(place, channels);
    for (double value : initial[i])
      if (place >= kNumWritten)
        expected.push_back({value, 0});
    if (place == Output && spec.isInPlace)
      array = &arrays[Data];
    if (std::string error = compare(kPlaceNames[i], *array, expected);
        !error.empty())
      return error;
  }
  return workspace.isGuarded() ? "" : "workspace: written beyond";
}
