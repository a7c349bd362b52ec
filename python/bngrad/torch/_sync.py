"""Batch normalization over the processes of torch.distributed."""

import copy
import types
import weakref
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import init
from torch.profiler import record_function

_Norm = torch.nn.modules.batchnorm._BatchNorm


def _accumulator(input: Tensor) -> torch.dtype:
    return torch.float64 if input.dtype == torch.float64 else torch.float32


# From this ratio of mean and standard deviation on, rounding a mean to f32
# would be the largest error of an output. Rarely do data come close to it.
_LARGE_RATIO = 64


def _compute_moments(input: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of the batch of this process."""

    def compute(data):
        _, mean, variance, _ = torch.ops.bngrad.batch_norm_training(
            data, output_mask=[False, True, True, False])
        return mean, variance

    mean, variance = compute(input)
    if input.dtype == torch.float32:
        # The mean of equal elements is exact.
        is_rounded = (variance > 0) & (
            mean.abs() > _LARGE_RATIO * variance.sqrt())
        if is_rounded.any():
            return compute(input.double())
    return mean, variance


def _gather_statistics(input: Tensor, group) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, biased variance and the number of elements per channel over all
    processes, in f64: one all-gather of 2 C + 1 numbers.

    Parts of the batch are combined by Chan, Golub and LeVeque's formula
    (Algorithms for computing the sample variance, 1983), so that the variance
    is as accurate as that of one process. Distances to the mean of the largest
    part make the mean of equal elements exact.
    """
    channels = input.size(1)
    own = torch.zeros(2 * channels + 1, dtype=torch.float64)
    count = input.numel() // max(channels, 1)
    if count > 0:
        own[:channels], own[channels:-1] = _compute_moments(input)
        own[-1] = count
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    with record_function("bngrad.SyncBatchNorm.all_gather"):
        dist.all_gather(parts, own, group=group)
    gathered = torch.stack(parts)
    means, variances = gathered[:, :channels], gathered[:, channels:-1]
    counts = gathered[:, -1:]
    total = counts.sum()
    weights = counts / total.clamp(min=1)
    distances = means - means[counts.argmax()]
    distance = (weights * distances).sum(0)
    mean = means[counts.argmax()] + distance
    variance = (weights *
                (variances + (distances - distance).square())).sum(0)
    return mean, variance, total


def _normalize(input: Tensor, weight: Tensor | None, bias: Tensor | None,
               mean: Tensor, inv_std: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The output, and mean and inv_std in the type of the arithmetic. What
    rounding takes from the mean goes into the offset, so that the error of the
    output does not grow with mean / standard deviation."""
    dtype = _accumulator(input)
    rounded = mean.to(dtype)
    offset = (rounded - mean) * inv_std
    if weight is not None:
        offset = offset * weight
    if bias is not None:
        offset = offset + bias
    inv_std = inv_std.to(dtype)
    output = torch.ops.bngrad.batch_norm_inference(
        input, rounded, scale=None if weight is None else weight.to(dtype),
        offset=offset.to(dtype), inv_std=inv_std)
    return output, rounded, inv_std


class _SyncBatchNorm(torch.autograd.Function):

    @staticmethod
    def forward(ctx, input, weight, bias, running_mean, running_var, eps,
                factor, group):
        mean, variance, total = _gather_statistics(input, group)
        # Without a single element in any process, they stay.
        if running_mean is not None and total > 0:
            unbiased = variance * (total / (total - 1).clamp(min=1))
            # An infinity stays, which lerp_ would make NaN.
            for running, new in ((running_mean, mean), (running_var, unbiased)):
                running.mul_(1 - factor).add_(new.to(running.dtype), alpha=factor)
        output, mean, inv_std = _normalize(input, weight, bias, mean,
                                           (variance + eps).rsqrt())
        ctx.save_for_backward(input, weight, mean, inv_std)
        ctx.group = group
        ctx.bias_dtype = None if bias is None else bias.dtype
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        input, weight, mean, inv_std = ctx.saved_tensors
        channels = input.size(1)
        grad_input = grad_weight = grad_bias = None
        with record_function("bngrad.SyncBatchNorm.reduce"):
            sums = torch.ops.bngrad.batch_norm_backward_reduce(
                grad_output, input, mean)
        # Of this process, as apex and PyTorch have them: who averages
        # gradients over processes does so with these, too.
        if ctx.needs_input_grad[1]:
            grad_weight = (sums[1] * inv_std).to(weight.dtype)
        if ctx.needs_input_grad[2]:
            grad_bias = sums[0].to(ctx.bias_dtype)
        if ctx.needs_input_grad[0]:
            # The count needs f64: f32 has no odd numbers beyond 2^24.
            message = torch.empty(2 * channels + 1, dtype=torch.float64)
            message[:-1] = sums.flatten()
            message[-1] = input.numel() // max(channels, 1)
            with record_function("bngrad.SyncBatchNorm.all_reduce"):
                dist.all_reduce(message, group=ctx.group)
            with record_function("bngrad.SyncBatchNorm.elemt"):
                grad_input = torch.ops.bngrad.batch_norm_backward_elemt(
                    grad_output, input, mean,
                    message[:-1].view(2, channels).to(sums.dtype),
                    message[-1].to(torch.int64),
                    scale=None if weight is None else weight.to(mean.dtype),
                    inv_std=inv_std)
        return grad_input, grad_weight, grad_bias, *(None,) * 5


class SyncBatchNorm(_Norm):
    """Batch normalization over the batches of all processes of a group.

    Like `torch.nn.SyncBatchNorm`, but on CPUs, with every backend of
    torch.distributed that has all_gather and all_reduce of f64, such as gloo.
    In training, mean and variance are those of all batches together, which may
    differ in size and be empty. The gradient takes one all-reduce of 2 C + 1
    numbers; gradients of weight and bias are those of the own batch, so that
    DistributedDataParallel averages them like all others. In evaluation, in
    one process, or without a process group it is `torch.nn.BatchNorm`, on
    every device. docs/python-torch.md compares it with both, point by point.

    Second derivatives are an error. Profilers see ranges with names of
    `bngrad.SyncBatchNorm`, as NVTX ranges if they emit these.

    Args:
      num_features: C, the size of dim 1 of inputs of shape (N, C, ...).
      eps: added to the variance.
      momentum: the weight of a batch in running statistics; None: 1 / their
        number.
      affine: whether there are weight and bias.
      track_running_stats: whether evaluation uses running statistics.
      process_group: None: the default group.
      device, dtype: of the parameters.
      bias: whether there is a bias, if there is a weight.

    Raises:
      ValueError: an input without channels, or not on the CPU where processes
        exchange statistics.
      RuntimeError: an input with another number of channels; a collective
        failed, such as a lost process after the timeout of the group.
    """

    def __init__(self, num_features: int, eps: float = 1e-5,
                 momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group=None,
                 device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine,
                         track_running_stats, device=device, dtype=dtype)
        # Before 2.15, PyTorch's class has no such argument.
        if not bias:
            self.register_parameter("bias", None)
        self.process_group = process_group

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            if self.weight is not None:
                init.ones_(self.weight)
            # Before 2.15, PyTorch's class expects one.
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2 or input.size(1) == 0:
            raise ValueError(
                "input: expected a shape (N, C, ...) with at least one "
                f"channel, got {tuple(input.shape)}")
        for vector in (self.weight, self.bias, self.running_mean,
                       self.running_var):
            if vector is not None and vector.numel() != input.size(1):
                raise RuntimeError(
                    f"input: expected a shape (N, {vector.numel()}, ...), "
                    f"got {tuple(input.shape)}")

    def _check_running_statistics(self) -> None:
        names = ["running_mean", "running_var"]
        missing = [name for name in names if getattr(self, name) is None]
        is_used = self.track_running_stats or not self.training
        if is_used and len(missing) == 1:
            names.remove(*missing)
            raise ValueError(f"{missing[0]}: expected a tensor, as {names[0]} "
                             "is one, got None")

    def _is_synchronized(self) -> bool:
        return (self.training and dist.is_available() and dist.is_initialized()
                and dist.get_world_size(self.process_group) > 1)

    def _count_batch(self) -> float:
        """Counts a batch, and returns its weight in the running statistics."""
        factor = 0.0 if self.momentum is None else self.momentum
        if self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        return factor

    def forward(self, input: Tensor) -> Tensor:
        if isinstance(input, torch.fx.Proxy):
            # Tracers keep only PyTorch's modules as one node of the graph.
            return input.tracer.create_proxy(
                "call_module", input.tracer.path_of_module(self), (input,), {})
        self._check_input_dim(input)
        self._check_running_statistics()
        if not self._is_synchronized():
            return super().forward(input)
        if input.device.type != "cpu":
            raise ValueError(
                f"input: expected a tensor on the CPU, got {input.device}; "
                "torch.nn.SyncBatchNorm is for other devices")
        factor = self._count_batch()
        is_tracked = self.track_running_stats
        with record_function("bngrad.SyncBatchNorm.forward"):
            return _SyncBatchNorm.apply(
                input, self.weight, self.bias,
                self.running_mean if is_tracked else None,
                self.running_var if is_tracked else None, self.eps, factor,
                self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module: torch.nn.Module,
                               process_group=None) -> torch.nn.Module:
        """`bngrad.torch.convert_sync_batchnorm`, where PyTorch's class has
        it."""
        return convert_sync_batchnorm(module, process_group)


# Conversion -----------------------------------------------------------------

Factory = Callable[[torch.nn.Module, SyncBatchNorm], torch.nn.Module]


def convert_sync_batchnorm(
    module: torch.nn.Module,
    process_group=None,
    *,
    factories: Mapping[type, Factory] | None = None,
) -> torch.nn.Module:
    """Replaces every `torch.nn.BatchNorm*` and `torch.nn.SyncBatchNorm`.

    The replacement of a subclass is of that class, too, and keeps what it
    overrides, such as `train`. Subclasses with another `forward`, such as one
    with an activation, are an error without a factory.

    Args:
      module: is changed, unless it is a batch norm itself.
      process_group: the group of all modules of this kind, also of those that
        were converted before; None: the default group.
      factories: functions for classes of batch norms and their subclasses.
        `factory(batch_norm, sync)` returns the replacement of `batch_norm`;
        `sync` is a SyncBatchNorm with its options, parameters and buffers.

    Returns:
      `module`, or its replacement if it is a batch norm. Parameters and buffers
      are the same objects as before, so optimizers stay valid; hooks, their
      handles and other attributes stay; a module that occurs twice stays one.

    Raises:
      ValueError: a lazy batch norm that has seen no input; a batch norm with
        another `forward`, `__call__`, or other attribute that a SyncBatchNorm
        replaces, and no factory. Then nothing is changed.
    """
    factories = factories or {}
    for name, each in module.named_modules():
        if _is_replaced(each):
            _check_module(each, name or "the module itself", factories)
    return _convert(module, process_group, factories, {})


def _is_replaced(module) -> bool:
    return isinstance(module, _Norm) and not isinstance(module, SyncBatchNorm)


# As type and object have them, whatever a class or its metaclass says.
_get_bases = type.__dict__["__mro__"].__get__
_get_names = type.__dict__["__dict__"].__get__


def _find(kind: type, name: str):
    """The attribute of a class, unbound."""
    for base in _get_bases(kind):
        if name in _get_names(base):
            return _get_names(base)[name]
    return None


def _get_state(module) -> dict | None:
    """The attributes of an object; None: it hides them."""
    try:
        return object.__getattribute__(module, "__dict__")
    except AttributeError:
        return None


def _find_factory(module, factories) -> Factory | None:
    for each in _get_bases(type(module)):
        if each in factories:
            return factories[each]
    return None


# What may run another forward, or has to be that of the replacement. It keeps
# all else that a subclass overrides.
_CALLS = ("__call__", "_call_impl", "_compiled_call_impl", "_slow_forward",
          "_wrapped_call_impl", "forward")
_REPLACED = sorted({
    *_CALLS, "__getattribute__", "__reduce__", "__reduce_ex__", "process_group",
    *(name for name in vars(SyncBatchNorm) if not name.startswith("__"))
} - {"_check_input_dim", "reset_parameters"})


def _is_torchs(kind: type) -> bool:
    return kind is object or kind.__module__.startswith("torch.nn.modules.")


def _has_own(kind: type, name: str) -> bool:
    """Whether a class has another attribute than PyTorch's classes."""
    return not _is_torchs(
        next((base for base in _get_bases(kind) if name in _get_names(base)),
             object))


def _find_override(module) -> str | None:
    """An attribute of a batch norm that its replacement would not have."""
    state = _get_state(module)
    if state is None:
        return "__dict__"
    kind = type(module)
    if _Norm not in _get_bases(kind):
        return "__class__"
    for name in _REPLACED:
        if _has_own(kind, name) or (name in _CALLS and
                                    state.get(name) is not None):
            return name
    # Their class cannot be a base: PyTorch removes them from the module's own.
    if torch.nn.utils.parametrize.is_parametrized(module):
        return "parametrizations"
    return None


def _check_module(module, name: str, factories) -> None:
    lazy = torch.nn.modules.lazy.LazyModuleMixin
    if isinstance(module, lazy) and module.has_uninitialized_params():
        raise ValueError("expected modules whose parameters are initialized, "
                         f"got {type(module).__name__} at {name}; run the "
                         "model once")
    if _find_factory(module, factories) is not None:
        return
    what = f"{type(module).__name__} at {name}"
    override = _find_override(module)
    if override is not None:
        raise ValueError(
            f"expected batch norms that compute what torch.nn.BatchNorm does, "
            f"got {what}, which has its own {override}; give a factory for its "
            "class")
    if not _is_torchs(type(module)):
        if torch.nn.SyncBatchNorm in _get_bases(type(module)):
            raise ValueError(
                f"expected batch norms that are no subclass of PyTorch's "
                f"SyncBatchNorm, which DistributedDataParallel refuses on CPUs, "
                f"got {what}; give a factory for its class")
        try:
            _derive(type(module))
        except Exception as error:
            raise ValueError(f"expected batch norms of classes that may have "
                             f"subclasses, got {what}; give a factory for its "
                             "class") from error


def _convert(module, process_group, factories, converted):
    if id(module) in converted:
        return converted[id(module)][1]
    result = module
    if _is_replaced(module):
        factory = _find_factory(module, factories)
        if factory is not None:
            result = factory(module, _make_sync(module, process_group))
            converted[id(module)] = module, result
            return result
        result = _replace(module, process_group)
    elif isinstance(module, SyncBatchNorm):
        module.process_group = process_group
    # The original stays alive: another module could have its id.
    converted[id(module)] = converted[id(result)] = module, result
    for name, child in list(result._modules.items()):
        if child is None:
            continue
        replacement = _convert(child, process_group, factories, converted)
        if replacement is not child:
            result.add_module(name, replacement)
    return result


def _derive(kind: type) -> type:
    """SyncBatchNorm as a subclass of another batch norm as well: it has all that
    this overrides, whose methods may use super(). One class, as long as it has
    instances; no cache keeps `kind` alive."""
    for each in type.__subclasses__(kind):
        if _get_names(each).get("_converted_from") is kind:
            return each

    def check(self, input):
        kind._check_input_dim(self, input)
        SyncBatchNorm._check_input_dim(self, input)

    def reduce(self, protocol):
        state = object.__reduce_ex__(self, max(protocol, 2))[2]
        return _make_derived, (kind,), state

    names = {"__reduce_ex__": reduce, "_converted_from": kind}
    if _has_own(kind, "_check_input_dim"):
        names["_check_input_dim"] = check
    if _has_own(kind, "reset_parameters"):
        names["reset_parameters"] = _find(kind, "reset_parameters")
    # type() finds the metaclass.
    return type("SyncBatchNorm", (SyncBatchNorm, kind), names)


def _make_derived(kind: type) -> SyncBatchNorm:
    """One without state, such as for pickles."""
    return object.__new__(_derive(kind))


def _copy_slots(module, result) -> None:
    """The attributes that are not in __dict__."""
    for base in _get_bases(type(module)):
        slots = _get_names(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(module,
                                                                   name):
                object.__setattr__(result, name, getattr(module, name))


# A replacement has its own. Handles of hooks refer to the others.
_COPIED = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def _replace(module, process_group) -> SyncBatchNorm:
    """A module of another class with all that `module` has."""
    kind = type(module)
    result = (SyncBatchNorm.__new__(SyncBatchNorm)
              if _is_torchs(kind) else _make_derived(kind))
    for name, value in _get_state(module).items():
        if name in _COPIED:
            value = copy.copy(value)
        elif isinstance(value, types.MethodType) and value.__self__ is module:
            value = types.MethodType(value.__func__, result)
        vars(result)[name] = value
    # Those that take the module have a weak reference to it.
    for hook in vars(result).get("_load_state_dict_pre_hooks", {}).values():
        if getattr(hook, "with_module", False) and hook.module() is module:
            hook.module = weakref.ref(result)
    _copy_slots(module, result)
    vars(result)["process_group"] = process_group
    return result


def _make_sync(module, process_group) -> SyncBatchNorm:
    """The batch norm alone, for factories."""
    result = SyncBatchNorm(module.num_features, module.eps, module.momentum,
                           module.affine, module.track_running_stats,
                           process_group, device="meta")
    for name in ("weight", "bias", "running_mean", "running_var",
                 "num_batches_tracked"):
        setattr(result, name, getattr(module, name))
    return result.train(module.training)
