// A kernel in the shape of TFRT's: it takes chains, returns without blocking,
// sets a chain for each gradient, and hands errors to a handler.

#ifndef TFRT_H
#define TFRT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// A value that is set once: there is nothing but that it is there, or an
/// error.
class Chain {
public:
  void set(std::string newError = "") {
    std::vector<std::function<void(const std::string &)>> ready;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isSet = true;
      error = std::move(newError);
      ready.swap(waiting);
    }
    for (auto &then : ready)
      then(error);
  }
  /// Calls `then` with the error, at once if it is set.
  void andThen(std::function<void(const std::string &)> then) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!isSet)
        return waiting.push_back(std::move(then));
    }
    then(error);
  }

private:
  std::mutex mutex;
  bool isSet = false;
  std::string error;
  std::vector<std::function<void(const std::string &)>> waiting;
};
using ChainRef = std::shared_ptr<Chain>;

/// Row-major data of f32.
struct Tensor {
  std::vector<int64_t> shape;
  float *data;
};

/// The host: its errors, and its work queue.
struct ExecutionContext {
  std::function<void(const std::string &)> reportError;
  std::function<void(std::function<void()>)> enqueue;
};

/// The chains of grad_input, grad_gamma and grad_beta; null after an error.
/// NHWC data.
struct BatchNormGradChains {
  ChainRef input, gamma, beta;
};
BatchNormGradChains batchNormGrad(Tensor outputGrad, Tensor input, Tensor gamma,
                                  Tensor mean, Tensor variance,
                                  ChainRef chainIn, Tensor inputGrad,
                                  Tensor gammaGrad, Tensor betaGrad,
                                  float epsilon,
                                  const ExecutionContext &context);

#endif
