"""Batch normalization over the processes of torch.distributed."""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.profiler import record_function

_Norm = torch.nn.modules.batchnorm._BatchNorm


def _accumulator(input: Tensor) -> torch.dtype:
    return torch.float64 if input.dtype == torch.float64 else torch.float32


def _gather_statistics(input: Tensor, group) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, biased variance and the number of elements per channel over all
    processes, in f64: one all-gather of 2 C + 1 numbers.

    Parts of the batch are combined by Chan, Golub and LeVeque's formula
    (Algorithms for computing the sample variance, 1983), so that the variance
    is as accurate as that of one process.
    """
    channels = input.size(1)
    own = torch.zeros(2 * channels + 1, dtype=torch.float64)
    count = input.numel() // max(channels, 1)
    if count > 0:
        dims = [dim for dim in range(input.dim()) if dim != 1]
        variance, mean = torch.var_mean(input.to(_accumulator(input)), dims,
                                        correction=0)
        own[:channels], own[channels:-1] = mean, variance
        own[-1] = count
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    with record_function("bngrad.SyncBatchNorm.all_gather"):
        dist.all_gather(parts, own, group=group)
    gathered = torch.stack(parts)
    means, variances = gathered[:, :channels], gathered[:, channels:-1]
    counts = gathered[:, -1:]
    total = counts.sum()
    divisor = total.clamp(min=1)
    mean = (counts * means).sum(0) / divisor
    variance = (counts * (variances + (means - mean).square())).sum(0) / divisor
    return mean, variance, total


class _SyncBatchNorm(torch.autograd.Function):

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps,
                factor, group):
        dtype = _accumulator(input)
        mean, variance, total = _gather_statistics(input, group)
        if running_mean is not None:
            unbiased = variance * (total / (total - 1).clamp(min=1))
            running_mean.lerp_(mean.to(running_mean.dtype), factor)
            running_var.lerp_(unbiased.to(running_var.dtype), factor)
        inv_std = (variance + eps).rsqrt().to(dtype)
        mean = mean.to(dtype)
        scale = None if weight is None else weight.to(dtype)
        offset = None if bias is None else bias.to(dtype)
        ctx.save_for_backward(input, weight, mean, inv_std)
        ctx.group = group
        return functional.batch_norm(input, mean, variance.to(dtype), scale,
                                     offset, training=False, eps=eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        input, weight, mean, inv_std = ctx.saved_tensors
        channels = input.size(1)
        grad_input = grad_weight = grad_bias = None
        with record_function("bngrad.SyncBatchNorm.reduce"):
            sums = torch.ops.bngrad.batch_norm_backward_reduce(
                grad_output, input, mean)
        # Of this process, as apex and PyTorch have them: who averages
        # gradients over processes does so with these, too.
        if ctx.needs_input_grad[1]:
            grad_weight = (sums[1] * inv_std).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            grad_bias = sums[0].to(weight.dtype)
        if ctx.needs_input_grad[0]:
            # The count needs f64: f32 has no odd numbers beyond 2^24.
            message = torch.empty(2 * channels + 1, dtype=torch.float64)
            message[:-1] = sums.flatten()
            message[-1] = input.numel() // max(channels, 1)
            with record_function("bngrad.SyncBatchNorm.all_reduce"):
                dist.all_reduce(message, group=ctx.group)
            with record_function("bngrad.SyncBatchNorm.elemt"):
                grad_input = torch.ops.bngrad.batch_norm_backward_elemt(
                    grad_output, input, mean,
                    message[:-1].view(2, channels).to(sums.dtype),
                    message[-1].to(torch.int64),
                    scale=None if weight is None else weight.to(mean.dtype),
                    inv_std=inv_std)
        return grad_input, grad_weight, grad_bias, *(None,) * 5


class SyncBatchNorm(_Norm):
    """Batch normalization over the batches of all processes of a group.

    Like `torch.nn.SyncBatchNorm`, but on CPUs, with every backend of
    torch.distributed that has all_gather and all_reduce of f64, such as gloo.
    In training, mean and variance are those of all batches together, which may
    differ in size and be empty. The gradient takes one all-reduce of 2 C + 1
    numbers; gradients of weight and bias are those of the own batch, so that
    DistributedDataParallel averages them like all others. In evaluation, in
    one process, or without a process group it is `torch.nn.BatchNorm`.

    Second derivatives are an error. Profilers see ranges with names of
    `bngrad.SyncBatchNorm`, as NVTX ranges if they emit these.

    Args:
      num_features: C, the size of dim 1 of inputs of shape (N, C, ...).
      eps: added to the variance.
      momentum: the weight of a batch in running statistics; None: 1 / their
        number.
      affine: whether there are weight and bias.
      track_running_stats: whether evaluation uses running statistics.
      process_group: None: the default group.
      device, dtype: of the parameters.

    Raises:
      ValueError: an input of another shape or not on the CPU.
      RuntimeError: a collective failed, such as a lost process after the
        timeout of the group.
    """

    def __init__(self, num_features: int, eps: float = 1e-5,
                 momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group=None,
                 device=None, dtype=None) -> None:
        super().__init__(num_features, eps, momentum, affine,
                         track_running_stats, device=device, dtype=dtype)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2 or input.size(1) != self.num_features:
            raise ValueError(
                f"input: expected a shape (N, {self.num_features}, ...), "
                f"got {tuple(input.shape)}")
        if input.device.type != "cpu":
            raise ValueError(
                f"input: expected a tensor on the CPU, got {input.device}")

    def _is_synchronized(self) -> bool:
        return (self.training and dist.is_available() and dist.is_initialized()
                and dist.get_world_size(self.process_group) > 1)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        if not self._is_synchronized():
            return super().forward(input)
        factor = 0.0
        if self.track_running_stats:
            self.num_batches_tracked.add_(1)
            factor = (1.0 / float(self.num_batches_tracked)
                      if self.momentum is None else self.momentum)
        with record_function("bngrad.SyncBatchNorm.forward"):
            return _SyncBatchNorm.apply(input, self.weight, self.bias,
                                        self.running_mean, self.running_var,
                                        self.eps, factor, self.process_group)


def convert_sync_batchnorm(module: torch.nn.Module,
                           process_group=None) -> torch.nn.Module:
    """Replaces every `torch.nn.BatchNorm*` and `torch.nn.SyncBatchNorm`.

    Args:
      module: is changed, unless it is a batch norm itself.
      process_group: that of the new modules; None: the default group.

    Returns:
      `module`, or its replacement if it is a batch norm. Parameters and buffers
      are the same objects as before, so optimizers stay valid; a module that
      occurs twice stays one.

    Raises:
      ValueError: a lazy batch norm that has seen no input.
    """
    return _convert(module, process_group, {})


def _convert(module, process_group, converted):
    if module in converted:
        return converted[module]
    result = module
    if isinstance(module, _Norm) and not isinstance(module, SyncBatchNorm):
        result = _convert_one(module, process_group)
    converted[module] = converted[result] = result
    for name, child in list(module._modules.items()):
        if child is None:
            continue
        replacement = _convert(child, process_group, converted)
        if replacement is not result._modules.get(name):
            result.add_module(name, replacement)
    return result


def _convert_one(module, process_group):
    lazy = torch.nn.modules.lazy.LazyModuleMixin
    if isinstance(module, lazy) and module.has_uninitialized_params():
        raise ValueError("expected modules whose parameters are initialized, "
                         f"got {type(module).__name__}; run the model once")
    result = SyncBatchNorm(module.num_features, module.eps, module.momentum,
                           module.affine, module.track_running_stats,
                           process_group, device="meta")
    for name in ("weight", "bias"):
        setattr(result, name, getattr(module, name))
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        setattr(result, name, getattr(module, name))
    return result.train(module.training)
