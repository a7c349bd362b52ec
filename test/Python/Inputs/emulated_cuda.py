"""A CUDA device of PyTorch on the emulator: its memory, streams and threads are real, and the kernels of PyTorch
itself are replaced by those for CPUs, on copies. Cudart.c must be preloaded."""

import ctypes
import functools

import torch
from torch.utils import _pytree as pytree

assert torch.cuda.is_available(), "expected Cudart.c to be preloaded"
_process = ctypes.CDLL(None)
count_waits = _process.countWaits

# Kernels of PyTorch that launch nothing.
_NATIVE = {"_local_scalar_dense", "_reshape_alias", "as_strided", "empty.memory_format", "empty_strided", "is_pinned",
           "record_stream", "resize_", "set_", "set_.source_Storage", "set_.source_Storage_storage_offset",
           "set_.source_Tensor", "unfold", "view"}
# Ops whose kernel for all devices launches one for CUDA.
_COMPOSITE = {"convolution", "convolution_backward", "copy_"}


def _copy(to, source, size):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _process.mgpuMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_uint64(size), stream)
    _process.mgpuStreamSynchronize(stream)


def _count_elements(tensor):
    """From the first element in memory to the last one."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))


def to_cpu(tensor):
    """A copy with the same strides."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
        return tensor
    count = _count_elements(tensor)
    memory = torch.empty(count, dtype=tensor.dtype)
    if count:
        _copy(memory.data_ptr(), tensor.data_ptr(), memory.nbytes)
    return memory.as_strided(tensor.shape, tensor.stride())


def to_cuda(tensor, to=None):
    """A copy with the same strides, or in the memory of the dense tensor `to`."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_cuda:
        return tensor
    if to is None:
        to = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")
    elif tensor.stride() != to.stride():
        tensor = torch.empty_strided(to.shape, to.stride(), dtype=to.dtype).copy_(tensor)
    count = _count_elements(tensor)
    if count:
        _copy(to.data_ptr(), tensor.data_ptr(), count * tensor.element_size())
    return to


def _run_on_cpu(op, *arguments, **given):
    written = {}

    def convert(value):
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if not isinstance(value, torch.Tensor) or not value.is_cuda:
            return value
        copy = to_cpu(value)
        written[id(copy)] = copy, value
        return copy

    # Python gets numbers that are operands as such. As f64 of no dims, they do not change the type of results.
    def make_operand(argument, value):
        if type(value) not in (bool, int, float) or not argument.type.isSubtypeOf(torch.TensorType.get()):
            return value
        return torch.tensor(value, dtype=torch.float64 if type(value) is float else None)

    arguments = [make_operand(*each) for each in zip(op._schema.arguments, arguments)]
    copied, copied_given = pytree.tree_map(convert, (arguments, given))
    results = op(*copied, **copied_given)
    by_name = dict(zip((argument.name for argument in op._schema.arguments), copied)) | copied_given
    for argument in op._schema.arguments:
        # Schemas do not say that running statistics are written.
        if not (argument.alias_info is not None and argument.alias_info.is_write or
                argument.name in ("running_mean", "running_var")):
            continue
        for value in pytree.tree_leaves(by_name.get(argument.name)):
            if id(value) not in written:
                continue
            original = written[id(value)][1]
            if value.shape != original.shape:
                original.resize_(value.shape)
            to_cuda(value, original)
    return pytree.tree_map(
        lambda value: written[id(value)][1] if id(value) in written else to_cuda(value), results)


def _gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """PyTorch has no kernel for CPUs."""
    mean, invstd, counts = (to_cpu(each).double() for each in (mean, invstd, counts))
    total = counts.sum()
    joined = (counts[:, None] * mean).sum(0) / total
    variance = (counts[:, None] * (invstd**-2 - eps + (mean - joined)**2)).sum(0) / total
    for running, value in ((running_mean, joined), (running_var, variance * total / (total - 1))):
        if running is not None:
            old = to_cpu(running)
            to_cuda(((1 - momentum) * old + momentum * value).to(old.dtype), running)
    return to_cuda(joined.float()), to_cuda((variance + eps).rsqrt().float())


_library = torch.library.Library("aten", "IMPL")
torch.cuda.init()
# As it selects its own kernels.
torch.backends.cudnn.enabled = False
for _name in torch._C._dispatch_get_all_op_names():
    _namespace, _, _op = _name.partition("::")
    if _namespace != "aten" or _op in _NATIVE or not (
            _op in _COMPOSITE or torch._C._dispatch_has_kernel_for_dispatch_key(_name, "CUDA")):
        continue
    _packet, _, _overload = _op.partition(".")
    _found = getattr(getattr(torch.ops.aten, _packet), _overload or "default")
    if _op == "batch_norm_gather_stats_with_counts":
        _library.impl(_op, _gather_stats_with_counts, "CUDA")
    else:
        _library.impl(_op, functools.partial(_run_on_cpu, _found), "CUDA")
