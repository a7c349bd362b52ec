"""The C library's functions as functions of JAX.

On a CPU and on CUDA they are custom calls, elsewhere, and where the library has no
kernel, the formulas of `_formulas`. A dict has the operands that are present, by name.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from .. import _numpy
from . import _formulas, _prepare

# Of each op, the handler of its custom call on a CPU and its formula. The handlers for CUDA have longer names.
# Exported modules name the target, "bngrad.<op>".
_OPS = {
    "batch_norm_backward": ("bngradJaxBackward", _formulas.backward),
    "batch_norm_backward_reduce": ("bngradJaxBackwardReduce", _formulas.reduce),
    "batch_norm_backward_elemt": ("bngradJaxBackwardElemt", _formulas.elemt),
    "batch_norm_training": ("bngradJaxTraining", _formulas.training),
    "batch_norm_inference": ("bngradJaxInference", _formulas.inference),
}
# The shape of each operand, and how each op uses it.
_ROLES, _USES = _numpy._ROLES, _numpy._OPS
_STATISTICS = ("mean", "variance", "inv_std")
# The limits of the C library.
_MOST_DIMS, _MOST_FEATURE_DIMS = 16, 8


@dataclasses.dataclass(frozen=True)
class Options:
    """The attributes of a call; `feature_dims` are ascending, and at least 0."""

    feature_dims: tuple[int, ...]
    epsilon: float = 0.0
    statistics: str = "batch"
    statistic: str = "variance"
    # For each of `get_wanted()`; empty: all of them.
    wanted: tuple[bool, ...] = ()
    # For elemt; -1 if it is an operand.
    count: int = -1


def register() -> None:
    """Registers the handlers with XLA. Those for CUDA wait until JAX has loaded its plugin."""
    library = _prepare.load()

    def find(symbol):
        return jax.ffi.pycapsule(getattr(library, symbol))

    for op, (symbol, _) in _OPS.items():
        cuda = {"initialize": find(symbol + "CudaInitialize"), "execute": find(symbol + "Cuda")}
        jax.ffi.register_ffi_target("bngrad." + op, find(symbol), platform="cpu")
        jax.ffi.register_ffi_target("bngrad." + op, cuda, platform="CUDA")


def get_wanted(op: str) -> tuple[str, ...]:
    """The results of an op that may be absent."""
    return tuple(name for name, use in _USES[op].items() if use == "wanted")


def varying_axes(value: jax.Array) -> frozenset:
    """The axes of a `shard_map` over which a value varies."""
    type = jax.typeof(value)
    if hasattr(type, "manual_axis_type"):
        return type.manual_axis_type.varying
    return type.vma


def vary_alike(tree):
    """Arrays that vary over the same axes of a `shard_map`; cotangents of those
    that did not are summed."""
    leaves, structure = jax.tree.flatten(tree)
    axes = [varying_axes(leaf) for leaf in leaves]
    union = frozenset().union(*axes)

    def cast(leaf, own):
        missing = tuple(sorted(union - own, key=str))
        if not missing:
            return leaf
        if hasattr(lax, "pcast"):
            return lax.pcast(leaf, missing, to="varying")
        return lax.pvary(leaf, missing)

    return structure.unflatten(cast(*pair) for pair in zip(leaves, axes))


def _describe(shape, type, like):
    """A result that varies over the same axes as `like`."""
    if not varying_axes(like):
        return jax.ShapeDtypeStruct(shape, type)
    aval = jax.typeof(like)
    sharding = NamedSharding(aval.sharding.mesh, P())
    if hasattr(aval, "manual_axis_type"):
        return jax.ShapeDtypeStruct(shape, type, sharding=sharding, manual_axis_type=aval.manual_axis_type)
    return jax.ShapeDtypeStruct(shape, type, sharding=sharding, vma=aval.vma)


def _wanted(op, options):
    wanted = dict(zip(get_wanted(op), options.wanted))
    return tuple(name for name, use in _USES[op].items()
                 if use == "result" or use == "wanted" and wanted.get(name, True))


def _operands(op):
    """The order of operands; some may be absent."""
    names = [name for name, use in _USES[op].items() if use in ("required", "optional")]
    return sorted(names, key=lambda name: _ROLES[name] == "scalar")


def _attributes(op, options, operands):
    uses = _USES[op]
    attributes = {
        "rank": np.int64(operands["input"].ndim),
        "feature_dims": np.array(options.feature_dims, np.int64),
    }
    for name, use in uses.items():
        if use == "optional" or use == "required" and _ROLES[name] == "scalar":
            attributes["has_" + name] = name in operands
        elif use == "wanted":
            attributes["wants_" + name] = name in _wanted(op, options)
    if "statistic" in uses or op == "batch_norm_training":
        attributes["epsilon"] = np.float64(options.epsilon)
    if "statistic" in uses:
        attributes["statistic"] = options.statistic
    if "count" in uses:
        attributes["count"] = np.int64(options.count)
    if op == "batch_norm_backward":
        attributes["statistics"] = options.statistics
    return attributes


def _find_form(shape, feature_dims):
    """An order of dims and a shape of (outer, channels, inner) for data that the
    ready kernels do not take directly; otherwise None.

    The kernels take feature dims that are adjacent in memory.
    """
    features = [dim for dim in feature_dims if shape[dim] != 1]
    first, last = (features[0], features[-1]) if features else (0, -1)
    inside = [dim for dim in range(first, last + 1) if dim not in feature_dims]
    order = tuple(range(len(shape)))
    if any(shape[dim] != 1 for dim in inside):
        reduced = tuple(dim for dim in order if dim not in feature_dims)
        order = reduced + tuple(feature_dims)
        first, last = len(reduced), len(shape) - 1
    elif len(shape) <= _MOST_DIMS and len(feature_dims) <= _MOST_FEATURE_DIMS:
        return None
    sizes = [shape[dim] for dim in order]
    parts = sizes[:first], sizes[first:last + 1], sizes[last + 1:]
    return order, tuple(math.prod(part) for part in parts)


def _vectors(operands):
    return [value for name, value in operands.items() if _ROLES[name] == "channel"]


def _result_types(options, operands):
    """Shape and type of each result."""
    input = operands["input"]
    channels = tuple(input.shape[dim] for dim in options.feature_dims)
    arithmetic = _formulas.find_type(operands)
    vector = operands["mean"].dtype if "mean" in operands else arithmetic
    return {
        "grad_input": (input.shape, input.dtype),
        "grad_scale": (channels, vector),
        "grad_offset": (channels, vector),
        "sums": ((2, *channels), jnp.promote_types(input.dtype, jnp.float32)),
        "output": (input.shape, input.dtype),
        "mean": (channels, arithmetic),
        "variance": (channels, arithmetic),
        "inv_std": (channels, arithmetic),
    }


def _ffi_call(op, options, operands):
    """The custom call for operands that its kernels take."""
    types = _result_types(options, operands)
    results = [_describe(*types[name], operands["input"]) for name in _wanted(op, options)]
    call = jax.ffi.ffi_call("bngrad." + op, results, vmap_method="expand_dims")
    given = [operands[name] for name in _operands(op) if name in operands]
    return call(*given, **_attributes(op, options, operands))


def _widen(operands):
    """The ready kernels take vectors of f64 only with data of f64."""
    is_wide = any(value.dtype == jnp.float64 for value in _vectors(operands))
    if not is_wide or operands["input"].dtype == jnp.float64:
        return operands
    return {name: value.astype(jnp.float64) if name in ("grad_output", "input", "sums") else value
            for name, value in operands.items()}


def _fit(form, operands):
    """The operands that the kernels take."""
    operands = _widen(operands)
    if not form:
        return operands
    order, (outer, channels, inner) = form

    def change(name, value):
        if _ROLES[name] == "scalar":
            return value
        if _ROLES[name] == "data":
            return value.transpose(order).reshape(outer, channels, inner)
        return value.reshape((2, channels) if _ROLES[name] == "sums" else (channels,))

    return {name: change(name, value) for name, value in operands.items()}


def _fit_options(form, options):
    return dataclasses.replace(options, feature_dims=(1,)) if form else options


def _split_count(options, operands):
    """`count` as an operand of two int32, low half first, which a kernel reads as an int64; JAX may have no int64."""
    if "count" not in operands:
        count = np.array([options.count], np.int64).view(np.int32)
    elif operands["count"].dtype == jnp.int64:
        count = lax.bitcast_convert_type(operands["count"], jnp.int32)
    else:
        count = jnp.stack([operands["count"], operands["count"] >> 31])
    operands = {**operands, "count": jnp.asarray(count)}
    return dataclasses.replace(options, count=-1), vary_alike(operands)


def _custom_call(platform, op, options, operands):
    """The custom call, in a form that the ready kernels take."""
    if platform == "cuda" and "count" in _USES[op]:
        options, operands = _split_count(options, operands)
    types = _result_types(options, operands)
    form = _find_form(operands["input"].shape, options.feature_dims)
    results = []
    values = _ffi_call(op, _fit_options(form, options), _fit(form, operands))
    for name, result in zip(_wanted(op, options), values):
        shape, type = types[name]
        if form and _ROLES[name] == "data":
            order = form[0]
            result = result.reshape([shape[dim] for dim in order]).transpose(np.argsort(order))
        results.append(result.reshape(shape).astype(type))
    return tuple(results)


def _has_kernel(platform, op, options, operands):
    """Whether the library computes an op; `operands` have shapes and types."""
    operands = {name: value for name, value in operands.items() if _ROLES[name] != "scalar"}
    types = _result_types(options, operands)
    form = _find_form(operands["input"].shape, options.feature_dims)
    described = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in operands.items()}
    tensors = jax.eval_shape(functools.partial(_fit, form), described)
    options = _fit_options(form, options)
    types = _result_types(options, tensors)
    tensors |= {name: jax.ShapeDtypeStruct(*types[name]) for name in _wanted(op, options)}
    return _prepare.has_kernel(platform, op, options, tensors)


_checked = _prepare.Checked(_has_kernel, _custom_call, lambda op, options, operands: _OPS[op][1](options, operands))


# For calls outside of a jit.
@functools.partial(jax.jit, static_argnums=(0, 1), inline=True)
def _dispatch(op, options, operands):
    return _checked.call(op, options, operands)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _differentiable(op, options, operands):
    return _dispatch(op, options, operands)


@_differentiable.defjvp
def _differentiate(op, options, primals, tangents):
    (operands,), (moved,) = primals, tangents
    fixed = {name: operands[name] for name in ("mask", "count") if name in operands}
    free = {name: operands[name] for name in operands if name not in fixed}

    def formula(operands):
        return _OPS[op][1](options, {**operands, **fixed})

    _, changes = jax.jvp(formula, (free,), ({name: moved[name] for name in free},))
    return _differentiable(op, options, operands), changes


def _is_sharded(value):
    """Whether the type of a value, on a mesh with explicit axes, has a sharding."""
    return any(axis is not None for axis in jax.typeof(value).sharding.spec)


def call(op: str, options: Options, operands: dict) -> tuple:
    """The wanted results of a function of the C library.

    Data have the type of input, sums f32 (f64 for data of f64), gradients the type
    of mean, and statistics the type of the arithmetic. JAX differentiates the
    formulas. XLA cannot partition a custom call, so operands with a sharding are
    gathered.
    """
    spec = jax.typeof(operands["input"]).sharding.spec
    is_sharded = any(map(_is_sharded, operands.values()))
    if is_sharded:
        operands = {name: jax.sharding.reshard(value, P(*[None] * value.ndim)) for name, value in operands.items()}
    results = _differentiable(op, options, vary_alike(operands))
    if not is_sharded:
        return results
    # As jax.numpy does.
    specs = {"data": spec, "channel": P(*[spec[dim] for dim in options.feature_dims])}
    names = _wanted(op, options)
    return tuple(
        jax.sharding.reshard(result, specs[_ROLES[name]]) if _ROLES[name] == "data" or name in _STATISTICS else result
        for name, result in zip(names, results))
