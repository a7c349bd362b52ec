"""Batch norms of PyTorch and JAX on a GPU, with and without BNGrad: the part `frameworks` of the GPU suite.

A task is one of

    op TYPE LAYOUT NxCxHxW           a forward pass in training and its gradient, eager
    step eager|compiled|captured     a training step of ResNet-50: channels-last, autocast to bf16
    flax                             a training step of a residual network of flax

The names of the last two may end in ` small`, for a test. bundle.py packs the package `bngrad` beside this file, in the
folder `site`. The two contenders take turns. Times are those of events in the stream, which is held until the host has
queued an op; those of flax are those of the host, until the last step has ended. BNGrad is switched on and off outside
of what is timed."""

import contextlib
import os
import pathlib
import statistics
import sys
import time
import warnings

import cuda_driver
import judge
import timing
from framework_tasks import BATCH, OURS, PLAIN, TYPES

HERE = pathlib.Path(__file__).resolve().parent
SITE = HERE / "site"
OP_ROUNDS, STEP_ROUNDS, STEPS = 15, 6, 4
# Steps whose losses are compared. Those of bf16 differ more from step to step.
LOSSES, MOST_LOSS_DIFFERENCE = 8, 0.02
# An error of BNGrad is at most as many times PyTorch's, and a rounding of the largest value.
MOST_ERRORS = 2


def find_package():
    """Makes bngrad importable; why it is not, or does not compute on the GPU, or None."""
    if SITE.is_dir():
        sys.path.insert(0, str(SITE))
    try:
        import torch

        import bngrad.torch
    except ImportError as error:
        return f"no bngrad: {timing.first_line(error)}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not bngrad.torch._devices.can_compute(torch.device("cuda", 0)):
            return timing.first_line(caught[-1].message)
    return None


# Times ------------------------------------------------------------------------


def take_turns(contenders, rounds, measure):
    """Milliseconds by contender and round. The order rotates."""
    times = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            elapsed = measure(contenders[name])
            if number > 0:
                times[name].append(elapsed)
    return times


def compare(times):
    """Medians, and PyTorch's time over BNGrad's with its interval."""
    ratios = [plain / ours for plain, ours in zip(times[PLAIN], times[OURS])]
    ratio, *interval = judge.find_interval(ratios, PLAIN)
    return {"ms": {name: statistics.median(values) for name, values in times.items()}, "ratio": ratio,
            "interval": interval}


def time_on_device(function):
    """Milliseconds of a function in PyTorch's stream."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def hold(microseconds):
    """PyTorch's stream executes nothing as long."""
    import torch

    cuda_driver.Driver().hold(torch.cuda.current_stream().cuda_stream, microseconds)


def time_queued(function):
    """The same without waiting for the host: the stream is held until all is queued. If that took too long, the function
    runs again."""
    microseconds, seconds = timing.FIRST_HOLD_US, []

    def run():
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)

    while True:
        hold(microseconds)
        elapsed = time_on_device(run)
        if seconds[-1] * 1e6 < microseconds / 2 or microseconds >= timing.MOST_HOLD_US:
            return elapsed
        microseconds *= 2


def find_fallbacks(function):
    """The ops that `function` leaves to PyTorch while BNGrad is enabled."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        function()
    return sorted({event.key for event in profiled.key_averages() if "_original_" in event.key})


def switch(is_ours, **options):
    import bngrad.torch

    return bngrad.torch.enabled(devices=["cuda"], **options) if is_ours else contextlib.nullcontext()


# Ops --------------------------------------------------------------------------


def make_data(shape, dtype, layout):
    """Input and grad_output, of which no two channels have the same mean and deviation."""
    import torch

    torch.manual_seed(7)
    channel = torch.arange(shape[1], device="cuda").view(1, -1, 1, 1)
    format = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    return [(torch.randn(shape, device="cuda") * (1 + 0.05 * (channel % 29)) + offset + 0.02 * (
        channel % 31)).to(dtype).contiguous(memory_format=format) for offset in (0.3, -0.7)]


def run_op(x, grad_output, weight, bias):
    import torch

    output = torch.nn.functional.batch_norm(x, None, None, weight, bias, True)
    return output, *torch.autograd.grad(output, (x, weight, bias), grad_output)


def measure_op(name):
    import torch

    type, layout, sizes = name.split()
    shape = [int(size) for size in sizes.split("x")]
    dtype = getattr(torch, TYPES[type])
    x, grad_output = make_data(shape, dtype, layout)
    x.requires_grad_()
    weight = torch.linspace(0.5, 1.5, shape[1], device="cuda").requires_grad_()
    bias = torch.linspace(-1, 1, shape[1], device="cuda").requires_grad_()

    exact = [each.detach() for each in run_op(
        *(each.detach().double().requires_grad_() for each in (x, grad_output, weight, bias)))]
    errors = {}
    for name, is_ours in ((PLAIN, False), (OURS, True)):
        with switch(is_ours):
            errors[name] = [float((result.detach().double() - value).abs().max())
                            for result, value in zip(run_op(x, grad_output, weight, bias), exact)]
    for number, what in enumerate(("output", "grad_input", "grad_weight", "grad_bias")):
        size = float(exact[number].abs().max())
        most = MOST_ERRORS * errors[PLAIN][number] + torch.finfo(dtype if number < 2 else torch.float32).eps * size
        if not errors[OURS][number] <= most:
            return {"error": f"{what}: expected an error of at most {most:.3g}, got {errors[OURS][number]:.3g}"}
    del exact
    with switch(True):
        if found := find_fallbacks(lambda: run_op(x, grad_output, weight, bias)):
            return {"error": f"expected BNGrad to compute, got {', '.join(found)}"}

    def measure(is_ours):
        with switch(is_ours):
            return time_queued(lambda: run_op(x, grad_output, weight, bias))

    return compare(take_turns({PLAIN: False, OURS: True}, OP_ROUNDS, measure)) | {
        "tensor_bytes": x.numel() * x.element_size()}


# Steps of PyTorch -------------------------------------------------------------


def make_model(is_small):
    """A network, and the batch and the size of its images."""
    from torch import nn

    if not is_small:
        import torchvision
        return torchvision.models.resnet50(), BATCH, 224
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 6, 3), nn.BatchNorm2d(6),
                         nn.Flatten(), nn.Linear(6 * 5 * 5, 9)), 4, 9


class Step:
    """A training step of a model, whose data stay in place."""

    def __init__(self, kind, is_ours, is_small):
        import torch

        self.kind, self.is_ours = kind, is_ours
        torch.manual_seed(0)
        model, batch, size = make_model(is_small)
        self.model = model.to("cuda", memory_format=torch.channels_last).train()
        self.run_model = self.model
        if kind == "compiled":
            # Each has graphs of its own.
            self.run_model = torch.compile(self.model)
        self.images = torch.randn(batch, 3, size, size, device="cuda").contiguous(memory_format=torch.channels_last)
        self.labels = torch.arange(batch, device="cuda")
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9)
        self.graph = self.loss = None

    def compute(self):
        import torch

        self.optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.run_model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        # Without its graph, which a capture must not find.
        self.loss = loss.detach()

    def enabled(self):
        """While steps run. A graph has its kernels."""
        return switch(self.is_ours and not self.graph, compile=self.kind == "compiled")

    def __call__(self):
        if self.graph:
            self.graph.replay()
        else:
            self.compute()

    def capture(self):
        import torch

        with switch(self.is_ours):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self.compute()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.compute()
        self.graph = graph


def find_share(step):
    """The fraction of the time of a step's kernels that is spent in batch norms and their gradients."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        step()
        torch.cuda.synchronize()
    # Without the ops that have launched the kernels.
    events = [event for event in profiled.key_averages() if event.device_type == torch.autograd.DeviceType.CUDA]
    total = sum(event.self_device_time_total for event in events)
    norms = sum(event.self_device_time_total for event in events if "batch_norm" in event.key.lower() or
                "bn_" in event.key.lower() or "bnorm" in event.key.lower())
    return norms / total if total else None


def measure_step(name):
    kind, *small = name.split()
    steps = {PLAIN: Step(kind, False, small), OURS: Step(kind, True, small)}
    losses = {}
    for contender, step in steps.items():
        losses[contender] = []
        for _ in range(LOSSES):
            with step.enabled():
                step()
            losses[contender].append(float(step.loss))
    difference = max(abs(one / other - 1) for one, other in zip(losses[PLAIN], losses[OURS]))
    if not difference <= MOST_LOSS_DIFFERENCE:
        return {"error": f"losses: expected {losses[PLAIN]}, got {losses[OURS]}"}
    found = {"losses": losses, "loss_difference": difference}
    if kind == "eager":
        with steps[OURS].enabled():
            if fallbacks := find_fallbacks(steps[OURS]):
                return {"error": f"expected BNGrad to compute, got {', '.join(fallbacks)}"}
    if kind == "eager" and not small:
        found["share"] = find_share(steps[PLAIN])
    if kind == "captured":
        for step in steps.values():
            step.capture()

    def measure(step):
        with step.enabled():
            return time_on_device(lambda: [step() for _ in range(STEPS)]) / STEPS

    return compare(take_turns(steps, 1 if small else STEP_ROUNDS, measure)) | found


# JAX --------------------------------------------------------------------------


def make_flax_step(is_ours, is_small):
    """A compiled step, its state and its data."""
    import flax.linen as nn
    import jax
    import jax.numpy as jnp

    if is_ours:
        from bngrad.flax import BatchNorm
    else:
        from flax.linen import BatchNorm
    widths, depth, batch, size = ((8, 16), 1, 4, 16) if is_small else ((64, 128, 256, 512), 3, BATCH, 56)

    class Network(nn.Module):

        @nn.compact
        def __call__(self, x):
            norm = lambda: BatchNorm(use_running_average=False, momentum=0.9, dtype=jnp.bfloat16)
            for number, width in enumerate(widths):
                strides = (1, 1) if number == 0 else (2, 2)
                x = nn.relu(norm()(nn.Conv(width, (3, 3), strides, use_bias=False, dtype=jnp.bfloat16)(x)))
                for _ in range(depth):
                    y = nn.relu(norm()(nn.Conv(width, (3, 3), use_bias=False, dtype=jnp.bfloat16)(x)))
                    x = nn.relu(x + norm()(nn.Conv(width, (3, 3), use_bias=False, dtype=jnp.bfloat16)(y)))
            return nn.Dense(10)(x.mean((1, 2)).astype(jnp.float32))

    network = Network()
    images = jax.random.normal(jax.random.key(1), (batch, size, size, 3), jnp.bfloat16)
    labels = jnp.arange(batch) % 10
    state = network.init(jax.random.key(0), images)

    @jax.jit
    def step(state):

        def loss(parameters):
            logits, new = network.apply({**state, "params": parameters}, images, mutable=["batch_stats"])
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean(), new

        (value, new), gradients = jax.value_and_grad(loss, has_aux=True)(state["params"])
        moved = jax.tree.map(lambda value, gradient: value - 0.01 * gradient, state["params"], gradients)
        return {**new, "params": moved}, value

    return step, state


def measure_flax(is_small):
    import torch

    # The memory of earlier tasks is free for JAX, which takes none in advance.
    torch.cuda.empty_cache()
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    if not is_small and jax.default_backend() != "gpu":
        return {"absent": f"JAX computes on a {jax.default_backend()}", "not_offered": True}
    states, losses, steps = {}, {}, {}
    for contender, is_ours in ((PLAIN, False), (OURS, True)):
        step, state = make_flax_step(is_ours, is_small)
        losses[contender] = []
        for _ in range(LOSSES):
            state, loss = step(state)
            losses[contender].append(float(loss))
        steps[contender], states[contender] = step, state
    difference = max(abs(one / other - 1) for one, other in zip(losses[PLAIN], losses[OURS]))
    if not difference <= MOST_LOSS_DIFFERENCE:
        return {"error": f"losses: expected {losses[PLAIN]}, got {losses[OURS]}"}

    def measure(contender):
        begin = time.perf_counter()
        for _ in range(STEPS):
            states[contender], loss = steps[contender](states[contender])
        jax.block_until_ready(loss)
        return (time.perf_counter() - begin) * 1e3 / STEPS

    times = take_turns({name: name for name in steps}, 1 if is_small else STEP_ROUNDS, measure)
    return compare(times) | {"losses": losses, "loss_difference": difference}


def run(task):
    """The result of a task, with `error` if it is wrong, or `absent` without torchvision, JAX or flax."""
    kind, _, rest = task.partition(" ")
    try:
        if kind == "op":
            return measure_op(rest)
        if kind == "step":
            return measure_step(rest)
        return measure_flax(bool(rest))
    except ModuleNotFoundError as error:
        return {"absent": timing.first_line(error), "not_offered": True}
