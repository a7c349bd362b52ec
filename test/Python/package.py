"""The import, the stubs and the docstrings of the package.

RUN: %python -m pytest -q %s
"""

import ast
import builtins
import ctypes
import inspect
import pathlib
import re
import subprocess
import sys

import bngrad
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from exporter import Exporter

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(bngrad.__file__).parent
FUNCTIONS = ["batch_norm_backward", "batch_norm_backward_reduce", "batch_norm_backward_elemt", "batch_norm_training",
             "batch_norm_inference", "get_num_threads", "set_num_threads"]


def run(program):
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def test_import_is_quick():
    """Quicker than that of numpy on the same machine; neither numpy nor a framework comes with it."""
    def measure(module):
        program = (f"import sys, time; start = time.process_time(); import {module}\n"
                   "print(time.process_time() - start, *sys.modules)")
        lines = [run(program).split() for _ in range(5)]
        return min(float(line[0]) for line in lines), set(lines[0][1:])

    seconds, modules = measure("bngrad")
    assert seconds < measure("numpy")[0]
    assert not {"numpy", "torch", "jax", "ml_dtypes"} & modules


def test_version():
    assert f"project(BNGrad VERSION {bngrad.__version__} " in (ROOT / "CMakeLists.txt").read_text()


def test_documentation():
    """The example of docs/python.md runs, and its table has all errors."""
    section = (ROOT / "docs/python.md").read_text().split("\n## ")[2]
    assert section.startswith("numpy")
    program = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    names = {}
    exec(program.replace("56, 56", "5, 6"), names)
    assert names["grad_input"].shape == (32, 64, 5, 6) and names["grad_scale"].shape == (64,)
    rows = set(re.findall(r"^\| `(\w+Error)` \| (?:`(\w+)`)?", section, re.MULTILINE))
    classes = {name: getattr(bngrad, name) for name in bngrad.__all__ if name.endswith("Error")} | {"Error": None}
    assert {name for name, _ in rows} == set(classes) - {"Error"}
    assert all(not builtin or issubclass(classes[name], getattr(builtins, builtin)) for name, builtin in rows)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stub_has_the_signature(name):
    """The names, order and kinds of the parameters are those of the function."""
    function = getattr(bngrad, name)
    assert function.__doc__ and len(inspect.getdoc(function).splitlines()) > 2
    signature = function.__nb_signature__[0][0]
    runtime = ast.parse(re.sub(r"\\\d+", "None", signature) + ": ...").body[0].args
    stub = [node for node in ast.parse((FOLDER / "__init__.pyi").read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name == name][-1].args
    assert [a.arg for a in runtime.args] == [a.arg for a in stub.args]
    assert [a.arg for a in runtime.kwonlyargs] == [a.arg for a in stub.kwonlyargs]


def test_stub_has_all_names():
    tree = ast.parse((FOLDER / "__init__.pyi").read_text())
    lists = [ast.literal_eval(node.value) for node in tree.body
             if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    assert lists == [bngrad.__all__]
    assert all(hasattr(bngrad, name) for name in bngrad.__all__)


def test_types(tmp_path):
    """mypy accepts what is right, and names what is wrong."""
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text("""
import bngrad
import numpy as np
x = np.ones((2, 3), np.float32)
c = np.ones(3, np.float32)
a, b, _ = bngrad.batch_norm_backward(x, x, c, inv_std=c, feature_dims=-1)
a.shape, b.dtype
first = bngrad.batch_norm_backward(x, x, c, inv_std=c, wanted=("grad_input",), out=(x, None, None))[0]
first.shape  # 9: may be None
bngrad.batch_norm_backward_elemt(x, x, c, bngrad.batch_norm_backward_reduce(x, x, c), 2, inv_std=c).shape
bngrad.batch_norm_backward(x, x, [1.0], inv_std=c)  # 11: no array
bngrad.batch_norm_backward(x, x, c, inv_std=c, statistics="running")  # 12: neither
bngrad.batch_norm_backward(x, x, c, c)  # 13: keyword only
bngrad.set_num_threads(2.0)  # 14: no integer
try:
    pass
except bngrad.Error as error:
    error.status.lower()
""")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "program.py"],
        cwd=tmp_path, capture_output=True, text=True)
    lines = {int(line) for line in re.findall(r"^program\.py:(\d+): error", done.stdout, re.MULTILINE)}
    assert lines == {9, 11, 12, 13, 14}, done.stdout + done.stderr


class WithNamespace(Exporter):
    """One with the namespace of the array API."""

    def __array_namespace__(self):
        return np


def test_any_dlpack():
    """Operands of any library; results are of that of grad_output if it has a namespace."""
    random = np.random.default_rng(1)
    x = random.normal(size=(2, 3, 4))
    mean, inv_std = random.uniform(1, 2, size=(2, 3))
    expected = bngrad.batch_norm_backward(x, x, mean, inv_std=inv_std)
    for kind in (Exporter, WithNamespace):
        results = bngrad.batch_norm_backward(*map(kind, (x, x[:, :, :], mean)), inv_std=kind(inv_std))
        assert kind is Exporter or all(isinstance(result, np.ndarray) for result in results)
        assert all(np.array_equal(np.from_dlpack(a), b) for a, b in zip(results, expected))
    mixed = bngrad.batch_norm_backward(x, Exporter(x), mean, inv_std=Exporter(inv_std))
    assert all(np.array_equal(a, b) for a, b in zip(mixed, expected))
    out = np.empty_like(x)
    given = Exporter(out)
    assert bngrad.batch_norm_backward(x, x, mean, inv_std=inv_std, out=(given, None, None))[0] is given
    assert np.array_equal(out, expected[0])
    read_only = out.copy()
    read_only.flags.writeable = False
    with pytest.raises(bngrad.ParameterError, match="grad_input: expected memory to write to"):
        bngrad.batch_norm_backward(x, x, mean, inv_std=inv_std, out=(Exporter(read_only), None, None))
    with pytest.raises(bngrad.Error, match="input: expected dtype .*, got int64"):
        bngrad.batch_norm_backward(x, Exporter(np.ones((2, 3, 4), np.int64)), mean, inv_std=inv_std)


class Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Handmade:
    """A tensor of 2 x 3 elements of f32, without strides unless fields say otherwise."""

    def __init__(self, **fields):
        self.values = np.arange(6, dtype=np.float32).reshape(2, 3)
        self.shape = (ctypes.c_int64 * 2)(2, 3)
        self.tensor = Tensor(data=self.values.ctypes.data, device_type=1, ndim=2, code=2, bits=32, lanes=1,
                             shape=ctypes.addressof(self.shape))
        for name, value in fields.items():
            setattr(self.tensor, name, value)

    def __dlpack__(self, **keywords):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return self.tensor.device_type, 0


@pytest.mark.parametrize("fields, kind, text", [
    ({"device_type": 2}, bngrad.DeviceError, "input: expected data on the CPU, got DLPack's device type 2"),
    ({"lanes": 2}, bngrad.DtypeError, "input: expected dtype float16, .*, got float32x2"),
    ({"code": 0}, bngrad.DtypeError, "input: expected dtype float16, .*, got int32"),
    ({"code": 77, "bits": 8}, bngrad.DtypeError, "input: expected dtype float16, .*, got type 77 of bits 8"),
])
def test_dlpack_tensors_that_are_no_operands(fields, kind, text):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(kind, match=text):
        bngrad.batch_norm_backward(x, Handmade(**fields), x[0], inv_std=x[0])


def test_dlpack_without_strides_and_with_an_offset():
    x, handmade = np.arange(6, dtype=np.float32).reshape(2, 3), Handmade(byte_offset=0)
    mean, inv_std = x[0] * 0.5, x[0] + 1
    expected = bngrad.batch_norm_backward(x, x, mean, inv_std=inv_std)
    results = bngrad.batch_norm_backward(x, handmade, mean, inv_std=inv_std)
    assert all(np.array_equal(a, b) for a, b in zip(results, expected))
    shifted = Handmade(data=handmade.values.ctypes.data - 8, byte_offset=8)
    results = bngrad.batch_norm_backward(x, shifted, mean, inv_std=inv_std)
    assert all(np.array_equal(a, b) for a, b in zip(results, expected))


def test_errors_of_dlpack_are_those_of_the_library():
    class Broken:
        def __dlpack__(self, **keywords):
            raise BufferError("no such memory")

    x = np.ones((2, 3))
    with pytest.raises(BufferError, match="no such memory"):
        bngrad.batch_norm_backward(x, Broken(), x[0], inv_std=x[0])
