"""What the C library can compute: types of data, and devices."""

import warnings

import torch

from . import _library_handle

# The types of data.
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

_can_compute: dict[tuple[torch.device, bool], bool] = {}


def can_compute(device: torch.device, *, has_relu: bool = False) -> bool:
    """Whether the C library can compute on a device; if `has_relu`, whether it
    can compile kernels with a ReLU there. If it cannot on a GPU, PyTorch
    computes everything there, and the first call warns."""
    if has_relu and not can_compute(device):
        return False
    if device.type == "cpu" and not has_relu:
        return True
    if (device, has_relu) not in _can_compute:
        is_able = _library_handle.bngradTorchVerifyDevice(
            -1 if device.type == "cpu" else device.index, has_relu) == 0
        _can_compute[device, has_relu] = is_able
        if not is_able and not has_relu:
            text = _library_handle.bngradTorchGetError().decode()
            warnings.warn("bngrad.torch: PyTorch's own kernels compute batch "
                          f"norms on {device}: {text}", RuntimeWarning,
                          stacklevel=2)
    return _can_compute[device, has_relu]
