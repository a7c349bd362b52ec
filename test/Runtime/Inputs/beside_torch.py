"""beside_torch.py LIBRARY: gradients of the C library in a process of PyTorch, on its memory and its OpenMP.

Random gradients are compared with a reference in float64, and for bits with those on one thread, while torch's own
functions run before, after, and at once on another thread. Prints `N gradients, 0 wrong`.
"""

import ctypes
import os
import random
import re
import sys
import threading

import torch

SEED, COUNT, THREADS = 20261124, 60, 3
TYPES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3, torch.bool: 4}


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("epsilon", ctypes.c_double), ("statistics", ctypes.c_int),
                ("statistic", ctypes.c_int), ("num_feature_dims", ctypes.c_int), ("feature_dims", ctypes.c_int * 8)]


library = ctypes.CDLL(sys.argv[1])
library.bngradGetLastError.restype = ctypes.c_char_p


def call(name, *arguments):
    status = getattr(library, name)(*arguments)
    assert status == 0, f"{name}: {status}: {library.bngradGetLastError().decode()}"


def create(name, *arguments):
    made = ctypes.c_void_p()
    call(name, *[ctypes.byref(made) if a is create else a for a in arguments])
    return made


class Gradient:
    """A gradient of random shape, layout and types. `is_apart`: one that has no ready kernel."""

    def __init__(self, generator, is_apart=False):
        rank = 3 if is_apart else generator.randint(2, 5)
        shape = [generator.choice([1, 2, 3, 7, 16, 33]) for _ in range(rank)]
        self.features = [0, 2] if is_apart else [1]
        self.data_type = generator.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
        self.is_batch, self.is_inv_std = generator.random() < 0.7, generator.random() < 0.5
        order = [0, *range(2, rank), 1] if generator.random() < 0.5 else list(range(rank))

        def data(values):
            """With the dims of `order` in memory."""
            inverse = [order.index(dim) for dim in range(rank)]
            return values.permute(order).contiguous().permute(inverse)

        channels = [shape[dim] for dim in self.features]
        self.x, self.dy = (data((torch.randn(shape) + 0.3).to(self.data_type)) for _ in range(2))
        self.scale = torch.rand(channels) + 0.5 if generator.random() < 0.8 else None
        self.mean, self.statistic = torch.randn(channels), torch.rand(channels) + 0.5
        self.mask = data(torch.rand(shape) < 0.7) if generator.random() < 0.3 else None
        self.epsilon = 0.0 if self.is_inv_std else 1e-3

    def reference(self):
        """The gradients in float64, from docs/mathematics.md."""
        reduced = [dim for dim in range(self.x.dim()) if dim not in self.features]
        over = [self.x.shape[dim] if dim in self.features else 1 for dim in range(self.x.dim())]
        dy, x, mean, statistic = (t.double() for t in (self.dy, self.x, self.mean, self.statistic))
        if self.mask is not None:
            dy = dy * self.mask
        inv_std = statistic if self.is_inv_std else 1 / (statistic + self.epsilon).sqrt()
        scale = torch.ones_like(mean) if self.scale is None else self.scale.double()
        normal = (x - mean.view(over)) * inv_std.view(over)
        grad_scale, grad_offset = (dy * normal).sum(reduced), dy.sum(reduced)
        rest = dy
        if self.is_batch:
            count = x.numel() // mean.numel()
            rest = dy - (grad_offset.view(over) + normal * grad_scale.view(over)) / count
        return rest * (scale * inv_std).view(over), grad_scale, grad_offset

    def run(self, handle):
        """grad_input, grad_scale and grad_offset of the library."""
        results = (torch.empty_like(self.x), torch.empty_like(self.mean), torch.empty_like(self.mean))
        operands = (*results, self.dy, self.x, self.scale, self.mean, self.statistic, self.mask)
        assert results[0].stride() == self.x.stride()
        tensors = []
        for tensor in operands:
            sizes = ctypes.c_int64 * 5
            tensors.append(None if tensor is None else create(
                "bngradCreateTensorDescriptor", create, TYPES[tensor.dtype], tensor.dim(), sizes(*tensor.shape),
                sizes(*tensor.stride())))
        options = Options(ctypes.sizeof(Options), self.epsilon, not self.is_batch, self.is_inv_std,
                          len(self.features), (ctypes.c_int * 8)(*self.features))
        gradient = create("bngradCreateBatchNormBackwardDescriptor", handle, create, ctypes.byref(options), *tensors)
        size = ctypes.c_size_t()
        call("bngradGetBatchNormBackwardWorkspaceSize", gradient, ctypes.byref(size))
        workspace = torch.empty(size.value, dtype=torch.uint8)
        pointers = [ctypes.c_void_p(0 if tensor is None else tensor.data_ptr()) for tensor in operands]
        call("bngradBatchNormBackward", gradient, ctypes.c_void_p(workspace.data_ptr()), size, *pointers, None)
        call("bngradDestroyBatchNormBackwardDescriptor", gradient)
        for tensor in filter(None, tensors):
            call("bngradDestroyTensorDescriptor", tensor)
        return results

    def is_right(self, results):
        """Within a bound from the types and the number of elements."""
        unit = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
        for result, expected in zip(results, self.reference()):
            bound = (2 * unit[result.dtype] + 2.0**-20) * expected.abs() + 2.0**-18 * expected.abs().max() + 2.0**-20
            if not ((result.double() - expected).abs() <= bound).all():
                return False
        return True


def work():
    """Torch's own functions, on its threads."""
    x = torch.randn(8, 16, 24, 24, requires_grad=True)
    y = torch.nn.functional.conv2d(x, torch.ones(16, 16, 3, 3), padding=1)
    torch.nn.functional.batch_norm(y, None, None, training=True).square().sum().backward()
    assert x.grad.isfinite().all()


def get_openmp():
    """The libraries of OpenMP in this process."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps}
    return sorted(filter(re.compile("lib[a-z]*omp").match, map(os.path.basename, paths)))


def main():
    torch.manual_seed(SEED)
    generator = random.Random(SEED)
    torch.set_num_threads(1)
    handle = create("bngradCreateHandle", create, 0, 0)
    large = Gradient(generator)
    large.features, large.data_type, large.mask, large.scale = [1], torch.float32, None, None
    large.x, large.dy = torch.randn(16, 16, 50, 50), torch.randn(16, 16, 50, 50)
    large.mean, large.statistic = torch.randn(16), torch.rand(16) + 0.5
    one = large.run(handle)
    before = len(os.listdir("/proc/self/task"))
    torch.set_num_threads(THREADS)
    several = large.run(handle)
    started = len(os.listdir("/proc/self/task")) - before
    assert started == THREADS - 1, f"expected {THREADS - 1} threads that the library has started, got {started}"
    assert all(map(torch.equal, one, several)) and large.is_right(one)

    wrong = 0
    for number in range(COUNT):
        gradient = Gradient(generator, is_apart=number % 20 == 19)
        results = []
        for threads in (1, THREADS, 2):
            torch.set_num_threads(threads)
            work()
            results.append(gradient.run(handle))
        # At once with torch, on other threads.
        other = threading.Thread(target=work)
        other.start()
        results.append(gradient.run(handle))
        other.join()
        same = all(all(map(torch.equal, results[0], each)) for each in results)
        if not same or not gradient.is_right(results[0]):
            print(f"wrong: gradient {number}: {tuple(gradient.x.shape)} {gradient.data_type} same bits: {same}")
            wrong += 1
    loaded = get_openmp()
    assert len(loaded) == 1 and loaded[0].startswith("libgomp"), f"expected libgomp alone, got {loaded}"
    # A wrong value is noticed.
    results[0][1].view(-1)[0] += 0.01 * results[0][1].abs().max() + 0.01
    assert not gradient.is_right(results[0])
    print(f"{COUNT} gradients, {wrong} wrong")


main()
