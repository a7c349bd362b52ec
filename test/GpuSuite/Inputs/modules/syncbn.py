"""Stands for the extension of Apex, in PyTorch. SYNCBN_FAULT makes its results wrong, or
its calls fail."""

import os

import torch


def _sums(dy, x, mean, inv_std, dim):
    shape = [1] * x.dim()
    shape[dim] = -1
    dims = [d for d in range(x.dim()) if d != dim]
    centered = x.double() - mean.double().view(shape)
    sum_dy = dy.double().sum(dims)
    sum_dy_xmu = (dy.double() * centered).sum(dims)
    if os.environ.get("SYNCBN_FAULT") == "wrong":
        sum_dy = sum_dy + 1
    return sum_dy.float(), sum_dy_xmu.float(), (sum_dy_xmu * inv_std).float(), sum_dy.float()


def _apply(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count, dim):
    if os.environ.get("SYNCBN_FAULT") == "error":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    assert count.dtype == torch.int32
    shape = [1] * x.dim()
    shape[dim] = -1

    def view(tensor):
        return tensor.double().view(shape)

    centered = x.double() - view(mean)
    inner = dy.double() - view(sum_dy) / count.sum()
    inner = inner - centered * view(inv_std) ** 2 * view(sum_dy_xmu) / count.sum()
    return (view(scale) * view(inv_std) * inner).to(x.dtype)


def reduce_bn(dy, x, mean, inv_std, scale):
    return _sums(dy, x, mean, inv_std, 1)


def reduce_bn_c_last(dy, x, mean, inv_std, scale):
    return _sums(dy, x, mean, inv_std, x.dim() - 1)


def batchnorm_backward(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count):
    return _apply(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count, 1)


def batchnorm_backward_c_last(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count):
    return _apply(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count, x.dim() - 1)
