"""Other implementations, called through PyTorch, that BNGrad is compared with.

Each function returns one call for each copy of the data. A call returns its results
in the order of BNGrad's, in the shapes of memory, or None if it computes something
else. Memory of the results is that of the graph in which the calls are captured, so
replays allocate nothing."""

import functools
import importlib.util

import torch

import device
import items

# Modules that an implementation needs besides PyTorch.
MODULES = {"apex": "syncbn", "quack": "quack", "cudnn_graph": "cudnn", "flag_gems": "flag_gems",
           "triton": "triton"}
# A result of another implementation may err by as many bounds before it counts as wrong.
SLACK = 256


class NotOffered(device.Error):
    """The implementation is not installed, or does not take the item."""


def why_absent(name):
    """None if the implementation can be tried here."""
    module = MODULES.get(name)
    if module and importlib.util.find_spec(module) is None:
        return f"the module {module} is not installed"
    return None


def _parameters(data):
    return [tensor.flatten() for tensor in (data.scale, data.mean, data.inv_std)]


def _in_memory(data, results):
    """Results with logical sizes as (N, C, S) of memory; None for those that are not there."""
    sizes, _ = data.item.folded
    tensor, *per_channel = results
    case = data.item.case
    if case.layout == "nhwc" and len(case.sizes) > 2:
        tensor = tensor.permute(0, *range(2, tensor.dim()), 1)
    channel = data.mean.shape
    return [tensor.reshape(sizes), *(each if each is None else each.reshape(channel) for each in per_channel)]


def _forward(data, op):
    """Calls of a forward pass of aten, which returns output, mean and inv_std first."""
    scale, offset = data.scale.flatten(), data.offset.flatten()

    def bind(copy):
        x = data.logical(data.input[copy])

        def call():
            output, mean, inv_std, *_ = op(x, scale, offset, None, None, True, 0.1, items.EPSILON)
            return output, mean, None, inv_std

        return call

    return [bind(copy) for copy in range(len(data.input))]


def native(data):
    """PyTorch's own kernels."""
    if data.item.is_training:
        return _forward(data, torch.ops.aten.native_batch_norm)
    op = torch.ops.aten.native_batch_norm_backward
    scale, mean, inv_std = _parameters(data)

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: op(dy, x, scale, mean, mean, mean, inv_std, True, items.EPSILON, [True] * 3)

    return [bind(copy) for copy in range(len(data.input))]


def cudnn(data):
    scale, mean, inv_std = _parameters(data)
    if len(data.item.sizes) == 2:
        raise NotOffered("PyTorch does not call cuDNN for 2-D data")
    if data.item.is_training:
        return _forward(data, torch.ops.aten.cudnn_batch_norm)
    # The reserve space is that of the forward pass.
    x = data.logical(data.input[0])
    *_, reserve = torch.ops.aten.cudnn_batch_norm(
        x, scale, torch.zeros_like(scale), None, None, True, 0.1, items.EPSILON
    )
    op = torch.ops.aten.cudnn_batch_norm_backward

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: op(x, dy, scale, None, None, mean, inv_std, items.EPSILON, reserve)

    return [bind(copy) for copy in range(len(data.input))]


@functools.cache
def _cudnn_handle():
    """One for the process, as each has memory of the device."""
    import cudnn

    return cudnn.create_handle()


def cudnn_graph(data):
    """cuDNN's graph API, through its own Python package."""
    import cudnn

    types = {
        torch.float16: cudnn.data_type.HALF,
        torch.bfloat16: cudnn.data_type.BFLOAT16,
        torch.float32: cudnn.data_type.FLOAT,
    }
    dtype = data.input[0].dtype
    handle = _cudnn_handle()
    graph = cudnn.pygraph(
        io_data_type=types[dtype],
        intermediate_data_type=cudnn.data_type.FLOAT,
        compute_data_type=cudnn.data_type.FLOAT,
        handle=handle,
    )
    rank = len(data.item.sizes)
    channel = [1, data.item.case.channels] + [1] * (rank - 2)
    parameters = [tensor.reshape(channel) for tensor in (data.scale, data.mean, data.inv_std)]
    tensors = [data.logical(data.grad_output[0]), data.logical(data.input[0]), *parameters]
    operands = [graph.tensor_like(tensor) for tensor in tensors]
    names = ("grad", "input", "scale", "mean", "inv_variance")
    results = graph.batchnorm_backward(name="gradient", **dict(zip(names, operands)))
    for result, kind in zip(results, (types[dtype], cudnn.data_type.FLOAT, cudnn.data_type.FLOAT)):
        result.set_output(True).set_data_type(kind)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(1, graph.get_workspace_size()), device=tensors[0].device, dtype=torch.uint8)

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        outputs = [torch.empty_like(x), torch.empty_like(parameters[0]), torch.empty_like(parameters[0])]
        pack = dict(zip([*operands, *results], [dy, x, *parameters, *outputs]))

        def call():
            cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
            graph.execute(pack, workspace, handle=handle)
            return outputs

        return call

    return [bind(copy) for copy in range(len(data.input))]


def flag_gems(data):
    """The Triton kernel of FlagGems, for the N, C, S that it reads."""
    from flag_gems.ops import batch_norm_backward

    scale, mean, inv_std = _parameters(data)

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: batch_norm_backward(dy, x, scale, None, None, mean, inv_std, True, items.EPSILON, [True] * 3)

    return [bind(copy) for copy in range(len(data.input))]


def triton(data):
    """The kernels of triton_kernels.py."""
    import triton_kernels

    parameters = [tensor.flatten() for tensor in (data.mean, data.inv_std, data.scale)]
    case = data.item.case
    rows, length = case.elements // case.channels, case.row if case.layout == "nchw" else 1

    def bind(copy):
        dy, x = data.grad_output[copy], data.input[copy]
        call = triton_kernels.bind(dy, x, *parameters, rows, case.channels, length)

        def run():
            grad_input, *others = call()
            return data.logical(grad_input), *others

        return run

    return [bind(copy) for copy in range(len(data.input))]


def compiled(data):
    """torch.compile of PyTorch's decomposition."""
    torch._dynamo.reset()
    if data.item.is_training:
        return _forward(data, torch.compile(torch.ops.aten.native_batch_norm, dynamic=False))
    scale, mean, inv_std = _parameters(data)

    @torch.compile(dynamic=False)
    def function(dy, x):
        return torch.ops.aten.native_batch_norm_backward(
            dy, x, scale, mean, mean, mean, inv_std, True, items.EPSILON, [True] * 3
        )

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: function(dy, x)

    return [bind(copy) for copy in range(len(data.input))]


def apex(data):
    """The two kernels of Apex's SyncBatchNorm, for a group of one process."""
    import syncbn

    scale, mean, inv_std = _parameters(data)
    case = data.item.case
    is_last = case.layout == "nhwc"
    reduce = syncbn.reduce_bn_c_last if is_last else syncbn.reduce_bn
    apply = syncbn.batchnorm_backward_c_last if is_last else syncbn.batchnorm_backward
    count = torch.tensor([case.elements // case.channels], dtype=torch.int32, device=mean.device)

    def bind(copy):
        # Channels are the last dim, or dim 1.
        dy, x = (
            tensor[copy].reshape(case.memory_sizes) for tensor in (data.grad_output, data.input)
        )

        def call():
            sum_dy, sum_dy_xmu, grad_scale, grad_offset = reduce(dy, x, mean, inv_std, scale)
            grad_input = apply(dy, x, mean, inv_std, scale, sum_dy, sum_dy_xmu, count)
            return data.logical(grad_input), grad_scale, grad_offset

        return call

    return [bind(copy) for copy in range(len(data.input))]


def quack(data):
    """quack's gradient of RMSNorm on rows of channels: it also reads two tensors and writes
    one, and sums over the rows for its weight."""
    from quack.rmsnorm import rmsnorm_bwd

    case = data.item.case
    if case.layout != "nhwc":
        raise NotOffered("quack has gradients of rows only")
    shape = (-1, case.channels)
    weight = data.scale.flatten()

    def bind(copy):
        dy, x = data.grad_output[copy].reshape(shape), data.input[copy].reshape(shape)
        rstd = (x.float().square().mean(1) + items.EPSILON).rsqrt()

        def call():
            rmsnorm_bwd(x, weight, dy, rstd)

        return call

    return [bind(copy) for copy in range(len(data.input))]


CALLS = {
    "torch": native,
    "cudnn": cudnn,
    "cudnn_graph": cudnn_graph,
    "apex": apex,
    "compile": compiled,
    "quack": quack,
    "flag_gems": flag_gems,
    "triton": triton,
}


# Those whose forward pass is measured, too.
FORWARD = ("torch", "cudnn", "compile")


def make(name, data):
    """The calls of an implementation, whose results are right; otherwise an error."""
    why = why_absent(name)
    if why:
        raise NotOffered(why)
    if data.item.is_training and name not in FORWARD:
        raise NotOffered("only its gradient is measured")
    calls = CALLS[name](data)
    results = calls[0]()
    if results is not None:
        data.compare(_in_memory(data, results), SLACK)
    return calls
