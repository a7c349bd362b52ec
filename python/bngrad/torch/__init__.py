"""Batch normalization and its gradient for PyTorch on CPUs and CUDA devices.

`enable()` makes every `torch.nn.BatchNorm*` use them, without changes to the
model. `torch.ops.bngrad.batch_norm_backward`, `..._reduce` and `..._elemt`,
`batch_norm_training` and `batch_norm_inference` are ops of their own.
`SyncBatchNorm`, for CPUs, works on every backend of torch.distributed.
"""

from .. import _library

_torch = _library.find_framework("bngrad.torch", "torch", "PyTorch", (2, 10))
_library_handle = _library.load("bngrad.torch", "libbngrad_torch.so", "PyTorch")
if not hasattr(_torch.ops.bngrad, "batch_norm_backward"):
    raise ImportError(
        "bngrad.torch: expected PyTorch 2.10 or later to accept the ops of "
        f"libbngrad_torch.so, got PyTorch {_torch.__version__}, which did not")

from . import _forward, _ops  # noqa: E402, F401
from ._override import disable, enable, enabled  # noqa: E402
from ._sync import SyncBatchNorm, convert_sync_batchnorm  # noqa: E402

__all__ = [
    "SyncBatchNorm",
    "convert_sync_batchnorm",
    "disable",
    "enable",
    "enabled",
]
