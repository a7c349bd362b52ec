"""The contenders, one class each. Each runs in a process of its own, worker.py."""

import ctypes
import importlib.metadata
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

import cases
import instruction_sets
import kernels
import measure
import native
import passes
import peers
from compilers import Absent, recipe, shared

GIVEN, DONATED, ALLOCATED = "given", "donated", "allocated"


def version_of(package, title, options):
    """The version of an installed package, which scripts/bench.sh installs by its title."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise Absent(peers.missing(options["work"], title))


def run(name, *command):
    """The output of a command; a one-line error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise RuntimeError(f"{name}: " + next((line for line in lines if "error" in line), lines[-1]))
    return done.stdout


class Contender:
    """One compiler with one case. Data are in the order of memory; bf16 is stored as uint16."""

    outputs = ALLOCATED

    def __init__(self, options, allocate):
        self.options = options
        self.threads = len(options["cores"])
        self.allocate = allocate
        self.pool = {}
        # Nothing that was compiled earlier is found here.
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=options["scratch"]))

    def prepare(self, case, folder):
        """Copies the data and compiles; the seconds of the compilation."""
        self.case = cases.Case(**case | {"sizes": tuple(case["sizes"])})
        arrays = shared.load(folder)
        self.shared = {name: self.part(arrays, name) for name in self.norm_pass.inputs + self.norm_pass.results}
        self.inputs = [self.copy(name) for name in self.norm_pass.inputs]
        self.load()
        return self.compile()

    @property
    def norm_pass(self):
        return self.case.norm_pass

    def part(self, arrays, name):
        if name in arrays:
            return arrays[name][: self.case.channels]
        return arrays[name, self.case.type][: self.case.elements].reshape(self.case.memory_sizes)

    def copy(self, name):
        """An array on huge pages like the shared one, with its values; memory is used again."""
        source = self.shared[name]
        kept = self.pool.get((name, source.dtype.str))
        if kept is None or kept.size < source.size:
            kept = self.pool[name, source.dtype.str] = self.allocate(source.size, source.dtype)
        array = kept[: source.size].reshape(source.shape)
        array[...] = source
        return array

    def check(self):
        """Copies the results of one call into the shared arrays."""
        self.clear()
        self.call()
        for name, result in zip(self.norm_pass.results, self.results()):
            self.shared[name][...] = result

    # Overridden where needed.
    def start(self):
        """Imports; the version."""
        raise NotImplementedError

    def load(self):
        pass

    def compile(self):
        """Compiles; seconds."""
        raise NotImplementedError

    def clear(self):
        """Fills given outputs with NaN."""

    def call(self):
        raise NotImplementedError

    def results(self):
        raise NotImplementedError


class SharedObject(Contender):
    """A function in a shared object, with memref descriptors."""

    outputs = GIVEN

    def load(self):
        self.output_arrays = [self.copy(name) for name in self.norm_pass.results]
        arrays = self.inputs + self.output_arrays
        self.descriptors = [
            native.describe(array.ctypes.data, array.shape,
                            [math.prod(array.shape[i + 1:]) for i in range(array.ndim)])
            for array in arrays
        ]
        self.pointers = [ctypes.c_void_p(ctypes.addressof(value)) for value in self.descriptors]

    def compile(self):
        start = time.perf_counter()
        function = self.build()
        seconds = time.perf_counter() - start
        function.restype = None
        self.call = lambda function=function, pointers=self.pointers: function(*pointers)
        return seconds

    def clear(self):
        for array in self.output_arrays:
            array[...] = 0x7FC0 if array.dtype == numpy.uint16 else numpy.nan

    def results(self):
        return self.output_arrays


class BNGrad(SharedObject):

    def start(self):
        self.compiler = kernels.Compiler(self.options["tools"], self.folder, self.threads)
        if not self.compiler.key:
            raise Absent("no bngrad-compile in " + self.options["tools"])
        return "static shapes, bngrad-compile"

    def build(self):
        return self.compiler.compile(self.case, "static")


class Walk(Contender):
    """The memory accesses of BNGrad's schedule in the forward pass, without results."""

    outputs = GIVEN

    def start(self):
        self.peer = peers.walk(self.options["work"])
        if self.peer.absent:
            raise Absent(self.peer.absent)
        self.compiler = kernels.Compiler(self.options["tools"], self.folder, self.threads)
        return self.peer.version

    def compile(self):
        schedule, _, _ = self.compiler.schedule(self.case, "static").partition(",")
        if schedule not in peers.WALKS:
            raise Absent(f"no walked floor of the schedule {schedule or 'none'}")
        self.output = self.copy(self.norm_pass.result)
        arrays = {"input": self.inputs[self.norm_pass.inputs.index("input")], "grad_input": self.output}
        self.problem = measure.make_problem(
            self.case, self.threads, {name: array.ctypes.data for name, array in arrays.items()})
        state, error = self.peer.create(self.problem, peers.WALKS[schedule])
        if error:
            raise Absent(error)
        self.call = lambda run=self.peer.library.peerRun: run(state)
        return 0.0

    def check(self):
        self.call()


class Linalg(Contender):
    """Compiles the linalg that bngrad-opt prints."""

    def write_linalg(self):
        source = self.folder / "kernel.mlir"
        source.write_text(kernels.write(self.case, "static"))
        target = self.folder / "linalg.mlir"
        target.write_text(run("bngrad-opt", pathlib.Path(self.options["tools"]) / "bngrad-opt", source,
                              "--bngrad-to-linalg"))
        return target


class StockMLIR(SharedObject, Linalg):
    """recipe.py"""

    def start(self):
        for tool in recipe.TOOLS:
            if not shutil.which(tool):
                raise Absent("no " + tool)
        return re.search(r"LLVM version (\S+)", run("mlir-opt", recipe.OPT, "--version"))[1]

    def load(self):
        super().load()
        self.linalg = self.write_linalg()
        self.count = getattr(self, "count", 0) + 1

    def build(self):
        # The loader knows libraries by their names.
        library = self.folder / f"kernel{self.count}.so"
        recipe.build(run, self.case, self.threads, self.linalg, library)
        return getattr(ctypes.CDLL(str(library)), f"_mlir_ciface_{kernels.ENTRY}")


class IREE(Linalg):

    def start(self):
        versions = [version_of("iree-base-" + part, "IREE", self.options) for part in ("compiler", "runtime")]
        import iree.runtime

        self.runtime = iree.runtime
        self.tool = pathlib.Path(sys.prefix) / "bin" / "iree-compile"
        cores = ",".join(map(str, self.options["cores"]))
        iree.runtime.flags.parse_flags("--task_topology_cpu_ids=" + cores)
        self.config = iree.runtime.Config("local-task")
        return "compiler {}, runtime {}".format(*versions)

    def load(self):
        self.linalg = self.write_linalg()
        runtime, device = self.runtime, self.config.device
        types = {"float32": runtime.HalElementType.FLOAT_32, "uint16": runtime.HalElementType.BFLOAT_16,
                 "float16": runtime.HalElementType.FLOAT_16}
        self.arguments = runtime.VmVariantList(len(self.inputs))
        for array in self.inputs:
            self.arguments.push_ref(device.allocator.allocate_buffer_copy(
                memory_type=runtime.MemoryType.DEVICE_LOCAL,
                allowed_usage=runtime.BufferUsage.DEFAULT | runtime.BufferUsage.MAPPING,
                device=device, buffer=array, element_type=types[str(array.dtype)]))
        self.returned = None

    def compile(self):
        start = time.perf_counter()
        module = self.folder / "kernel.vmfb"
        run("iree-compile", self.tool, self.linalg, "-o", module, "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu", *instruction_sets.iree_flags(), "--iree-opt-level=O3")
        self.module = self.runtime.VmModule.copy_buffer(self.config.vm_instance, module.read_bytes())
        self.context = self.runtime.SystemContext(vm_modules=[self.module], config=self.config)
        self.function = self.module.lookup_function(kernels.ENTRY)
        return time.perf_counter() - start

    def call(self):
        returned = self.runtime.VmVariantList(len(self.norm_pass.results))
        self.context.vm_context.invoke(self.function, self.arguments, returned)
        self.returned = returned

    def results(self):
        found = []
        for number, name in enumerate(self.norm_pass.results):
            view = self.returned.get_as_object(number, self.runtime.HalBufferView)
            found.append(view.map().asarray(view.shape, self.shared[name].dtype))
        return found


def parameter_shape(case):
    """The shape that aligns a parameter with the data."""
    return [case.channels if dim == case.feature_dim else 1 for dim in range(len(case.sizes))]


def reduced_dims(case):
    return tuple(dim for dim in range(len(case.sizes)) if dim != case.feature_dim)


class XLA(Contender):
    outputs = DONATED
    # Whether the variance is E[x²] - E[x]², as by default in flax, which cancels if the mean is large.
    is_one_pass = False

    def start(self):
        version = version_of("jax", "JAX", self.options)
        import jax
        import jax.numpy

        self.jax = jax
        return version

    def backward(self, grad_output, input, scale, mean, variance):
        jnp, shape, dims = self.jax.numpy, parameter_shape(self.case), reduced_dims(self.case)
        count = self.case.elements // self.case.channels
        wide = grad_output.astype(jnp.float32)
        centered = input.astype(jnp.float32) - mean.reshape(shape)
        grad_offset = jnp.sum(wide, dims)
        product = jnp.sum(wide * centered, dims)
        inverse = 1 / jnp.sqrt(variance + kernels.EPSILON)
        slope = (product * inverse * inverse / count).reshape(shape)
        grad_input = (scale * inverse).reshape(shape) * (
            wide - (grad_offset / count).reshape(shape) - centered * slope)
        return grad_input.astype(grad_output.dtype), product * inverse, grad_offset

    def forward(self, input, scale, offset):
        jnp, shape, dims = self.jax.numpy, parameter_shape(self.case), reduced_dims(self.case)
        wide = input.astype(jnp.float32)
        mean = jnp.mean(wide, dims)
        centered = wide - mean.reshape(shape)
        variance = (jnp.mean(wide * wide, dims) - mean * mean if self.is_one_pass
                    else jnp.mean(centered * centered, dims))
        inverse = 1 / jnp.sqrt(variance + kernels.EPSILON)
        output = (scale * inverse).reshape(shape) * centered + offset.reshape(shape)
        return output.astype(input.dtype), mean, inverse

    def make_function(self):
        formula, number = getattr(self, self.norm_pass.name), len(self.norm_pass.inputs)
        # Donated arguments that nothing reads are where the results go.
        return self.jax.jit(lambda *arguments: formula(*arguments[:number]), keep_unused=True,
                            donate_argnums=tuple(range(number, number + len(self.norm_pass.results))))

    def load(self):
        def put(array):
            if array.dtype == numpy.uint16:
                array = array.view(self.jax.numpy.bfloat16)
            return self.jax.numpy.array(array, copy=True)

        self.arguments = [put(array) for array in self.inputs]
        scale = self.arguments[self.norm_pass.inputs.index("scale")]
        self.last = [self.jax.numpy.zeros_like(array)
                     for array in (self.arguments[0], *[scale] * len(self.norm_pass.channel_results))]
        self.jax.block_until_ready([self.arguments, self.last])

    def compile(self):
        self.function = self.make_function()
        address = self.last[0].unsafe_buffer_pointer()
        start = time.perf_counter()
        self.call()
        seconds = time.perf_counter() - start
        self.outputs = DONATED if self.last[0].unsafe_buffer_pointer() == address else ALLOCATED
        return seconds

    def call(self):
        self.last = self.function(*self.arguments, *self.last)
        self.jax.block_until_ready(self.last)

    def clear(self):
        self.last = [self.jax.numpy.full_like(array, numpy.nan) for array in self.last]

    def results(self):
        found = [numpy.asarray(array) for array in self.last]
        return [array.view(numpy.uint16) if array.dtype.itemsize == 2 else array for array in found]


class OnePassXLA(XLA):
    is_one_pass = True


class Torch(Contender):

    def start(self):
        version = version_of("torch", "PyTorch", self.options)
        import torch

        self.torch = torch
        instruction_sets.hold_inductor(torch)
        torch.set_num_threads(self.threads)
        return version

    def tensor(self, array):
        if array.dtype == numpy.uint16:
            return self.torch.from_numpy(array.view(numpy.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)

    def load(self):
        self.arguments = [self.tensor(array) for array in self.inputs]


def to_numpy(tensor, torch):
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(numpy.uint16)
    return tensor.numpy()


class Eager(Torch):
    """The operators that autograd calls."""

    def load(self):
        super().load()
        arrays = dict(zip(self.norm_pass.inputs, self.arguments))
        if self.case.layout == "nhwc" and len(self.case.sizes) == 4:
            arrays |= {name: arrays[name].permute(0, 3, 1, 2) for name in self.norm_pass.data}
        aten = self.torch.ops.aten
        if self.norm_pass is passes.FORWARD:
            self.values = (*(arrays[name] for name in self.norm_pass.inputs), None, None, True, 0.1, kernels.EPSILON)
            self.operator = aten.native_batch_norm.default
            return
        inverse = 1 / self.torch.sqrt(arrays["variance"] + kernels.EPSILON)
        self.values = (arrays["grad_output"], arrays["input"], arrays["scale"], None, None, arrays["mean"], inverse,
                       True, kernels.EPSILON, [True] * 3)
        self.operator = aten.native_batch_norm_backward.default

    def compile(self):
        return None

    def call(self):
        self.last = self.operator(*self.values)

    def results(self):
        first, *others = self.last
        if self.case.layout == "nhwc" and first.dim() == 4:
            first = first.permute(0, 2, 3, 1)
        return [to_numpy(tensor, self.torch) for tensor in (first, *others)]


class Inductor(Torch):
    outputs = GIVEN

    def load(self):
        super().load()
        self.output_arrays = [self.copy(name) for name in self.norm_pass.results]
        self.arguments += [self.tensor(array) for array in self.output_arrays]

    def backward(self, grad_output, input, scale, mean, variance):
        torch, shape, dims = self.torch, parameter_shape(self.case), reduced_dims(self.case)
        count = self.case.elements // self.case.channels
        wide = grad_output.float()
        centered = input.float() - mean.reshape(shape)
        total = wide.sum(dims)
        product = (wide * centered).sum(dims)
        inverse = 1 / torch.sqrt(variance + kernels.EPSILON)
        slope = (product * inverse * inverse / count).reshape(shape)
        grad_input = (scale * inverse).reshape(shape) * (
            wide - (total / count).reshape(shape) - centered * slope)
        return grad_input, product * inverse, total

    def forward(self, input, scale, offset):
        torch, shape = self.torch, parameter_shape(self.case)
        wide = input.float()
        variance, mean = torch.var_mean(wide, reduced_dims(self.case), correction=0)
        inverse = 1 / torch.sqrt(variance + kernels.EPSILON)
        output = (scale * inverse).reshape(shape) * (wide - mean.reshape(shape)) + offset.reshape(shape)
        return output, mean, inverse

    def make_function(self):
        formula, number = getattr(self, self.norm_pass.name), len(self.norm_pass.inputs)

        def function(*arguments):
            for target, result in zip(arguments[number:], formula(*arguments[:number])):
                target.copy_(result)

        return function

    def compile(self):
        self.torch.compiler.reset()
        function = self.torch.compile(self.make_function(), fullgraph=True, dynamic=False)
        arguments = self.arguments
        start = time.perf_counter()
        with self.torch.no_grad():
            function(*arguments)
        seconds = time.perf_counter() - start
        self.function = function
        return seconds

    def clear(self):
        for tensor in self.arguments[len(self.norm_pass.inputs):]:
            tensor.fill_(math.nan)

    def call(self):
        with self.torch.no_grad():
            self.function(*self.arguments)

    def results(self):
        return self.output_arrays


CONTENDERS = {"bngrad": BNGrad, "bngrad-twin": BNGrad, "walk": Walk, "xla": XLA, "xla-one-pass": OnePassXLA,
              "inductor": Inductor, "torch": Eager, "iree": IREE, "mlir": StockMLIR}
