"""Whole gradients of batch norms in graphs of torch.compile.

Inductor decomposes `aten::native_batch_norm_backward` into its own loops.
While this is active, its table of decompositions turns the gradient into
`bngrad::batch_norm_backward` instead. A pass on the joint graph of forward and
backward handles a ReLU between the op and the incoming gradient, which leaves a
`where` there. The forward pass saves its statistics in f32 for data of 16 bits,
as eager mode does. Inductor's loops that store or load a condition are slow on CPUs,
ten times as slow as others, since they convert its bytes one by one. So a
condition that compares is recomputed in the backward pass, from values that
most networks save anyway, and in the loop that needs it. The mask of any other
condition is an operand of the op, if nothing else needs the masked gradient, so
that no loop loads it.
"""

import functools
import hashlib
import pathlib
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

_aten = torch.ops.aten
# PyTorch's logical_not as an op that inductor does not replace by a loop.
_library = torch.library.Library("bngrad", "FRAGMENT")
_library.define("_logical_not(Tensor condition) -> Tensor")
_library.impl("_logical_not", torch.logical_not, "CPU")
torch.library.register_fake("bngrad::_logical_not", torch.logical_not,
                            lib=_library)
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
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
# The number of an argument of bngrad::batch_norm_backward.
_MASK = 7


def _is_covered(input, weight, mean, statistic) -> bool:
    parameters = [weight, mean, statistic]
    return (input.device.type == "cpu" and input.dtype in _DTYPES
            and mean is not None and statistic is not None
            and mean.numel() == input.shape[1]
            and all(parameter is None or
                    parameter.dtype in (input.dtype, torch.float32)
                    for parameter in parameters))


def _decompose(grad_out, input, weight, running_mean, running_var, save_mean,
               save_invstd, train, eps, output_mask):
    mean = save_mean if train else running_mean
    statistic = save_invstd if train else running_var
    if not _is_covered(input, weight, mean, statistic):
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


def _decompose_forward(replaced: Callable, input, *arguments):
    """Inductor's decomposition, which computes in f32 but would save
    statistics in the type of the data."""
    if (input.device.type != "cpu" or
            input.dtype not in (torch.float16, torch.bfloat16)):
        return replaced(input, *arguments)
    output, *statistics = replaced(input.float(), *arguments)
    return output.to(input.dtype), *statistics


# The mask of a ReLU ---------------------------------------------------------


def _is_zero(value: Any) -> bool:
    if isinstance(value, torch.fx.Node):
        return (value.op == "call_function" and
                value.target in (_aten.full.default,
                                 _aten.scalar_tensor.default)
                and value.args[-1] == 0)
    return isinstance(value, (int, float)) and value == 0


def _facts(node: Any):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return None
    return value.shape, value.stride(), value.dtype


def _find_relu(node: torch.fx.Node):
    """(where, incoming gradient, condition, whether it selects zero) of a
    ReLU's gradient that is the grad_output of `node`."""
    where = node.args[0]
    if (not isinstance(where, torch.fx.Node)
            or where.target != _aten.where.self):
        return None
    condition, first, second = where.args
    for value, zero, selects_zero in ((second, first, True),
                                      (first, second, False)):
        if (_is_zero(zero) and _facts(value) is not None
                and _facts(value) == _facts(where)
                and _facts(condition) is not None
                and _facts(condition)[:2] == _facts(where)[:2]):
            return where, value, condition, selects_zero
    return None


def _give_mask(graph: torch.fx.Graph, node: torch.fx.Node,
               grad_output: torch.fx.Node, condition: torch.fx.Node,
               selects_zero: bool) -> None:
    arguments = [argument.default_value
                 for argument in node.target._schema.arguments]
    arguments[:len(node.args)] = node.args
    if arguments[_MASK] is not None or node.kwargs:
        return
    mask = condition
    if selects_zero:
        with graph.inserting_after(condition):
            mask = graph.call_function(torch.ops.bngrad._logical_not.default,
                                       (condition,))
        mask.meta["val"] = torch.logical_not(condition.meta["val"])
    arguments[0], arguments[_MASK] = grad_output, mask
    node.args = tuple(arguments)
    # Inductor must keep these layouts.
    if "eager_input_vals" in node.meta:
        node.meta["eager_input_vals"] = torch.fx.map_arg(
            (node.args, node.kwargs), lambda argument: argument.meta["val"])


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


def _handle_relus(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if (node.op != "call_function" or
                node.target != torch.ops.bngrad.batch_norm_backward.default):
            continue
        found = _find_relu(node)
        if found is None:
            continue
        where, grad_output, condition, selects_zero = found
        if len(where.users) > 1:
            # One result for all of them, as inductor would write one for each op.
            where.meta["inductor_realize_to_strides"] = True
        comparisons = _find_comparisons(condition)
        if comparisons is not None:
            for comparison in comparisons:
                comparison.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        elif all(user.target == node.target for user in where.users):
            # Each of these nodes takes the mask.
            _give_mask(graph, node, grad_output, condition, selects_zero)
            if not where.users:
                graph.erase_node(where)


def _make_pass(other: Any):
    """Makes the pass, which runs after the user's passes."""
    from torch._inductor.custom_graph_pass import CustomGraphPass

    others = ([] if other is None else
              list(other) if isinstance(other, (list, tuple)) else [other])

    class BatchNormPass(CustomGraphPass):

        def __call__(self, graph: torch.fx.Graph) -> None:
            for each in others:
                each(graph)
            _handle_relus(graph)

        def uuid(self) -> Any | None:
            """A name of this code, in the keys of inductor's caches: graphs
            compiled with and without it are not mistaken for each other."""
            uuids = [each.uuid() if hasattr(each, "uuid") else None
                     for each in others]
            if None in uuids:
                return None  # Nothing is cached.
            source = pathlib.Path(__file__).read_bytes()
            return ("bngrad", hashlib.sha256(source).hexdigest(), *uuids)

    return BatchNormPass()


# State ----------------------------------------------------------------------

_active = False
# Inductor's decompositions.
_replaced: dict[Any, Callable | None] = {}
_other_pass = None
_own_pass = None


def set_active(active: bool) -> None:
    """Changes inductor's table and pass, or restores them."""
    global _active, _other_pass, _own_pass
    if active == _active:
        return
    from torch._inductor import config, decomposition

    table = decomposition.decompositions
    if active:
        _replaced[_OP] = table.get(_OP)
        table[_OP] = _decompose
        for op in _FORWARDS:
            if op in table:
                _replaced[op] = table[op]
                table[op] = functools.partial(_decompose_forward, table[op])
        _other_pass = config.joint_custom_pre_pass
        _own_pass = _make_pass(_other_pass)
        config.joint_custom_pre_pass = _own_pass
    else:
        for op, replaced in _replaced.items():
            if replaced is None:
                del table[op]
            else:
                table[op] = replaced
        _replaced.clear()
        # A pass that the user has set meanwhile stays.
        if config.joint_custom_pre_pass is _own_pass:
            config.joint_custom_pre_pass = _other_pass
    # Inductor keeps copies of the table.
    decomposition.fast_random_decomps.cache_clear()
    _active = active
