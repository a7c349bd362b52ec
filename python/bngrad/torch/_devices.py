"""What the C library can compute: types of data, and devices."""

import warnings

import torch

from . import _library_handle

# The types of data.
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

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
            warnings.warn("bngrad.torch: PyTorch's own kernels compute batch "
                          f"norms on {device}: {text}", RuntimeWarning,
                          stacklevel=2)
    return _can_compute[device]
