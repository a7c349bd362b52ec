"""In the place of PyTorch, where only its presence matters."""

import types

__version__ = "0"
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 0))
cuda = types.SimpleNamespace(is_initialized=lambda: False)


def ones(count, device):
    return types.SimpleNamespace(sum=lambda: types.SimpleNamespace(item=lambda: count))
