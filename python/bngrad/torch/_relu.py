"""ReLUs within the batch norms of graphs of torch.compile.

If nothing but a ReLU reads the output of a batch norm in training, or nothing
but a ReLU reads the sum of that output and a residual, the ReLU becomes a part of
the op: `bngrad::_batch_norm_training_relu`. Its gradient becomes a part of the
op of the gradient, `bngrad::_batch_norm_backward_relu`, which reads the ReLU's
output. The gradient of the residual is a result of that op. So no loop of
inductor reads and writes the data for the ReLU.

The C library compiles kernels for these ops: where it cannot, as without the
package bngrad-compiler, the graph stays as it is.
"""

import operator
from typing import Any

import torch

from . import _devices
from ._ops import _check_data
from ._forward import _accumulator, _check_channels

_aten = torch.ops.aten
TRAINING = torch.ops.bngrad.batch_norm_training.default
BACKWARD = torch.ops.bngrad.batch_norm_backward.default
_TRAINING_RELU = torch.ops.bngrad._batch_norm_training_relu.default
_BACKWARD_RELU = torch.ops.bngrad._batch_norm_backward_relu.default
# Forward passes in graphs.
FORWARDS = (TRAINING, _TRAINING_RELU)

# Fake kernels ---------------------------------------------------------------


@torch.library.register_fake("bngrad::_batch_norm_training_relu")
def _(input, scale, offset, residual, epsilon, output_mask):
    sizes = _check_channels(input, (1,), scale=scale, offset=offset)
    dtype = _accumulator(input, scale, offset)
    return (torch.empty_like(input),
            *(input.new_empty(sizes, dtype=dtype) if is_wanted else None
              for is_wanted in output_mask[1:]))


@torch.library.register_fake("bngrad::_batch_norm_backward_relu")
def _(grad_output, input, mean, inv_std, scale, output, output_mask):
    _check_data(grad_output, input, mean, (1,), scale=scale, inv_std=inv_std,
                output=output)
    return (torch.empty_like(input) if output_mask[0] else None,
            *(mean.new_empty(mean.shape) if is_wanted else None
              for is_wanted in output_mask[1:3]),
            torch.empty_like(input) if output_mask[3] else None)


# Without compiled kernels ---------------------------------------------------
#
# If the C library cannot compile a kernel, as in a program that was exported
# where it could, the ops call these.

_library = torch.library.Library("bngrad", "FRAGMENT")


def _train_and_rectify(input, scale, offset, residual, epsilon):
    output, *statistics = torch.ops.bngrad.batch_norm_training(
        input, scale, offset, epsilon)
    if residual is not None:
        output += residual
    return output.relu_(), *statistics


def _rectify_and_differentiate(grad_output, input, mean, inv_std, scale, output,
                               epsilon):
    masked = torch.empty_like(input)
    masked.copy_(grad_output).masked_fill_(output <= 0, 0)
    return (*torch.ops.bngrad.batch_norm_backward(
        masked, input, mean, scale, inv_std=inv_std), masked)


# The dispatcher passes None for a tensor that is undefined.
_library.define("_train_and_rectify(Tensor input, Tensor scale, Tensor offset, "
                "Tensor residual, float epsilon) -> "
                "(Tensor, Tensor, Tensor, Tensor)")
_library.define("_rectify_and_differentiate(Tensor grad_output, Tensor input, "
                "Tensor mean, Tensor inv_std, Tensor scale, Tensor output, "
                "float epsilon) -> "
                "(Tensor, Tensor, Tensor, Tensor)")
for _function in (_train_and_rectify, _rectify_and_differentiate):
    for _key in ("CPU", "CUDA"):
        _library.impl(_function.__name__, _function, _key)

# Patterns -------------------------------------------------------------------


def get_facts(node: Any):
    """Shape, strides and type of a tensor in a graph; None for anything else."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor):
        return None
    return value.shape, value.stride(), value.dtype


def is_zero(value: Any) -> bool:
    if isinstance(value, torch.fx.Node):
        return (value.op == "call_function" and
                value.target in (_aten.full.default,
                                 _aten.scalar_tensor.default)
                and value.args[-1] == 0)
    return isinstance(value, (int, float)) and value == 0


def find_selection(node: Any):
    """(incoming gradient, condition, whether it selects zero) if `node` is the
    gradient of a ReLU or of a similar activation, a `where`."""
    if not isinstance(node, torch.fx.Node) or node.target != _aten.where.self:
        return None
    condition, first, second = node.args
    for value, zero, selects_zero in ((second, first, True),
                                      (first, second, False)):
        if (is_zero(zero) and get_facts(value) is not None
                and get_facts(value) == get_facts(node)
                and get_facts(condition) is not None
                and get_facts(condition)[:2] == get_facts(node)[:2]):
            return value, condition, selects_zero
    return None


def get_arguments(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments of an op by their names, also those that are not given."""
    arguments = {argument.name: argument.default_value
                 for argument in node.target._schema.arguments}
    arguments.update(zip(arguments, node.args))
    arguments.update(node.kwargs)
    return arguments


def _find_result(node: torch.fx.Node, number: int) -> torch.fx.Node | None:
    """The value of a result; None if nothing uses it."""
    return next((user for user in node.users
                 if user.target == operator.getitem and user.args[1] == number),
                None)


def _get_result_of(value: Any, target: Any, number: int):
    """The node of the op `target` of which `value` is a result."""
    if (isinstance(value, torch.fx.Node) and value.target == operator.getitem
            and value.args[1] == number and value.args[0].target == target):
        return value.args[0]
    return None


def keep_layouts(node: torch.fx.Node) -> None:
    """Makes inductor keep the layouts of the arguments, which were changed."""
    if "eager_input_vals" in node.meta:
        node.meta["eager_input_vals"] = torch.fx.map_arg(
            (node.args, node.kwargs), lambda argument: argument.meta["val"])


def _call(graph: torch.fx.Graph, target: Any, arguments: tuple,
          like: torch.fx.Node, values: tuple) -> torch.fx.Node:
    """A call in the part of the graph and of the program of `like`."""
    node = graph.call_function(target, arguments)
    node.meta = dict(like.meta)
    node.meta["val"] = values
    keep_layouts(node)
    return node


def _are_in_one_region(*nodes: torch.fx.Node) -> bool:
    """Whether a checkpoint saves or recomputes all of them."""
    return all(node.meta.get(key) == nodes[0].meta.get(key)
               for node in nodes for key in ("recompute", "ac_graph_id"))


def _add_result(graph: torch.fx.Graph, node: torch.fx.Node, number: int,
                like: torch.fx.Node) -> torch.fx.Node:
    with graph.inserting_after(node):
        result = graph.call_function(operator.getitem, (node, number))
    result.meta = dict(like.meta)
    return result


# The forward pass -----------------------------------------------------------


def _find_forward(node: torch.fx.Node):
    """(output, residual or None, ReLU) of what follows a batch norm, if nothing
    else reads the output or the sum."""
    output = _find_result(node, 0)
    if output is None or len(output.users) != 1:
        return None
    members, user, residual = [node], next(iter(output.users)), None
    if user.target == _aten.add.Tensor and not user.kwargs:
        residual = user.args[1] if user.args[0] is output else user.args[0]
        # The op takes its place, so it must come later.
        if (get_facts(residual) != get_facts(output) or len(user.users) != 1
                or residual > node):
            return None
        members.append(user)
        user = next(iter(user.users))
    if (user.target != _aten.relu.default
            or get_facts(user) != get_facts(output)
            or not _are_in_one_region(*members, user)):
        return None
    return output, residual, user


def _fuse_forward(graph: torch.fx.Graph, node: torch.fx.Node, output, residual,
                  relu) -> None:
    given = get_arguments(node)
    arguments = (given["input"], given["scale"], given["offset"], residual,
                 given["epsilon"], given["output_mask"])
    with graph.inserting_before(node):
        fused = _call(graph, _TRAINING_RELU, arguments, node, node.meta["val"])
    relu.replace_all_uses_with(_add_result(graph, fused, 0, output))
    graph.erase_node(relu)
    if residual is not None:
        graph.erase_node(next(iter(output.users)))
    graph.erase_node(output)
    node.replace_all_uses_with(fused)
    graph.erase_node(node)


# The gradient ---------------------------------------------------------------


def _find_output(condition: torch.fx.Node, selects_zero: bool):
    """The output of a ReLU whose gradient has this condition."""
    if (condition.target != _aten.le.Scalar or not selects_zero
            or not is_zero(condition.args[1])):
        return None
    output = condition.args[0]
    while output.target == _aten.alias.default:  # made by autograd
        output = output.args[0]
    return output


def _find_backward(node: torch.fx.Node):
    """(where, incoming gradient, the ReLU's output) of the gradient of a batch
    norm whose forward pass has a ReLU."""
    given = get_arguments(node)
    where = given["grad_output"]
    found = find_selection(where)
    if found is None or given["mask"] is not None:
        return None
    output = _find_output(*found[1:])
    forward = _get_result_of(output, _TRAINING_RELU, 0)
    if (forward is None or forward.args[0] is not given["input"]
            or _get_result_of(given["mean"], _TRAINING_RELU, 1) is not forward
            or _get_result_of(given["inv_std"], _TRAINING_RELU,
                              3) is not forward
            or given["statistics"] != "batch"
            or get_facts(where) != get_facts(given["input"])
            or not _are_in_one_region(where, node)):
        return None
    # Its users read the result of the op instead.
    if any(user < node for user in where.users):
        return None
    return where, found[0], output


def _fuse_backward(graph: torch.fx.Graph, node: torch.fx.Node, where,
                   grad_output, output) -> None:
    given = get_arguments(node)
    is_shared = len(where.users) > 1
    arguments = (grad_output, given["input"], given["mean"], given["inv_std"],
                 given["scale"], output, [*given["output_mask"], is_shared])
    values = node.meta["val"]
    values = (*values, where.meta["val"] if is_shared else None)
    with graph.inserting_before(node):
        fused = _call(graph, _BACKWARD_RELU, arguments, node, values)
    node.replace_all_uses_with(fused)
    graph.erase_node(node)
    if is_shared:
        where.replace_all_uses_with(_add_result(graph, fused, 3, where))
    graph.erase_node(where)


def fuse(graph: torch.fx.Graph) -> None:
    """Fuses forward passes and gradients with ReLUs where the C library can
    compile kernels."""
    for node in list(graph.nodes):
        if node.target == TRAINING and _can_fuse(node):
            found = _find_forward(node)
            if found is not None:
                _fuse_forward(graph, node, *found)
    for node in list(graph.nodes):
        if node.target == BACKWARD:
            found = _find_backward(node)
            if found is not None:
                _fuse_backward(graph, node, *found)


def _can_fuse(node: torch.fx.Node) -> bool:
    value = get_arguments(node)["input"].meta["val"]
    return (list(get_arguments(node)["feature_dims"]) == [1]
            and _devices.can_compute(value.device, has_relu=True))
