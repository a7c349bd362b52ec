"""Kernels for the ops of torch.nn.SyncBatchNorm on GPUs, by torch.ops.bngrad.

A kernel takes the arguments of an op of aten, and returns None if PyTorch's own
kernel must compute it. `batch_norm_gather_stats_with_counts`, which joins the
statistics of the processes, is left to PyTorch: it reads 2 C numbers of each.
"""

import torch

from . import _devices


def _is_covered(*data) -> bool:
    first = data[0]
    return (first.dtype in _devices.DTYPES and first.dim() >= 2
            and first.numel() > 0
            and all(each.dtype == first.dtype and each.shape == first.shape
                    for each in data))


def _convert(parameter, like):
    return None if parameter is None else parameter.to(like.dtype)


def _stats(input, eps):
    # PyTorch's inv_std of a constant channel is 0 if eps is.
    if not _is_covered(input) or eps < torch.finfo(torch.float32).tiny:
        return None
    _, mean, _, inv_std = torch.ops.bngrad.batch_norm_training(
        input, epsilon=eps, output_mask=[False, True, False, True])
    return mean, inv_std


def _elemt(input, weight, bias, mean, invstd, eps):
    if not _is_covered(input):
        return None
    return torch.ops.bngrad.batch_norm_inference(
        input, mean, _convert(weight, mean), _convert(bias, mean),
        inv_std=invstd)


def _backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g,
                     bias_g):
    if not _is_covered(grad_out, input):
        return None
    sums = torch.ops.bngrad.batch_norm_backward_reduce(grad_out, input, mean)
    parameter = mean if weight is None else weight
    return (sums[0] if input_g else None, sums[1] if input_g else None,
            (sums[1] * invstd).to(parameter.dtype) if weight_g else None,
            sums[0].to(parameter.dtype, copy=True) if bias_g else None)


def _backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu,
                    count):
    if not _is_covered(grad_out, input):
        return None
    return torch.ops.bngrad.batch_norm_backward_elemt(
        grad_out, input, mean, torch.stack((sum_dy, sum_dy_xmu)),
        count.sum(dtype=torch.int64), _convert(weight, mean), inv_std=invstd)


# By pass and dispatch key, the kernels of ops.
KERNELS = {
    ("forward", "CUDA"): {
        "batch_norm_stats": _stats,
        "batch_norm_elemt": _elemt,
    },
    ("backward", "CUDA"): {
        "batch_norm_backward_reduce": _backward_reduce,
        "batch_norm_backward_elemt": _backward_elemt,
    },
}
