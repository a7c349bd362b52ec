"""Writes modules of torch-mlir with batch normalization: the backward graphs that AOTAutograd
makes of modules of PyTorch, and forward passes with their gradients in one graph. The expected
results are PyTorch's, in float64.

Usage: torch_modules.py FOLDER
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from functorch.compile import aot_function, make_boxed_func
from torch.fx.experimental.proxy_tensor import make_fx
from torch_mlir import fx

from common import Writer, make_data


class Capture:
    """The backward graph of a function, and the arguments that PyTorch calls it with."""

    def __init__(self, function, arguments):
        self.graph = self.arguments = None

        def save(graph, _):
            def run(*values):
                self.graph, self.arguments = graph, values
                return graph(*values)

            return make_boxed_func(run)

        compiled = aot_function(function, fw_compiler=lambda graph, _: make_boxed_func(graph.forward), bw_compiler=save)
        inputs = [a.clone().requires_grad_() for a in arguments]
        result = compiled(*inputs)
        rng = np.random.default_rng(99)
        result.backward(torch.tensor(make_data(rng, result.shape, 1), dtype=result.dtype))


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


def frozen(x, w, b):
    return F.batch_norm(x, torch.linspace(-1, 1, 6, dtype=x.dtype), torch.linspace(1, 2, 6, dtype=x.dtype), w, b)


def squeeze_excite(x, w, b, p, q):
    y = batch_norm(x, w, b)
    return y * torch.sigmoid(F.relu(y.mean((2, 3)) @ p) @ q)[:, :, None, None]


def make_modules():
    """Name, function, and shapes of its arguments with the dim of channels or None."""
    nchw, c6 = ((8, 6, 9, 10), 1), ((6,), None)
    return [
        ("plain", batch_norm, [nchw, c6, c6]),
        ("plain-2d", batch_norm, [((32, 6), 1), c6, c6]),
        ("plain-3d", batch_norm, [((4, 6, 5, 6, 7), 1), c6, c6]),
        ("sequence", batch_norm, [((4, 6, 50), 1), c6, c6]),
        ("frozen", frozen, [nchw, c6, c6]),
        ("relu", lambda x, w, b: F.relu(batch_norm(x, w, b)), [nchw, c6, c6]),
        ("residual", lambda x, w, b, k: F.relu(batch_norm(x, w, b) + k), [nchw, c6, c6, nchw]),
        ("tanh", lambda x, w, b: torch.tanh(batch_norm(x, w, b)), [nchw, c6, c6]),
        ("sigmoid", lambda x, w, b: torch.sigmoid(batch_norm(x, w, b)), [nchw, c6, c6]),
        ("hardtanh", lambda x, w, b: F.hardtanh(batch_norm(x, w, b)), [nchw, c6, c6]),
        ("scaled", lambda x, w, b: batch_norm(x * 2, w, b) * 0.5, [nchw, c6, c6]),
        ("two", lambda x, w, b, v, c: batch_norm(F.relu(batch_norm(x, w, b)), v, c), [nchw, c6, c6, c6, c6]),
        ("dense", lambda x, m, w, b: F.relu(batch_norm(x @ m, w, b)), [((32, 16), 1), ((16, 6), None), c6, c6]),
        ("convolution", lambda x, k, w, b: F.relu(batch_norm(F.conv2d(x, k, padding=1), w, b)),
         [((4, 3, 10, 10), 1), ((6, 3, 3, 3), None), c6, c6]),
        ("strided-convolution", lambda x, k, w, b: batch_norm(F.conv2d(x, k, stride=2, padding=1), w, b),
         [((4, 3, 10, 10), 1), ((6, 3, 3, 3), None), c6, c6]),
        ("convolution-1d", lambda x, k, w, b: batch_norm(F.conv1d(x, k, padding=1), w, b),
         [((4, 3, 10), 1), ((6, 3, 3), None), c6, c6]),
        ("residual-block", lambda x, k, w, b, j, v, c: F.relu(batch_norm(F.conv2d(F.relu(batch_norm(F.conv2d(
            x, k, padding=1), w, b)), j, padding=1), v, c) + x),
         [nchw, ((6, 6, 3, 3), None), c6, c6, ((6, 6, 3, 3), None), c6, c6]),
        ("squeeze-excite", squeeze_excite, [nchw, c6, c6, ((6, 3), None), ((3, 6), None)]),
        ("log-softmax", lambda x, w, b: F.log_softmax(batch_norm(x, w, b), 1), [((32, 6), 1), c6, c6]),
        ("gelu", lambda x, w, b: F.gelu(batch_norm(x, w, b)), [nchw, c6, c6]),
        ("global-pool", lambda x, w, b: F.adaptive_avg_pool2d(batch_norm(x, w, b), 1).flatten(1), [nchw, c6, c6]),
        ("concatenation", lambda x, w, b, v, c: torch.cat([batch_norm(x, w, b), batch_norm(x * x, v, c)], 1),
         [nchw, c6, c6, c6, c6]),
        ("permuted", lambda x, w, b: batch_norm(x.permute(0, 3, 1, 2), w, b).permute(0, 2, 3, 1),
         [((4, 8, 8, 6), 3), c6, c6]),
        ("images", batch_norm, [((16, 6, 112, 112), 1), c6, c6]),
    ]


def step(x, w, b, running_mean, running_var, dy):
    """A forward pass and a ReLU, with the running statistics and the gradients."""
    y, mean, invstd, *running = torch.ops.aten._native_batch_norm_legit_functional(
        x, w, b, running_mean, running_var, True, 0.3, 1e-3)
    gradients = torch.ops.aten.native_batch_norm_backward(
        torch.where(y > 0, dy, torch.zeros_like(dy)), x, w, running_mean, running_var, mean, invstd, True, 1e-3, [True, True, True])
    return F.relu(y), mean, invstd, *running, *gradients


def evaluation(x, w, b, running_mean, running_var):
    return torch.ops.aten._native_batch_norm_legit_no_training(x, w, b, running_mean, running_var, 0.3, 1e-3)[0]


def make_forwards():
    """Like make_modules, without differentiation."""
    nchw, c6 = ((8, 6, 9, 10), 1), ((6,), None)
    return [
        ("step", step, [nchw, c6, c6, c6, c6, nchw]),
        ("step-2d", step, [((32, 6), 1), c6, c6, c6, c6, ((32, 6), 1)]),
        ("evaluation", evaluation, [nchw, c6, c6, c6, c6]),
    ]


def main():
    writer = Writer(sys.argv[1], "torch")

    def make_arguments(number, shapes):
        rng = np.random.default_rng(number)
        return [torch.tensor(make_data(rng, shape, dim) if len(shape) > 1 else rng.uniform(0.5, 1.5, shape),
                             dtype=torch.float32) for shape, dim in shapes]

    for number, (name, function, shapes) in enumerate(make_forwards()):
        arguments = make_arguments(number, shapes)
        graph = make_fx(function)(*arguments)
        module = fx.stateless_fx_import(graph, output_type="raw", model_name="main")
        results = graph(*[a.double() for a in arguments])
        results = results if isinstance(results, (tuple, list)) else [results]
        writer.write(name, str(module), [a.numpy() for a in arguments], [r.float().numpy() for r in results])
    for number, (name, function, shapes) in enumerate(make_modules()):
        backward = Capture(function, make_arguments(number, shapes))
        module = fx.stateless_fx_import(backward.graph, output_type="raw", model_name="main")
        exact = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in backward.arguments]
        results = [r for r in backward.graph(*exact) if r is not None]
        writer.write(name, str(module), [a.detach().numpy() for a in backward.arguments],
                     [r.detach().float().numpy() for r in results])


if __name__ == "__main__":
    main()
