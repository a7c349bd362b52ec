"""views.py COMPILE EMULATOR DIR [--forms|--long]: gradients with operands or results that are views of larger buffers.

Views of every kind, in host and device memory, with every kernel. Results are compared with numpy's, and memory between
the elements of a result must not change. Each object contains the functions of one schedule, type and memory, and runs
in its own process. Prints `N functions in M objects, 0 failed`.
"""

import concurrent.futures
import ctypes
import dataclasses
import itertools
import json
import os
import subprocess
import sys

import numpy as np

from programs import one_pass, two_pass

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "CPU"))
import numpy_reference  # noqa: E402

TYPES = ["f32", "bf16", "f16", "f64"]
DTYPES = {"f32": "<f4", "bf16": "<u2", "f16": "<f2", "f64": "<f8", "i1": "|b1"}
DATA, CHANNEL = ("dy", "x", "mask", "dx"), ("scale", "mean", "variance", "dscale", "doffset")
RESULTS = ("dx", "dscale", "doffset")
EPSILON = 1e-3


def forms(kind):
    """By name: schedule, shape, features. Those of higher rank have loops that merge only for dense data."""
    lanes = 16 // np.dtype(DTYPES[kind]).itemsize
    return {
        "channel": (one_pass(cluster=2), (3, 5, 4 * lanes), (1,)),
        "channel-image": (one_pass(), (3, 5, 4, lanes), (1,)),
        "channel-odd": (one_pass(cluster=2), (3, 4, 5, 3), (1,)),
        "warps": (one_pass(columns=3, threads=64), (3, 6, 2 * lanes), (1,)),
        "warps-image": (one_pass(columns=3, cluster=4, threads=64), (3, 6, 2, lanes), (1,)),
        "columns": (one_pass(columns=2 * lanes, cluster=2), (7, 2 * lanes), (1,)),
        "columns-image": (one_pass(columns=2 * lanes), (3, 5, 2 * lanes), (2,)),
        "columns-pieces": (one_pass(columns=2 * lanes, cluster=2), (9, 3 * lanes), (1,)),
        "columns-odd": (one_pass(columns=8), (3, 3, 11), (2,)),
        "features": (one_pass(columns=2), (3, 2, 3, 2 * lanes), (1, 2)),
        "two-pass": (two_pass(), (3, 5, 4, lanes), (1,)),
        "two-pass-columns": (two_pass(columns=4), (3, 5, 2 * lanes), (2,)),
        "two-pass-features": (two_pass(), (3, 2, 5, 4), (1, 3)),
    }


@dataclasses.dataclass
class View:
    """The positions of the elements of an operand in its buffer, in elements."""

    length: int
    offset: int
    strides: tuple


def dense_strides(shape):
    return tuple(int(np.prod(shape[d + 1:], dtype=int)) for d in range(len(shape)))


def part(shape, margins, steps):
    """Every `steps`-th element of a buffer with `margins` elements before and after."""
    outer = [step * (size - 1) + 1 + 2 * margin for size, margin, step in zip(shape, margins, steps)]
    strides = dense_strides(outer)
    return View(int(np.prod(outer)), sum(m * s for m, s in zip(margins, strides)),
                tuple(step * s for step, s in zip(steps, strides)))


def permuted(shape, order):
    strides = [0] * len(shape)
    for dim, stride in zip(order, dense_strides([shape[d] for d in order])):
        strides[dim] = stride
    return View(int(np.prod(shape)), 0, tuple(strides))


def backwards(shape, dim):
    strides = list(dense_strides(shape))
    strides[dim] = -strides[dim]
    return View(int(np.prod(shape)), -strides[dim] * (shape[dim] - 1), tuple(strides))


def views(shape, is_result):
    """Every kind of view, by name."""
    rank, one, none = len(shape), [1] * len(shape), [0] * len(shape)
    at = lambda dim, values, value: [value if d == dim else v for d, v in enumerate(values)]
    dense = permuted(shape, range(rank))
    yield "dense", dense
    yield "cropped", part(shape, one, one)
    yield "shifted", dataclasses.replace(dense, length=dense.length + 1, offset=1)
    yield "part", dataclasses.replace(dense, length=dense.length + 64, offset=32)
    for dim in range(rank):
        yield f"cropped in {dim}", part(shape, at(dim, none, 1), one)
        yield f"every second in {dim}", part(shape, at(dim, none, 1), at(dim, one, 2))
        yield f"backwards in {dim}", backwards(shape, dim)
        if not is_result:
            yield f"expanded in {dim}", View(dense.length, 0, tuple(at(dim, dense.strides, 0)))
    for order in [tuple(reversed(range(rank))), (*range(1, rank), 0), (rank - 1, *range(rank - 1))][:2 * rank - 2]:
        yield f"in order {order}", permuted(shape, order)


@dataclasses.dataclass
class Function:
    """A gradient, with the views of its operands and results."""

    name: str
    shape: tuple
    features: tuple
    kind: str  # type of the data
    views: dict  # view by operand
    forgets: str  # dynamic parts of types: "", "strides", "sizes"

    def __post_init__(self):
        self.parameter = "f64" if self.kind == "f64" else "f32"
        self.operands = ("dy", "x", "scale", "mean", "variance", *["mask"] * ("mask" in self.views), *RESULTS)

    def shape_of(self, operand):
        return self.shape if operand in DATA else tuple(self.shape[f] for f in self.features)

    def kind_of(self, operand):
        return "i1" if operand == "mask" else self.kind if operand in DATA else self.parameter

    def view_of(self, operand):
        shape = self.shape_of(operand)
        return self.views.get(operand) or permuted(shape, range(len(shape)))

    def types(self, operand):
        """The types of the memref and of the tensor."""
        shape, view = self.shape_of(operand), self.view_of(operand)
        sizes = "".join(("?" if self.forgets == "sizes" else str(s)) + "x" for s in shape) + self.kind_of(operand)
        if operand not in self.views:
            return f"memref<{sizes}>", f"tensor<{sizes}>"
        strides = ", ".join(["?"] * len(shape) if self.forgets else map(str, view.strides))
        offset = "?" if self.forgets else view.offset
        return f"memref<{sizes}, strided<[{strides}], offset: {offset}>>", f"tensor<{sizes}>"

    def mlir(self):
        arguments = ", ".join(f"%{o}: {self.types(o)[0]}" for o in self.operands)
        text = f"func.func @{self.name}({arguments}) {{\n"
        typed = {}
        for operand in self.operands:
            memref, tensor = self.types(operand)
            typed[operand] = f"(%{operand}_t : {tensor})"
            if operand not in RESULTS:
                text += f"  %{operand}_t = bufferization.to_tensor %{operand} restrict : {memref} to {tensor}\n"
        text += (f"  %0:3 = bngrad.batch_norm_backward grad_output{typed['dy']} input{typed['x']} scale{typed['scale']}"
                 f" mean{typed['mean']} variance{typed['variance']}"
                 + (f" mask{typed['mask']}" if "mask" in typed else "")
                 + f" {{feature_dims = array<i64: {', '.join(map(str, self.features))}>, epsilon = {EPSILON:e} : f64}}"
                 + f" : {', '.join(self.types(r)[1] for r in RESULTS)}\n")
        for i, result in enumerate(RESULTS):
            memref, tensor = self.types(result)
            text += (f"  bufferization.materialize_in_destination %0#{i} in restrict writable %{result}"
                     f" : ({tensor}, {memref}) -> ()\n")
        return text + "  return\n}\n"


@dataclasses.dataclass
class Object:
    """The functions of one schedule, type and memory."""

    form: str
    kind: str
    on_device: bool
    functions: list

    def __str__(self):
        return f"{self.form}, {self.kind}, in memory of the {'device' if self.on_device else 'host'}"


def create_functions(form, kind, names, seed):
    """A function for every view of every operand of `names`; "+" joins several operands."""
    schedule, shape, features = forms(kind)[form]
    forgotten = itertools.cycle(["", "strides", "", "sizes"] if schedule.startswith("two_pass") else ["", "strides"])
    if seed % 2:
        next(forgotten)
    for group in names:
        operands = group.split("+")
        of_data = operands[0] in DATA
        of_shape = shape if of_data else tuple(shape[f] for f in features)
        for name, view in views(of_shape, any(o in RESULTS for o in operands)):
            yield f"{name} {group}", Function("", shape, features, kind, dict.fromkeys(operands, view), next(forgotten))


def create_objects(is_long):
    groups = ["dy", "x", "dx", "dy+x", "dy+x+dx", "mask", "dy+x+mask", "scale+mean", "variance", "dscale", "doffset"]
    number = 0
    for form in forms("f32"):
        for kind in TYPES if is_long else [TYPES[number % 4]]:
            for on_device in (True, False) if is_long else [number % 4 != 3]:
                functions = list(create_functions(form, kind, groups, number))
                # A part: on the device, the four types of a form together have all functions; on the host, a fourth
                # of them.
                if not is_long:
                    functions = functions[1:2] + functions[2 + number::29]
                elif on_device:
                    functions = functions[number // 2 % 4::4]
                else:
                    functions = functions[number // 2 % 16::16]
                yield Object(form, kind, on_device, functions)
                number += 1


# Those that run without --forms and --long: each kind of kernel, in both memories.
QUICK_OBJECTS = (0, 3, 5, 8, 10, 12)


def choose_objects(options):
    objects = list(create_objects("--long" in options))
    if "--long" in options or "--forms" in options:
        return objects
    return [objects[i] for i in QUICK_OBJECTS]


def write_object(object, path):
    with open(path, "w") as file:
        for i, (name, function) in enumerate(object.functions):
            function.name = f"f{i}"
            file.write(f"// {name}, {object}\n{function.mlir()}")


class Device:
    """Device memory, provided by the emulator, or host memory."""

    def __init__(self, emulator, on_device):
        self.cuda, self.on_device = ctypes.CDLL(emulator, mode=ctypes.RTLD_GLOBAL), on_device
        self.cuda.mgpuMemAlloc.restype = ctypes.c_void_p
        self.cuda.mgpuMemAlloc.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_bool]
        self.cuda.mgpuMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]

    def upload(self, array):
        if not self.on_device:
            return array.ctypes.data
        pointer = self.cuda.mgpuMemAlloc(array.nbytes, None, False)
        self.cuda.mgpuMemcpy(pointer, array.ctypes.data, array.nbytes, None)
        return pointer

    def download(self, array, pointer):
        if self.on_device:
            self.cuda.mgpuMemcpy(array.ctypes.data, pointer, array.nbytes, None)


def encode(kind, values):
    if kind != "bf16":
        return np.ascontiguousarray(values.astype(DTYPES[kind]))
    return np.ascontiguousarray((values.astype("<f4").view("<u4") >> 16).astype("<u2"))


def decode(kind, values):
    if kind == "bf16":
        return numpy_reference.widen(values)
    return values if kind == "i1" else values.astype(np.longdouble)


def at_view(buffer, shape, view):
    size = buffer.itemsize
    return np.lib.stride_tricks.as_strided(buffer[view.offset:], shape, [size * s for s in view.strides])


def descriptor(pointer, shape, view):
    return (ctypes.c_int64 * (3 + 2 * len(shape)))(pointer, pointer, view.offset, *shape, *view.strides)


RANGES = {"dy": (-1, 2), "x": (-2, 1), "scale": (0.5, 2), "mean": (-1, 1), "variance": (0.5, 1.5), "mask": (-0.3, 0.7)}


def call(library, device, function, random):
    """Runs `function` on random data; returns the errors of its results."""
    buffers, pointers, values = {}, {}, {}
    for operand in function.operands:
        view, kind = function.view_of(operand), function.kind_of(operand)
        if operand in RESULTS:
            data = np.full(view.length, 7.0)
        else:
            data = random.uniform(*RANGES[operand], view.length)
        buffers[operand] = encode(kind, data > 0 if operand == "mask" else data)
        pointers[operand] = device.upload(buffers[operand])
        if operand not in RESULTS:
            values[operand] = decode(kind, at_view(buffers[operand], function.shape_of(operand), view))
    descriptors = [descriptor(pointers[o], function.shape_of(o), function.view_of(o)) for o in function.operands]
    getattr(library, f"_mlir_ciface_{function.name}")(*map(ctypes.byref, descriptors))
    if status := device.cuda.bngradCudaTakeStatus():
        return [f"status {status}"]
    problems, results = [], []
    for result in RESULTS:
        buffer, view, shape = buffers[result], function.view_of(result), function.shape_of(result)
        device.download(buffer, pointers[result])
        results.append(decode(function.kind_of(result), at_view(buffer, shape, view)).copy())
        at_view(buffer, shape, view)[...] = encode(function.kind_of(result), np.array([7.0]))[0]
        if np.any(buffer != buffer[0]) or buffer[0] != encode(function.kind_of(result), np.array([7.0]))[0]:
            problems.append(f"{result} has written beside its elements")
    return problems + numpy_reference.compare(results, expect(function, values))


def expect(function, values):
    """numpy's results and their bounds."""
    c = numpy_reference.Configuration.__new__(numpy_reference.Configuration)
    c.data, c.parameter, c.shape, c.features = function.kind, function.parameter, function.shape, function.features
    c.results = [function.kind_of(r) for r in RESULTS]
    c.reduced = tuple(d for d in range(len(c.shape)) if d not in c.features)
    c.channels = function.shape_of("mean")
    c.count = int(np.prod([c.shape[d] for d in c.reduced]))
    c.is_batch, c.has_inv_std, c.has_scale, c.epsilon = True, False, True, EPSILON
    names = {"dy": "grad_output", "x": "input"}
    return numpy_reference.reference(c, {names.get(o, o): v for o, v in values.items()})


def run_object(object, library, emulator, traffic):
    """Calls the functions of `object`; returns the number of wrong ones."""
    device = Device(emulator, object.on_device)
    loaded = ctypes.CDLL(library)
    random = np.random.default_rng(1)
    failed, launched = 0, 0
    is_one_pass = not object.form.startswith("two-pass")
    for name, function in object.functions:
        print(f"{function.name}: {name}, {object}", flush=True)
        problems = call(loaded, device, function, random)
        with open(traffic) as file:
            kernels = [json.loads(line)["kernel"] for line in file]
        kernels, launched = kernels[launched:], len(kernels)
        # A copy on the device is dense.
        if is_one_pass and not object.on_device and kernels != ["one_pass"]:
            problems.append(f"expected one pass, got {kernels}")
        if not kernels:
            problems.append("expected kernels, got none")
        failed += bool(problems)
        for problem in problems:
            print(f"FAILED: {problem}")
    print(f"{failed} of {len(object.functions)} failed")


def check_object(number, object, compiler, directory):
    """Compiles `object` and calls its functions in another process; returns the errors."""
    path = os.path.join(directory, f"{number}")
    write_object(object, path + ".mlir")
    flags = ["--device-arguments"] if object.on_device else []
    done = subprocess.run([compiler, path + ".mlir", "-o", path + ".so", "--target=cuda", "--chip=sm_90", *flags,
                           f"--schedule=#bngrad.schedule<{forms(object.kind)[object.form][0]}>"],
                          capture_output=True, text=True)
    if done.returncode == 0 and not done.stderr:
        open(path + ".traffic", "w").close()
        done = subprocess.run([sys.executable, *sys.argv, f"--object={number}"], capture_output=True, text=True,
                              env={**os.environ, "PTX_EMULATOR_TRAFFIC": path + ".traffic"})
    if done.returncode == 0 and not done.stderr and done.stdout.endswith(f"\n0 of {len(object.functions)} failed\n"):
        return ""
    return f"FAILED {path}.mlir: {object}: exit status {done.returncode}\n{done.stdout}{done.stderr}"


def main():
    compiler, emulator, directory, *options = sys.argv[1:]
    objects = choose_objects(options)
    chosen = [int(o.split("=")[1]) for o in options if o.startswith("--object=")]
    if chosen:
        [i] = chosen
        path = os.path.join(directory, f"{i}")
        write_object(objects[i], os.devnull)  # names the functions
        run_object(objects[i], path + ".so", emulator, path + ".traffic")
        return 0
    os.makedirs(directory, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = list(pool.map(lambda i: check_object(i, objects[i], compiler, directory), range(len(objects))))
    print("".join(problems), end="")
    print(f"{sum(len(o.functions) for o in objects)} functions in {len(objects)} objects, "
          f"{sum(map(bool, problems))} failed")
    return any(problems)


if __name__ == "__main__":
    sys.exit(main())
