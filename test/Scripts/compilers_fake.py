"""compilers_fake.py BENCH NAME FOLDER: the process of a contender that compiles nothing. Its clock is
simulated."""

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, sys.argv[1])

import numpy

from compilers import Absent, contenders, worker

NAME, FOLDER = sys.argv[2], pathlib.Path(sys.argv[3])
# Milliseconds of a call.
TIMES = {"bngrad": 2.0, "bngrad-twin": 2.0, "inductor": 1.0, "slow": 4.0}
GENERATOR = numpy.random.default_rng(sum(map(ord, NAME)))


def is_first(event):
    """Whether no process of this contender was asked this before."""
    path = FOLDER / f"{NAME}-{event}"
    if path.exists():
        return False
    path.touch()
    return True


class Fake(contenders.Contender):
    outputs = contenders.GIVEN

    def start(self):
        if NAME == "torch":
            raise Absent("not installed: no such package")
        return "1.0"

    def compile(self):
        if NAME == "slow" and self.case.sizes == (4, 3, 5, 5):
            raise ValueError("first line\nerror: no such type\nlast line")
        return 0.25

    def call(self):
        # Output of a library must not become an answer.
        os.write(1, b"a message of the library\n")

    def check(self):
        if NAME != "lazy":
            super().check()

    def measured(self):
        """Called before a turn."""
        if NAME == "iree" and is_first("measured"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if NAME == "xla":
            time.sleep(60)

    def results(self):
        arrays = [to_f64(array) for array in self.inputs]
        axes = tuple(dim for dim in range(arrays[0].ndim) if dim != self.case.feature_dim)
        shape = [size if dim == self.case.feature_dim else 1 for dim, size in enumerate(arrays[0].shape)]
        first, *others = getattr(self, self.norm_pass.name)(axes, shape, *arrays)
        if self.case.type == "bf16":
            first = first.astype(numpy.float32).view(numpy.uint32) + 0x8000 >> 16
        return first, *others

    def forward(self, axes, shape, x, scale, offset):
        mean, variance = x.mean(axes), x.var(axes)
        if NAME == "xla-one-pass":
            variance *= 1.01
        inverse = 1 / numpy.sqrt(variance + 1e-5)
        output = (scale * inverse).reshape(shape) * (x - mean.reshape(shape)) + offset.reshape(shape)
        return output, mean, inverse

    def backward(self, axes, shape, dy, x, scale, mean, variance):
        count = dy.size / mean.size
        inverse = 1 / numpy.sqrt(variance + 1e-5)
        centered = (x - mean.reshape(shape)) * inverse.reshape(shape)
        offset, grad_scale = dy.sum(axes), (dy * centered).sum(axes)
        sign = -1 if NAME == "mlir" else 1
        grad_input = (scale * inverse).reshape(shape) * (
            dy - offset.reshape(shape) / count - sign * centered * grad_scale.reshape(shape) / count)
        return grad_input, grad_scale, offset


def to_f64(array):
    if array.dtype == numpy.uint16:
        array = (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return array.astype(numpy.float64)


class Probe:
    """Instead of native.Turn: no memory is measured."""

    def bandwidth(self):
        return 1e9


def simulate(call, calls=1):
    """Seconds of a call, with noise."""
    for _ in range(calls):
        call()
    return 1e-3 * TIMES.get(NAME, 3.0) * float(numpy.exp(0.003 * GENERATOR.standard_normal()))


class Worker(worker.Worker):

    def measure(self, request):
        self.contender.measured()
        # Other tests run at the same time.
        return super().measure(request) | {"foreign": 0.0}


worker.seconds_of = simulate
answers = worker.take_output()
fake = Fake({"cores": [0], "scratch": FOLDER}, numpy.zeros)
Worker(fake, Probe(), [0]).serve(sys.stdin, answers)
