// A TFRT-shaped kernel over BNGrad's C library.

#include "tfrt.h"
#include "BNGrad/Runtime/Runtime.h"

namespace {
/// A call, which lives until its last gradient is set.
struct Call {
  bngradHandle_t handle = nullptr;
  bngradBatchNormBackwardDescriptor_t descriptor = nullptr;
  std::vector<char> workspace;
  Tensor tensors[8];
  ChainRef chains[3];
  ExecutionContext context;

  ~Call() {
    bngradDestroyBatchNormBackwardDescriptor(descriptor);
    bngradDestroyHandle(handle);
  }
  bngradStatus_t create(double epsilon);
  void run();
};
} // namespace

bngradStatus_t Call::create(double epsilon) {
  bngradTensorDescriptor_t d[8] = {};
  bngradStatus_t status = bngradCreateHandle(&handle, BNGRAD_DEVICE_CPU, 0);
  for (int i = 0; i < 8 && !status; ++i)
    status = bngradCreateTensorDescriptor(
        &d[i], BNGRAD_DTYPE_F32, static_cast<int>(tensors[i].shape.size()),
        tensors[i].shape.data(), nullptr);
  bngradBatchNormBackwardOptions_t options = {};
  options.struct_size = sizeof options;
  options.epsilon = epsilon;
  options.num_feature_dims = 1;
  options.feature_dims[0] = static_cast<int>(tensors[4].shape.size()) - 1;
  if (!status)
    status = bngradCreateBatchNormBackwardDescriptor(
        handle, &descriptor, &options, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7], nullptr);
  size_t size = 0;
  if (!status)
    status = bngradGetBatchNormBackwardWorkspaceSize(descriptor, &size);
  workspace.resize(size);
  for (bngradTensorDescriptor_t tensor : d)
    bngradDestroyTensorDescriptor(tensor);
  return status;
}

void Call::run() {
  bngradExecutor_t executor = {
      sizeof executor, &context,
      [](void *host, void (*task)(void *), void *argument) {
        static_cast<ExecutionContext *>(host)->enqueue([=] { task(argument); });
        return 0;
      }};
  auto set = [](void *chain, bngradStatus_t status, const char *message) {
    static_cast<Chain *>(chain)->set(status ? message : "");
  };
  const bngradCompletion_t done[] = {
      {set, chains[0].get()}, {set, chains[1].get()}, {set, chains[2].get()}};
  if (bngradBatchNormBackwardAsync(
          descriptor, workspace.data(), workspace.size(), tensors[0].data,
          tensors[1].data, tensors[2].data, tensors[3].data, tensors[4].data,
          tensors[5].data, tensors[6].data, tensors[7].data, nullptr, nullptr,
          &executor, done))
    for (ChainRef &chain : chains)
      chain->set(bngradGetLastError());
}

BatchNormGradChains batchNormGrad(Tensor outputGrad, Tensor input, Tensor gamma,
                                  Tensor mean, Tensor variance,
                                  ChainRef chainIn, Tensor inputGrad,
                                  Tensor gammaGrad, Tensor betaGrad,
                                  float epsilon,
                                  const ExecutionContext &context) {
  auto call = std::make_shared<Call>();
  Tensor all[] = {inputGrad, gammaGrad, betaGrad, outputGrad,
                  input,     gamma,     mean,     variance};
  std::copy(all, all + 8, call->tensors);
  call->context = context;
  if (call->create(epsilon)) {
    context.reportError(bngradGetLastError());
    return {};
  }
  for (ChainRef &chain : call->chains)
    chain = std::make_shared<Chain>();
  BatchNormGradChains chains = {call->chains[0], call->chains[1],
                                call->chains[2]};
  // grad_input is the last; it keeps the call until then.
  chains.input->andThen([call](const std::string &) {});
  chainIn->andThen([call](const std::string &error) {
    if (error.empty())
      return call->run();
    for (ChainRef &chain : call->chains)
      chain->set(error);
  });
  return chains;
}
