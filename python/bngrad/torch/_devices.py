"""On which devices the C library can compute."""

import importlib.util
import warnings

import torch

from . import _library_handle

_can_compute: dict[torch.device, bool] = {}


def can_compute(device: torch.device) -> bool:
    """Whether the C library can compute on a device. If it cannot on a GPU,
    PyTorch computes everything there, and the first call warns."""
    if device.type == "cpu":
        return True
    if device not in _can_compute:
        _can_compute[device] = (
            _library_handle.bngradTorchVerifyDevice(device.index) == 0)
        if not _can_compute[device]:
            text = _library_handle.bngradTorchGetError().decode()
            if importlib.util.find_spec("bngrad_compiler") is None:
                text += "; install bngrad-compiler, which GPUs need"
            warnings.warn("bngrad.torch: PyTorch's own kernels compute batch "
                          f"norms on {device}: {text}", RuntimeWarning,
                          stacklevel=2)
    return _can_compute[device]
