"""In the place of PyTorch, where only its presence matters. Its import takes TORCH_SECONDS."""

import os
import time
import types

time.sleep(float(os.environ.get("TORCH_SECONDS", "0")))

__version__ = "0"
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 0))
cuda = types.SimpleNamespace(is_initialized=lambda: False)


def ones(count, device):
    return types.SimpleNamespace(sum=lambda: types.SimpleNamespace(item=lambda: count))
