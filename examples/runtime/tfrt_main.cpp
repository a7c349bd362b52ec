// The contract of the kernel: shapes are checked before anything runs, the call
// does not block, each gradient has a chain, those of gamma and beta are set
// first, and errors reach the handler.

#include "tfrt.h"

#include <cmath>
#include <cstdio>
#include <queue>

static int failures = 0;

static void expect(bool holds, const char *what) {
  if (!holds)
    std::printf("expected %s\n", what), ++failures;
}

int main() {
  const int64_t n = 4, c = 3;
  std::vector<float> dy(n * 2 * 5 * c), x(dy.size()), dx(dy.size(), -1),
      gamma = {1, 2, 3}, mean = {0, 1, 2};
  std::vector<float> variance = {4, 1, 0.25f}, dgamma(c, -1), dbeta(c, -1);
  for (size_t i = 0; i < dy.size(); ++i)
    dy[i] = static_cast<float>(i % 5) - 1, x[i] = static_cast<float>(i % 7) / 2;
  Tensor data = {{n, 2, 5, c}, nullptr}, vector = {{c}, nullptr};
  auto with = [](Tensor tensor, std::vector<float> &values) {
    return Tensor{tensor.shape, values.data()};
  };

  // A host whose queue is run by hand.
  std::vector<std::string> errors;
  std::queue<std::function<void()>> queue;
  ExecutionContext context = {
      [&](const std::string &error) { errors.push_back(error); },
      [&](std::function<void()> task) { queue.push(std::move(task)); }};
  auto run = [&](Tensor gammaGrad, ChainRef in) {
    return batchNormGrad(with(data, dy), with(data, x), with(vector, gamma),
                         with(vector, mean), with(vector, variance), in,
                         with(data, dx), gammaGrad, with(vector, dbeta), 0.5f,
                         context);
  };

  auto in = std::make_shared<Chain>();
  BatchNormGradChains none = run({{c + 1}, dgamma.data()}, in);
  expect(!none.input && errors.size() == 1, "an error before anything runs");
  expect(errors.back() == "grad_scale: expected dim 0 to have the size of dim "
                          "3 of input, 3, got 4",
         "both sizes in the error");

  BatchNormGradChains chains = run(with(vector, dgamma), in);
  std::string order;
  chains.input->andThen(
      [&](const std::string &error) { order += error.empty() ? 'i' : '!'; });
  chains.gamma->andThen(
      [&](const std::string &error) { order += error.empty() ? 'g' : '!'; });
  chains.beta->andThen([&](const std::string &error) {
    order += error.empty() ? 'b' : '!';
    expect(dx[0] == -1, "grad_input after the others");
  });
  expect(queue.empty() && dbeta[0] == -1,
         "nothing to run before the input chain");
  in->set();
  expect(queue.size() == 1 && order.empty(), "a task in the host's queue");
  for (; !queue.empty(); queue.pop())
    queue.front()();
  expect(order == "bgi", "grad_beta, grad_gamma, grad_input");

  double worst = 0;
  for (int64_t k = 0; k < c; ++k) {
    double sum = 0, product = 0, r = 1 / std::sqrt(variance[k] + 0.5),
           m = static_cast<double>(dy.size()) / c;
    for (size_t i = k; i < dy.size(); i += c)
      sum += dy[i], product += dy[i] * (x[i] - mean[k]);
    worst = std::fmax(worst, std::fmax(std::fabs(dbeta[k] - sum),
                                       std::fabs(dgamma[k] - product * r)));
    for (size_t i = k; i < dy.size(); i += c)
      worst = std::fmax(worst, std::fabs(dx[i] - gamma[k] * r *
                                                     (dy[i] - sum / m -
                                                      (x[i] - mean[k]) * r * r *
                                                          product / m)));
  }
  expect(worst < 1e-4, "the gradients");

  // An error of the input chain is that of all gradients.
  auto failed = std::make_shared<Chain>();
  chains = run(with(vector, dgamma), failed);
  std::string error;
  chains.gamma->andThen([&](const std::string &text) { error = text; });
  failed->set("no input");
  expect(error == "no input" && queue.empty(), "the error of the input chain");
  std::printf("tfrt: %d failures\n", failures);
  return failures != 0;
}
