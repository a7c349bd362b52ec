"""Whole batch norms and gradients in graphs of torch.compile.

Inductor decomposes batch norms of aten and their gradients into its own loops.
While this is active, its table of decompositions turns the forward pass in
training into `bngrad::batch_norm_training`, and the gradient into
`bngrad::batch_norm_backward`, which takes mean and inv_std from the forward
pass. In evaluation, the forward pass is element-wise, and a loop of inductor
computes it together with its neighbours.

A pass on the joint graph of forward and backward first makes ReLUs parts of
these ops, as _relu describes. Then it handles the gradients of other
activations, which are a `where`. Inductor's loops that store or load
a condition are slow on CPUs, ten times as slow as others, since they convert
its bytes one by one. So a condition that compares is recomputed in the backward
pass, from values that most networks save anyway, and in the loop that needs it.
The mask of any other condition between the gradient's op and the incoming
gradient is an operand of the op, if nothing else needs the masked gradient, so
that no loop loads it.
"""

import enum
import functools
import hashlib
import math
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

from . import _devices, _relu

_aten = torch.ops.aten
# PyTorch's logical_not as an op that inductor does not replace by a loop.
_library = torch.library.Library("bngrad", "FRAGMENT")
_library.define("_logical_not(Tensor condition) -> Tensor")
for _key in ("CPU", "CUDA"):
    _library.impl("_logical_not", torch.logical_not, _key)
torch.library.register_fake("bngrad::_logical_not", torch.logical_not,
                            lib=_library)
_OP = _aten.native_batch_norm_backward.default
# The ops of batch norms in graphs, in training.
_FORWARDS = (_aten.native_batch_norm.default,
             _aten._native_batch_norm_legit.default,
             _aten._native_batch_norm_legit.no_stats,
             _aten._native_batch_norm_legit_functional.default)
_COMPARISONS = {overload for name in ("eq", "ge", "gt", "le", "lt", "ne")
                for overload in (getattr(_aten, name).Scalar,
                                 getattr(_aten, name).Tensor)}
_CONNECTIVES = {_aten.bitwise_and.Tensor, _aten.bitwise_not.default,
                _aten.bitwise_or.Tensor, _aten.logical_and.default,
                _aten.logical_not.default, _aten.logical_or.default}


class State(enum.Enum):
    """What is kept whole."""
    NOTHING = enum.auto()
    GRADIENT = enum.auto()
    FORWARD_AND_GRADIENT = enum.auto()


# By the type of a device.
_states: dict[str, State] = {}


def _get_state(input) -> State:
    state = _states.get(input.device.type, State.NOTHING)
    if state == State.NOTHING or not _devices.can_compute(input.device):
        return State.NOTHING
    return state


def _is_covered(input, *parameters) -> bool:
    return (_get_state(input) != State.NOTHING and input.dtype in _devices.DTYPES
            and all(parameter is None or
                    (parameter.dtype in (input.dtype, torch.float32)
                     and parameter.numel() == input.shape[1])
                    for parameter in parameters))


def _decompose(grad_out, input, weight, running_mean, running_var, save_mean,
               save_invstd, train, eps, output_mask):
    mean = save_mean if train else running_mean
    statistic = save_invstd if train else running_var
    if (mean is None or statistic is None
            or not _is_covered(input, weight, mean, statistic)):
        if _replaced[_OP] is None:
            return NotImplemented
        return _replaced[_OP](grad_out, input, weight, running_mean, running_var,
                         save_mean, save_invstd, train, eps, output_mask)
    scale = None if weight is None else weight.to(mean.dtype)
    grads = torch.ops.bngrad.batch_norm_backward(
        grad_out, input, mean, scale=scale,
        variance=None if train else statistic,
        inv_std=statistic if train else None, epsilon=0.0 if train else eps,
        statistics="batch" if train else "global",
        output_mask=list(output_mask))
    if weight is None:
        return grads
    return grads[0], *(None if grad is None else grad.to(weight.dtype)
                       for grad in grads[1:])


# The forward pass -----------------------------------------------------------


def _is_forward_covered(input, *parameters) -> bool:
    """Whether the parameters also have one type, as in eager mode."""
    types = {each.dtype for each in parameters if each is not None}
    return (input.dim() >= 2 and len(types) <= 1
            and _is_covered(input, *parameters))


def _update_running(running, batch, momentum):
    new = momentum * batch + (1 - momentum) * running
    return new.to(running.dtype)


def _train(input, weight, bias, running_mean, running_var, momentum, eps):
    """Output, mean and inv_std, and the new running statistics."""
    is_tracked = running_mean is not None
    output, mean, variance, inv_std = torch.ops.bngrad.batch_norm_training(
        input, weight, bias, eps, output_mask=[True, True, is_tracked, True])
    if not is_tracked:
        return (output, mean, inv_std), ()
    count = input.numel() // input.shape[1]
    # Aten's variance of one element is NaN.
    unbiased = variance * (count / (count - 1) if count != 1 else math.nan)
    return (output, mean, inv_std), (
        _update_running(running_mean, mean, momentum),
        _update_running(running_var, unbiased, momentum))


def _decompose_forward(op, input, *arguments):
    """`op` is one of _FORWARDS."""
    state = _get_state(input)
    if state == State.FORWARD_AND_GRADIENT:
        return _keep_forward(op, input, *arguments)
    if state == State.GRADIENT:
        return _widen_statistics(op, input, *arguments)
    return _replaced[op](input, *arguments)


def _keep_forward(op, *arguments):
    names = [argument.name for argument in op._schema.arguments]
    given = dict(zip(names, arguments, strict=True))
    training = given.pop("training")
    input, weight, bias = arguments[:3]
    running = [given.setdefault(name, None)
               for name in ("running_mean", "running_var")]
    if (not training or (running[0] is None) != (running[1] is None)
            or not _is_forward_covered(input, weight, bias, *running)):
        return _replaced[op](*arguments)
    results, new = _train(**given)
    if len(op._schema.returns) == 5:
        return *results, *new
    for each, value in zip(running, new):
        each.copy_(value)
    return results


def _widen_statistics(op, input, *arguments):
    """Inductor's decomposition, which computes in f32 but would save
    statistics in the type of the data; eager mode saves them in f32."""
    if input.dtype not in (torch.float16, torch.bfloat16):
        return _replaced[op](input, *arguments)
    output, *statistics = _replaced[op](input.float(), *arguments)
    return output.to(input.dtype), *statistics


# The mask of a ReLU ---------------------------------------------------------


def _give_mask(graph: torch.fx.Graph, node: torch.fx.Node,
               grad_output: torch.fx.Node, condition: torch.fx.Node,
               selects_zero: bool) -> None:
    arguments = _relu.get_arguments(node)
    if arguments["mask"] is not None:
        return
    mask = condition
    if selects_zero:
        with graph.inserting_after(condition):
            mask = graph.call_function(torch.ops.bngrad._logical_not.default,
                                       (condition,))
        mask.meta["val"] = torch.logical_not(condition.meta["val"])
    arguments.update(grad_output=grad_output, mask=mask)
    node.args, node.kwargs = tuple(arguments.values()), {}
    _relu.keep_layouts(node)


def _find_comparisons(condition: torch.fx.Node) -> list[torch.fx.Node] | None:
    """The nodes of a condition that is computed from numbers by comparisons."""
    if (condition.op != "call_function" or
            condition.target not in _COMPARISONS | _CONNECTIVES):
        return None
    nodes = [condition]
    if condition.target in _CONNECTIVES:
        for argument in condition.args:
            found = (_find_comparisons(argument)
                     if isinstance(argument, torch.fx.Node) else None)
            if found is None:
                return None
            nodes += found
    return nodes


def _recompute(comparisons: list[torch.fx.Node]) -> None:
    for comparison in comparisons:
        comparison.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def _recompute_conditions_on_outputs(graph: torch.fx.Graph) -> None:
    """Without this, the backward pass would load conditions on what follows a
    whole batch norm, whose output is not recomputed."""
    outputs = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if (node.target in _relu.FORWARDS
                or not outputs.isdisjoint(node.all_input_nodes)):
            outputs.add(node)
        if node.target != _aten.where.self:
            continue
        comparisons = _find_comparisons(node.args[0]) or []
        if any(not outputs.isdisjoint(comparison.all_input_nodes)
               for comparison in comparisons):
            _recompute(comparisons)


def _handle_relus(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if (node.op != "call_function" or
                node.target != _relu.BACKWARD):
            continue
        where = node.args[0]
        found = _relu.find_selection(where)
        if found is None:
            continue
        grad_output, condition, selects_zero = found
        if len(where.users) > 1:
            # One result for all of them, as inductor would write one for each op.
            where.meta["inductor_realize_to_strides"] = True
        comparisons = _find_comparisons(condition)
        if comparisons is not None:
            _recompute(comparisons)
        elif all(user.target == node.target for user in where.users):
            # Each of these nodes takes the mask.
            _give_mask(graph, node, grad_output, condition, selects_zero)
            if not where.users:
                graph.erase_node(where)


def _describe(kind: str, state: State) -> list[bool]:
    """What the C library can compute on the current device of a type."""
    if kind == "cuda" and not torch.cuda.is_initialized():
        return []  # No graph has tensors there.
    device = (torch.device(kind) if kind == "cpu" else
              torch.device(kind, torch.cuda.current_device()))
    has_relus = state == State.FORWARD_AND_GRADIENT
    return [_devices.can_compute(device),
            has_relus and _devices.can_compute(device, has_relu=True)]


def _make_pass(other: Any, states: dict[str, State]):
    """Makes the pass, which runs after the user's passes."""
    from torch._inductor.custom_graph_pass import CustomGraphPass

    others = ([] if other is None else
              list(other) if isinstance(other, (list, tuple)) else [other])

    class BatchNormPass(CustomGraphPass):

        def __call__(self, graph: torch.fx.Graph) -> None:
            for each in others:
                each(graph)
            _relu.fuse(graph)
            _recompute_conditions_on_outputs(graph)
            _handle_relus(graph)

        def uuid(self) -> Any | None:
            """A name of this code and state, in the keys of inductor's caches:
            graphs compiled with others are not mistaken for each other."""
            uuids = [each.uuid() if hasattr(each, "uuid") else None
                     for each in others]
            if None in uuids:
                return None  # Nothing is cached.
            digest = hashlib.sha256()
            for module in (__file__, _relu.__file__):
                digest.update(pathlib.Path(module).read_bytes())
            names = " ".join(
                f"{device}={state.name},{_describe(device, state)}"
                for device, state in sorted(states.items()))
            return ("bngrad", f"{digest.hexdigest()} {names}", *uuids)

    return BatchNormPass()


# States ---------------------------------------------------------------------

# Inductor's decompositions.
_replaced: dict[Any, Callable | None] = {}
_other_pass = None
_own_pass = None


def set_states(states: dict[str, State]) -> None:
    """Changes inductor's table and pass, or restores them."""
    wanted = {device: state for device, state in states.items()
              if state != State.NOTHING}
    if wanted == _states:
        return
    from torch._inductor import decomposition

    if _states:
        _restore(decomposition.decompositions)
    _states.clear()
    _states.update(wanted)
    if _states:
        _replace(decomposition.decompositions)
    # Inductor keeps copies of the table.
    decomposition.fast_random_decomps.cache_clear()


def _replace(table: dict) -> None:
    global _other_pass, _own_pass
    from torch._inductor import config

    _replaced[_OP] = table.get(_OP)
    table[_OP] = _decompose
    for op in _FORWARDS:
        if op in table:
            _replaced[op] = table[op]
            table[op] = functools.partial(_decompose_forward, op)
    _other_pass = config.joint_custom_pre_pass
    _own_pass = _make_pass(_other_pass, dict(_states))
    config.joint_custom_pre_pass = _own_pass


def _restore(table: dict) -> None:
    from torch._inductor import config

    for op, replaced in _replaced.items():
        if replaced is None:
            del table[op]
        else:
            table[op] = replaced
    _replaced.clear()
    # A pass that the user has set meanwhile stays.
    if config.joint_custom_pre_pass is _own_pass:
        config.joint_custom_pre_pass = _other_pass
