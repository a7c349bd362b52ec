"""Stands for quack."""

import torch


def rmsnorm_bwd(x, weight, dout, rstd):
    assert x.dim() == dout.dim() == 2 and x.is_contiguous() and dout.is_contiguous()
    assert weight.shape == x.shape[1:] and rstd.shape == x.shape[:1]
    assert rstd.dtype == torch.float32
    hat = x.float() * rstd[:, None]
    wide = dout.float() * weight
    dx = (wide - hat * (hat * wide).mean(1, keepdim=True)) * rstd[:, None]
    return dx.to(x.dtype), (dout.float() * hat).sum(0), None, None
