"""The handlers of bngrad.jax for CUDA on the emulator: values, memory, streams and errors.

REQUIRES: jax, flax, python-compiler
RUN: env -u BNGRAD_COMPILER %python -m pytest -q %s
"""

import ctypes
import functools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import assert_close, backward, data, loss_of, mesh, native  # before JAX is imported

import jax
import jax.numpy as jnp
import jax_reference as reference
import numpy as np
import pytest
import xla_cuda
from bngrad.jax import _calls, _prepare
from forward import Forward
from jax import lax
from jax.sharding import PartitionSpec as P
from jax_gradient import check_backward, check_halves
from reference import TYPES
from xla_cuda import INITIALIZE, DeviceArray, Xla, XlaError, emulator

import bngrad.jax as bj

LIBRARY = _prepare.load()
HANDLERS = [symbol + "Cuda" for symbol, _ in _calls._OPS.values()]
CASES = [(type.name, shape, dims) for type in TYPES for shape, dims in (((3, 5, 4, 4), (1,)), ((3, 4, 4, 5), (3,)))] + [
    ("float32", shape, dims) for shape, dims in (((7,), (0,)), ((4, 3, 5), (1, 2)), ((4, 3, 5, 2), (1, 3)),
                                                ((70, 33), (1,)), ((2, 1, 999), (1,)))]
INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 3, 8, 9


@pytest.fixture
def emulation():
    """Counts calls of each target."""
    with xla_cuda.emulation() as calls:
        yield calls


#===----------------------------------------------------------------------===#
# Values
#===----------------------------------------------------------------------===#

@pytest.mark.parametrize("type, shape, dims", CASES)
def test_gradients(emulation, type, shape, dims):
    generator = np.random.default_rng(len(shape))
    parameter = "float64" if type == "float64" else "float32"
    configuration = reference.Configuration(generator, shape, dims, type, parameter)
    check_backward(configuration)
    check_halves(configuration, generator)
    assert emulation == {"bngrad.batch_norm_backward": 1, "bngrad.batch_norm_backward_elemt": 1,
                         "bngrad.batch_norm_backward_reduce": 1}


@pytest.mark.parametrize("seed", range(4))
def test_random_gradients(emulation, seed):
    """With types, options, masks and wanted results of all kinds."""
    generator = np.random.default_rng(seed + 50)
    configuration = reference.Configuration(generator)
    check_backward(configuration, [(True, True, True), (False, True, True), (True, False, False)][seed % 3])
    check_halves(configuration, generator)


@pytest.mark.parametrize("type, shape, dims", CASES)
def test_forward(emulation, type, shape, dims):
    generator = np.random.default_rng(len(shape))
    channels = tuple(shape[dim] for dim in dims)
    parameter = np.float64 if type == "float64" else np.float32
    x = generator.normal(3, 2, shape).astype(reference.dtype_of(type))
    scale, offset, mean, variance = (generator.uniform(0.5, 2, channels).astype(parameter) for _ in range(4))
    results = bj.batch_norm_training(x, scale=scale, offset=offset, epsilon=1e-3, feature_dims=dims)
    Forward(x, scale=scale, offset=offset, epsilon=1e-3, feature_dims=dims).check(list(map(np.asarray, results)))
    result = bj.batch_norm_inference(x, mean, scale=scale, variance=variance, epsilon=1e-3, feature_dims=dims)
    Forward(x, mean=mean, scale=scale, variance=variance, epsilon=1e-3, feature_dims=dims).check([np.asarray(result)])
    assert emulation == {"bngrad.batch_norm_training": 1, "bngrad.batch_norm_inference": 1}


def test_empty(emulation):
    generator = np.random.default_rng(0)
    configuration = reference.Configuration(generator, (0, 3), (1,), "float32", "float32")
    check_backward(configuration)
    check_halves(configuration, generator)
    x = np.ones((0, 3), np.float32)
    results = bj.batch_norm_training(x, epsilon=0.25)
    Forward(x, epsilon=0.25).check(list(map(np.asarray, results)))
    # XLA removes calls all of whose results are empty.
    assert set(emulation) == {"bngrad.batch_norm_training", "bngrad.batch_norm_backward",
                              "bngrad.batch_norm_backward_reduce"}


@pytest.mark.parametrize("count", [6, 2**40 + 6, jnp.int32(6), jnp.int64(2**40 + 6)])
def test_count_in_device_memory(emulation, count):
    x, scale, _, dy = data("float32", (2, 3, 5), (2,))
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    sums = jnp.stack([scale * 2**30, scale * 2**28])

    def elemt(count):
        return bj.batch_norm_backward_elemt(dy, x, mean, sums, count, scale=scale, variance=variance, feature_dims=(2,))

    total, product = sums / np.float32(count)
    found = elemt(count) if isinstance(count, int) else jax.jit(elemt)(count)
    expected = (dy - total - (x - mean) * product / variance) * scale / jnp.sqrt(variance)
    assert_close(found, expected, 1e-5)


def test_vmap(emulation):
    """Problems whose data are not aligned to 16 bytes, and operands that they share."""
    xs, dys = (jnp.stack([data("float32", (2, 3, 7), (2,), seed)[index] for seed in range(3)]) for index in (0, 3))
    scale = data("float32", (2, 3, 7), (2,))[1]

    def gradient(x, dy, count):
        mean, variance = x.mean((0, 1)), x.var((0, 1))
        operands = {"scale": scale, "variance": variance, "feature_dims": (2,)}
        sums = bj.batch_norm_backward_reduce(dy, x, mean, feature_dims=(2,))
        return bj.batch_norm_backward(dy, x, mean, **operands), bj.batch_norm_backward_elemt(
            dy, x, mean, sums, count, **operands)

    def formula(x, dy):
        return jax.vjp(lambda x, scale: native(x, scale, 0 * scale, (2,), 0)[0], x, scale)[1](dy)

    counts = jnp.array([6, 6, 6], jnp.int32)
    for function, arguments in ((gradient, (xs, dys, counts)), (functools.partial(gradient, count=6), (xs, dys))):
        (grad_x, grad_scale, _), from_halves = jax.vmap(function)(*arguments)
        assert_close((grad_x, grad_scale), jax.vmap(formula)(xs, dys), 1e-5)
        assert_close(from_halves, grad_x, 1e-5)
    assert emulation["bngrad.batch_norm_backward"] == 2


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map(emulation, check_vma):
    """lax.psum adds the sums between the halves."""
    arguments = data("float32")
    function = jax.shard_map(
        functools.partial(bj.batch_norm, axis_name="d"), mesh=mesh(), in_specs=(P("d"), P(), P()),
        out_specs=(P("d"), P(), P()), check_vma=check_vma)
    assert_close(jax.jit(jax.grad(loss_of(function), (0, 1, 2)))(*arguments),
                 jax.grad(loss_of(native), (0, 1, 2))(*arguments), 1e-5)
    assert emulation["bngrad.batch_norm_backward_reduce"] == emulation["bngrad.batch_norm_backward_elemt"] == 4


def train(batch_norm):
    """The losses of training two layers with batch norms of flax's interface."""
    import flax.linen as nn

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            for features in (5, 3):
                x = batch_norm(use_running_average=False)(nn.Dense(features, use_bias=False)(x))
                x = nn.tanh(x)
            return x

    x = data("float32", (6, 3, 4), (2,))[0]
    model, losses = Model(), []
    variables = model.init(jax.random.key(0), x)

    @jax.jit
    def step(variables):
        def loss(parameters):
            y, updates = model.apply(variables | {"params": parameters}, x, mutable=["batch_stats"])
            return jnp.square(y - 0.3).mean(), updates
        (value, updates), gradients = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        return value, updates | {"params": jax.tree.map(lambda p, g: p - g, variables["params"], gradients)}

    for _ in range(4):
        value, variables = step(variables)
        losses.append(value)
    return losses, variables


def test_training_loop(emulation):
    import flax.linen as nn
    from bngrad.flax import BatchNorm

    found, expected = train(BatchNorm), train(functools.partial(nn.BatchNorm, use_fast_variance=False))
    losses = np.array(expected[0])
    assert (losses[1:] < losses[:-1]).all()
    # Names of modules differ.
    for one, other in ((found[0], expected[0]), *zip(map(jax.tree.leaves, found[1:]), map(jax.tree.leaves, expected[1:]))):
        assert_close(one, other, 1e-4)
    assert emulation["bngrad.batch_norm_training"] > emulation["bngrad.batch_norm_backward"] == 8


#===----------------------------------------------------------------------===#
# Handlers
#===----------------------------------------------------------------------===#

class Training:
    """A call of the handler for `count` problems of (4, 6, 8) f32."""

    def __init__(self, count=None, **attributes):
        batch = () if count is None else (count,)
        x = np.random.default_rng(0).normal(3, 2, (*batch, 4, 6, 8)).astype(np.float32)
        self.x = DeviceArray(x)
        self.results = [DeviceArray(np.full((*batch, 6), 77, np.float32)) for _ in range(2)]
        self.attributes = {
            "rank": np.int64(3), "feature_dims": np.array([1]), "epsilon": np.float64(1e-5), "has_scale": False,
            "has_offset": False, "wants_output": False, "wants_mean": True, "wants_variance": True,
            "wants_inv_std": False} | attributes

    def run(self, xla, symbol="bngradJaxTrainingCuda", **keywords):
        xla.call(symbol, [self.x], self.results, self.attributes, **keywords)

    def check(self):
        x = self.x.read().astype(np.float64)
        dims = (x.ndim - 3, x.ndim - 1)
        np.testing.assert_allclose(self.results[0].read(), x.mean(dims), rtol=1e-6)
        np.testing.assert_allclose(self.results[1].read(), x.var(dims), rtol=1e-5)


def test_metadata():
    """Calls with XLA's scratch memory must not be captured in its command buffers."""
    for symbol in HANDLERS:
        for stage in ("", "Initialize"):
            (major, _), traits = Xla(LIBRARY).read_metadata(symbol + stage)
            assert major == 0 and traits == 0, symbol


def test_cpu_and_gpu_in_one_process():
    """Each device has a plan of its own."""
    call = Training()
    x = call.x.read()
    _, mean, variance, _ = bj.batch_norm_training(x, epsilon=1e-5, wanted=("mean", "variance"))
    call.run(Xla(LIBRARY))
    call.check()
    for one, other in zip(call.results, (mean, variance)):
        np.testing.assert_allclose(one.read(), other, rtol=1e-5)


def test_initialize_only_compiles():
    xla, call = Xla(LIBRARY), Training()
    call.run(xla, "bngradJaxTrainingCudaInitialize", stage=INITIALIZE)
    assert xla.asked == ["device"]
    assert (call.results[0].read() == 77).all()
    call.attributes["rank"] = np.int64(5)
    with pytest.raises(XlaError, match="rank: expected 0 to 3, the rank of input, got 5"):
        call.run(xla, "bngradJaxTrainingCudaInitialize", stage=INITIALIZE)


def test_streams_and_devices():
    streams = [None, *[emulator.mgpuStreamCreate() for _ in range(2)]]
    for stream in streams:
        for device in (0, 3):
            xla, call = Xla(LIBRARY, stream, device), Training()
            call.run(xla)
            emulator.mgpuStreamSynchronize(ctypes.c_void_p(stream))
            call.check()
            assert xla.asked[:2] == ["device", "stream"]
    for stream in streams[1:]:
        emulator.mgpuStreamDestroy(ctypes.c_void_p(stream))


def test_scratch_memory():
    xla, call = Xla(LIBRARY), Training()
    call.run(xla)
    call.run(xla)
    assert len(xla.scratch) == xla.num_freed == 2 and xla.scratch[0] == xla.scratch[1] > 0
    # The problems of a batch use the same memory, one after another.
    many, calls = Xla(LIBRARY), Training(3)
    calls.run(many)
    emulator.mgpuStreamSynchronize(None)
    call.check()
    calls.check()
    assert many.scratch == xla.scratch[:1] and many.num_freed == 1
    nothing = Xla(LIBRARY)
    Training(0).run(nothing)
    assert nothing.scratch == []


def test_no_elements():
    """XLA gives buffers without elements no address."""
    call = Training()
    call.x = DeviceArray(np.ones((4, 6, 0), np.float32))
    call.run(Xla(LIBRARY))
    for result in call.results:
        np.testing.assert_array_equal(result.read(), 0)
    call.x, call.results = (DeviceArray(np.ones((4, 0, 8), np.float32)),
                            [DeviceArray(np.ones(0, np.float32)) for _ in range(2)])
    call.run(Xla(LIBRARY))


def test_errors():
    def fails(code, text, call, **xla):
        with pytest.raises(XlaError, match=text) as caught:
            call.run(Xla(LIBRARY, **xla))
        assert caught.value.code == code

    fails(RESOURCE_EXHAUSTED, "bngrad: expected [0-9]+ bytes of device memory for the workspace, got none", Training(),
          has_memory=False)
    fails(INVALID_ARGUMENT, "device: expected at least 0, got -1", Training(), device=-1)
    fails(INVALID_ARGUMENT, "options: expected feature dims to be dims of input, 0 to 2, got 7", Training(feature_dims=np.array([7])))
    fails(INVALID_ARGUMENT, "results: expected 1, got 2", Training(wants_mean=False))


def test_errors_of_count():
    x, c, sums = (np.ones(shape, np.float32) for shape in ((4, 6, 8), 6, (2, 6)))
    attributes = {"rank": np.int64(3), "feature_dims": np.array([1]), "epsilon": np.float64(0), "has_scale": False,
                  "has_mask": False, "statistic": "variance", "count": np.int64(32), "has_count": True}

    def fails(text, count):
        operands = [DeviceArray(value) for value in (x, x, c, c, sums, *count)]
        with pytest.raises(XlaError, match=text):
            Xla(LIBRARY).call("bngradJaxBackwardElemtCuda", operands, [DeviceArray(x)],
                              attributes | {"has_count": bool(count)})

    fails("count: expected an operand on a GPU, got an attribute", [])
    fails("count: expected rank 1, got 0", [np.int64(32)])
    for count in (np.array([32]), np.array([32, 0, 0], np.int32), np.array([32], np.int32), np.ones(2, np.float32)):
        fails("count: expected two s32 on a GPU", [count])


def test_without_a_gpu():
    program = """
import sys
sys.path[:0] = sys.argv[1:]
import jax_cuda, os, pytest
del os.environ["BNGRAD_CUDA_EMULATOR"]
os.environ["BNGRAD_CUDA_DRIVER"] = "/none.so"
with pytest.raises(jax_cuda.XlaError, match="expected a device that can be used") as caught:
    jax_cuda.Training().run(jax_cuda.Xla(jax_cuda.LIBRARY))
assert caught.value.code == jax_cuda.FAILED_PRECONDITION
"""
    subprocess.run([sys.executable, "-c", program, os.path.dirname(__file__)], check=True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
