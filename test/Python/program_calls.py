"""bngrad.compile and calls of programs: types of elements, arrays, errors, threads of Python.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import gc
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import bngrad
import ml_dtypes
import numpy as np
import pytest

ROOT = pathlib.Path(os.environ["BNGRAD_BUILD"])

SCALE = """
func.func @scale(%x: tensor<?x3xf32>, %factor: f32) -> tensor<?x3xf32> {
  %all = tensor.empty() : tensor<3xf32>
  %row = linalg.fill ins(%factor : f32) outs(%all : tensor<3xf32>) -> tensor<3xf32>
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x3xf32>
  %empty = tensor.empty(%rows) : tensor<?x3xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                             affine_map<(i, j) -> (i, j)>],
                            iterator_types = ["parallel", "parallel"]}
      ins(%x, %row : tensor<?x3xf32>, tensor<3xf32>) outs(%empty : tensor<?x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %product = arith.mulf %a, %b : f32
    linalg.yield %product : f32
  } -> tensor<?x3xf32>
  return %result : tensor<?x3xf32>
}"""

ADD = """
func.func @add(%x: tensor<4x{T}>, %y: {T}) -> tensor<4x{T}> {{
  %empty = tensor.empty() : tensor<4x{T}>
  %all = linalg.fill ins(%y : {T}) outs(%empty : tensor<4x{T}>) -> tensor<4x{T}>
  %sum = arith.{OP} %x, %all : tensor<4x{T}>
  return %sum : tensor<4x{T}>
}}"""


@pytest.fixture(scope="module")
def scale():
    return bngrad.compile(SCALE)


@pytest.mark.parametrize("name, dtype", [
    ("i1", np.bool_), ("i8", np.int8), ("i8", np.uint8), ("i16", np.int16), ("i16", np.uint16), ("i32", np.int32),
    ("i32", np.uint32), ("i64", np.int64), ("i64", np.uint64), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16),
    ("f32", np.float32), ("f64", np.float64)])
def test_types_of_elements(name, dtype):
    """An array and a scalar of every type."""
    is_float, is_bool = name.startswith(("f", "b")), name == "i1"
    program = bngrad.compile(ADD.format(T=name, OP="addf" if is_float else "xori" if is_bool else "addi"))
    x = np.array([0, 1, 1, 0] if is_bool else [0, 1, 100, 7], dtype)
    y = True if is_bool else 2.5 if is_float else 5
    result = program(x, y)
    expected = x ^ y if is_bool else (x.astype(np.float64) + y).astype(dtype) if is_float else x + dtype(y)
    assert np.array_equal(result.view(dtype), expected)
    kind = np.dtype(dtype)
    assert result.dtype == (np.dtype(f"int{kind.itemsize * 8}") if kind.kind == "u" else kind)


@pytest.mark.parametrize("name, value, bits", [
    ("f16", 1 + 2**-11, 0x3C00), ("f16", 1 + 3 * 2**-11, 0x3C02), ("f16", 1e9, 0x7C00), ("bf16", 1 + 2**-8, 0x3F80),
    ("bf16", -(1 + 3 * 2**-8), 0xBF82), ("bf16", float("-inf"), 0xFF80)])
def test_scalars_are_rounded_to_nearest_even(name, value, bits):
    program = bngrad.compile(f"""
func.func @fill(%y: {name}) -> tensor<1x{name}> {{
  %empty = tensor.empty() : tensor<1x{name}>
  %all = linalg.fill ins(%y : {name}) outs(%empty : tensor<1x{name}>) -> tensor<1x{name}>
  return %all : tensor<1x{name}>
}}""")
    assert program(value).view(np.uint16).tolist() == [bits]


def test_index_scalars_are_sizes():
    program = bngrad.compile("""
func.func @ramp(%n: index) -> tensor<?xi64> {
  %ramp = tensor.generate %n {
  ^bb0(%i: index):
    %value = arith.index_cast %i : index to i64
    tensor.yield %value : i64
  } : tensor<?xi64>
  return %ramp : tensor<?xi64>
}""")
    assert program(5).tolist() == [0, 1, 2, 3, 4]
    assert program(np.int32(0)).shape == (0,)
    for size, text in [(-1, "to be at least 0, got -1"), (2**62, "expected product of sizes to be at most 72057594037927936"),
                       (2**55, "expected at most 2\\^47 bytes, got more")]:
        with pytest.raises(bngrad.ShapeError, match=text):
            program(size)


def test_results():
    """None, one, or a tuple; without an array among the arguments they are of numpy."""
    constant = "%c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
    for count in (0, 1, 3):
        types = ", ".join(["tensor<2xf32>"] * count)
        values = f"return {', '.join(['%c'] * count)} : {types}" if count else "return"
        program = bngrad.compile(f"func.func @f() -> ({types}) {{\n{constant if count else ''}{values}\n}}")
        results = program()
        if count == 0:
            assert results is None
            continue
        results = results if count > 1 else (results,)
        assert type(results) is tuple and len(results) == count == len({r.ctypes.data for r in results})
        assert all(result.tolist() == [1, 2] for result in results)


def test_memrefs_are_written_to():
    program = bngrad.compile("""
func.func @copy(%from: memref<?x2xf32, strided<[?, 1]>>, %to: memref<?x2xf32>) {
  memref.copy %from, %to : memref<?x2xf32, strided<[?, 1]>> to memref<?x2xf32>
  return
}""")
    memory, to = np.arange(24, dtype=np.float32).reshape(6, 4), np.zeros((3, 2), np.float32)
    assert program(memory[::2, :2], to) is None
    assert np.array_equal(to, memory[::2, :2])
    to.flags.writeable = False
    with pytest.raises(bngrad.ParameterError, match="arg1: expected memory to write to, got a read-only array"):
        program(memory[::2, :2], to)


def test_sizes_of_results_are_inferred():
    """That are no sizes of arguments."""
    program = bngrad.compile("""
func.func @join(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> (tensor<?x2xf32>, tensor<?xf32>) {
  %joined = tensor.concat dim(0) %x, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %flat = tensor.collapse_shape %joined [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  return %joined, %flat : tensor<?x2xf32>, tensor<?xf32>
}""")
    x, y = np.ones((3, 2), np.float32), np.full((2, 2), 2, np.float32)
    joined, flat = program(x, y)
    assert np.array_equal(joined, np.concatenate([x, y])) and np.array_equal(flat, joined.reshape(-1))


def test_attributes(scale):
    assert scale.entry == "scale" and scale.target == "cpu" and scale.schedule == ()
    assert scale.arguments == (("arg0", "f32", (None, 3)), ("arg1", "f32", None))
    assert isinstance(scale.results[0], bngrad.Parameter) and scale.results[0].shape == (None, 3)
    assert scale.signature == "(arg0: ?x3xf32, arg1: f32) -> (result0: ?x3xf32)"
    assert repr(scale) == f"<bngrad.Program scale{scale.signature} for cpu>"


X = np.ones((2, 3), np.float32)
WRONG_CALLS = [
    ((X,), bngrad.DtypeError, "expected 2 arguments (arg0, arg1), got 1"),
    ((X.astype(np.float64), 1), bngrad.DtypeError, "arg0: expected dtype f32, got f64"),
    ((X.astype(complex), 1), bngrad.DtypeError, "arg0: expected dtype f32, got complex128"),
    ((X.astype(int), 1), bngrad.DtypeError, "arg0: expected dtype f32, got i64"),
    ((X.astype(">f4"), 1), bngrad.DtypeError, "arg0: expected the order of bytes of this CPU, got the other one"),
    (([1.0], 1), bngrad.DtypeError, "arg0: expected a numpy array or an object with __dlpack__, got list"),
    ((X[0], 1), bngrad.ShapeError, "arg0: expected rank 2, got 1"),
    ((X[:, :2], 1), bngrad.ShapeError, "arg0: expected size of dim 1 to be 3, got 2"),
    ((np.ones((3, 2), np.float32).T, 1), bngrad.StridesError, "arg0: expected stride of dim 1 to be 1, got 2"),
    ((np.zeros((2, 3), [("a", "i1"), ("b", "f4")])["b"], 1), bngrad.StridesError,
     "arg0: expected stride of dim 0 to be a multiple of 4 bytes, got 15"),
    ((np.frombuffer(bytes(25), np.float32, 6, 1).reshape(2, 3), 1), bngrad.ParameterError,
     "arg0: expected an address that is a multiple of 4, got a remainder of "),
    ((X, "1"), bngrad.DtypeError, "arg1: expected a number, got str"),
]


@pytest.mark.parametrize("arguments, kind, text", WRONG_CALLS, ids=[case[2][:40] for case in WRONG_CALLS])
def test_wrong_calls(scale, arguments, kind, text):
    with pytest.raises(bngrad.Error) as caught:
        scale(*arguments)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("value", [-129, 256, 2**70, 1.5, None])
def test_wrong_integers(value):
    program = bngrad.compile(ADD.format(T="i8", OP="addi"))
    with pytest.raises(bngrad.Error, match="expected (a value of i8|an integer), got"):
        program(np.zeros(4, np.int8), value)
    assert program(np.zeros(4, np.int8), 255).tolist() == [-1] * 4


def test_sizes_that_disagree():
    """The text is that of NAME_diagnose, with the line in the program."""
    program = bngrad.compile("""
func.func @add(%x: tensor<?xf32> loc("x"), %y: tensor<?xf32> loc("y")) -> tensor<?xf32> {
  %sum = arith.addf %x, %y : tensor<?xf32>
  return %sum : tensor<?xf32>
}""")
    for sizes in ((3, 4), (4, 3)):
        with pytest.raises(bngrad.ShapeError) as caught:
            program(*(np.ones(size, np.float32) for size in sizes))
        assert str(caught.value) == (f"expected dim 0 of operand 1 to have the size of dim 0 of operand 0, {sizes[0]}, "
                                     f"got {sizes[1]} (line 3)")
    assert [parameter.name for parameter in program.arguments] == ["x", "y"]


DATA_DEPENDENT = """
func.func @data(%a: memref<?xindex>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  memref.store %c7, %a[%c0] : memref<?xindex>
  %n = memref.load %a[%c0] : memref<?xindex>
  %0 = tensor.empty(%n) : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
WRONG_PROGRAMS = [
    ("func.func @f() {", {}, "<mlir>:1:15: error: expected operation name in quotes"),
    ("func.func @f(%x: tensor<2xf32>) {\n  %y = arith.addf %x : tensor<2xf32>\n  return\n}", {}, "<mlir>:2:"),
    ("", {}, "error: expected a public function with a body, got none"),
    ("func.func @f() { return }\nfunc.func @g() { return }", {}, "expected entry to be one of @f, @g, got none"),
    ("func.func @f() { return }", {"entry": "h"}, "expected entry to be a function with a body (@f), got @h"),
    ("func.func @f() { return }", {"schedule": "fast"}, "schedule: "),
    ("func.func @f() { return }", {"schedule": "[" * 30000}, "schedule: expected brackets, aliases and operators to be"),
    ("func.func @f() { return }", {"target": "cuda:sm_12"}, "target: "),
    ("func.func @f(%x: tensor<2xcomplex<f32>>) { return }", {}, "expected argument 0 of @f to be a ranked tensor"),
    ("func.func @f() { \"other.op\"() : () -> () return }", {}, "expected an op of a registered dialect"),
    (DATA_DEPENDENT, {}, "expected size of dim 0 of result 0 to follow from the arguments, got one that depends on"),
]


@pytest.mark.parametrize("text, options, expected", WRONG_PROGRAMS, ids=[case[2][:40] for case in WRONG_PROGRAMS])
def test_wrong_programs(text, options, expected):
    with pytest.raises(bngrad.CompileError) as caught:
        bngrad.compile(text, **options)
    error = caught.value
    assert expected in str(error) and isinstance(error, ValueError)
    assert error.diagnostics and all(isinstance(item, bngrad.Diagnostic) for item in error.diagnostics)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.diagnostics, copy.status) == (str(error), error.diagnostics, error.status)


def test_diagnostics_have_locations_and_notes():
    text = "func.func @f(%x: tensor<2xf32>) {\n  return\n}\nfunc.func @f() {\n  return\n}"
    with pytest.raises(bngrad.CompileError) as caught:
        bngrad.compile(text)
    diagnostic, = caught.value.diagnostics
    assert (diagnostic.severity, diagnostic.file, diagnostic.line) == ("error", "<mlir>", 4)
    assert [(note.severity, note.line) for note in diagnostic.notes] == [("note", 4), ("note", 1)]
    assert str(caught.value) == str(diagnostic) and "\n<mlir>:1:1: note: " in str(caught.value)


@pytest.mark.parametrize("arguments, options, kind, text", [
    ((1,), {}, bngrad.DtypeError, "text: expected MLIR as str or bytes, got int"),
    ((SCALE,), {"entry": 1}, bngrad.DtypeError, "entry: expected str, got int"),
    ((SCALE,), {"entry": "a\0b"}, bngrad.ParameterError, "entry: expected a text without null characters"),
    ((SCALE,), {"schedule": b""}, bngrad.DtypeError, "schedule: expected str, got bytes"),
    ((SCALE,), {"target": "gpu"}, bngrad.ParameterError,
     "target: expected 'cpu', 'cuda', or with its GPUs such as 'cuda:sm_80', got 'gpu'"),
    ((SCALE,), {"target": None}, bngrad.DtypeError, "target: expected str, got NoneType"),
])
def test_wrong_options(arguments, options, kind, text):
    with pytest.raises(kind, match=text):
        bngrad.compile(*arguments, **options)


def test_entries():
    text = """
func.func private @helper(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = func.call @helper(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = arith.addf %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
}"""
    x = np.array([1, 2], np.float32)
    main, twice, helper = (bngrad.compile(text, entry=name) for name in ("main", "twice", "helper"))
    assert [program.entry for program in (main, twice, helper)] == ["main", "twice", "helper"]
    assert main(x).tolist() == helper(x).tolist() == [1, 2] and twice(x).tolist() == [2, 4]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytecode_and_bytes(scale, kind, tmp_path):
    (tmp_path / "scale.mlir").write_text(SCALE)
    tool = ROOT / "bin/bngrad-opt"
    bytecode = subprocess.run([tool, tmp_path / "scale.mlir", "--emit-bytecode"], check=True, capture_output=True).stdout
    assert bytecode.startswith(b"ML")
    for text in (bytecode, SCALE.encode()):
        program = bngrad.compile(kind(text))
        assert program.signature == scale.signature and program(X, 2).tolist() == (X * 2).tolist()


def test_generic_stablehlo():
    program = bngrad.compile("""
func.func @main(%x: tensor<2x3x4xf32>, %scale: tensor<3xf32>, %mean: tensor<3xf32>, %variance: tensor<3xf32>,
                %dy: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %dy)
      <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
      : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3x4xf32>)
      -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>
}""")
    random = np.random.default_rng(1)
    x, dy = random.normal(size=(2, 2, 3, 4)).astype(np.float32)
    c = random.uniform(1, 2, 3).astype(np.float32)
    results = program(x, c, c, c, dy)
    expected = bngrad.batch_norm_backward(dy, x, c, scale=c, variance=c, epsilon=1e-3)
    assert all(np.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(results, expected))


def test_threads_of_python_compile_and_call(scale):
    """At once, programs of their own and a common one."""
    x = np.arange(300_000, dtype=np.float32).reshape(-1, 3)
    wrong = []

    def work(i):
        try:
            own = bngrad.compile(SCALE)
            for factor in range(1, 20):
                for program in (own, scale):
                    if not np.array_equal(program(x, factor + i), x * np.float32(factor + i)):
                        wrong.append(i)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_programs_are_freed():
    """Compiling again and again does not take ever more memory."""
    def measure():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def compile_and_call():
        for _ in range(5):
            assert bngrad.compile(ADD.format(T="f32", OP="addf"))(np.zeros(4, np.float32), 1).tolist() == [1] * 4

    compile_and_call()
    before = measure()
    for _ in range(4):
        compile_and_call()
    assert measure() - before < 40e6


def test_without_the_package():
    """The error says how to install it, and is an ImportError."""
    program = """
import sys
sys.modules["bngrad_compiler"] = None
import bngrad
for call in (lambda: bngrad.compile(""), lambda: bngrad.opt("", [])):
    try:
        call()
    except ImportError as error:
        assert isinstance(error, bngrad.CompilerNotFoundError), error
        print(error.status, error)
"""
    lines = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    text = ("BNGRAD_COMPILER_NOT_FOUND expected the package bngrad-compiler, got none: install its wheel of version "
            f"{bngrad.__version__}, which scripts/wheels.sh builds\n")
    assert lines == 2 * text


WRITES = """
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %i: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %first = arith.cmpi eq, %i, %zero : index
  %r = {}
  memref.store %one, %r[%zero] : {}
  return
}}"""


@pytest.mark.parametrize("name, type", [
    ("arith.select %first, %a, %b : memref<4xf32>", "memref<4xf32>"),
    ("scf.if %first -> memref<4xf32> { scf.yield %a : memref<4xf32> } else { scf.yield %b : memref<4xf32> }",
     "memref<4xf32>"),
    ("memref.transpose %a (d0) -> (d0) : memref<4xf32> to memref<4xf32, strided<[1]>>", "memref<4xf32, strided<[1]>>"),
])
def test_another_name_of_a_memref_is_written(name, type):
    program = bngrad.compile(WRITES.format(name, type))
    a = np.zeros(4, np.float32)
    a.flags.writeable = False
    with pytest.raises(bngrad.ParameterError, match="arg0: expected memory to write to, got a read-only array"):
        program(a, np.zeros(4, np.float32), 0)
    assert not a.any()


def test_a_written_array_does_not_overlap_itself():
    program = bngrad.compile(WRITES.format("memref.cast %a : memref<4xf32> to memref<4xf32>", "memref<4xf32>"))
    a = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (4,), (0,))
    with pytest.raises(bngrad.StridesError):
        program(a, np.zeros(4, np.float32), 0)


def test_numbers_are_read_before_arrays():
    """A number whose __index__ changes an array."""
    program = bngrad.compile("""
func.func @f(%x: tensor<?xf32>, %i: index) -> tensor<1xf32> {
  %v = tensor.extract %x[%i] : tensor<?xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}""")
    x = np.ones(1 << 20, np.float32)

    class Number:
        def __index__(self):
            x.resize(4, refcheck=False)
            return 1 << 19

    with pytest.raises(bngrad.Error):
        program(x, Number())


@pytest.mark.parametrize("type", ["index", "i32"])
def test_poison_is_an_index_of_minus_one(type):
    cast = "" if type == "index" else "%j = arith.index_cast %i : i32 to index"
    program = bngrad.compile(f"""
func.func @f(%x: tensor<?xf32>) -> tensor<1xf32> {{
  %i = ub.poison : {type}
  {cast}
  %v = tensor.extract %x[{"%i" if type == "index" else "%j"}] : tensor<?xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}}""")
    with pytest.raises(bngrad.ShapeError, match=r"^expected index of dim 0 of tensor.extract to be at least 0, got -1 \(line 5\)$"):
        program(np.ones(4, np.float32))


@pytest.mark.parametrize("size", ["?", "1000000"])
def test_arrays_that_another_argument_resizes(size):
    """By its __dlpack__, after it was read."""
    program = bngrad.compile(f"""
func.func @f(%x: tensor<{size}xf32>, %y: tensor<{size}xf32>) -> tensor<{size}xf32> {{
  %r = arith.addf %x, %y : tensor<{size}xf32>
  return %r : tensor<{size}xf32>
}}""")
    x = np.ones(1000000, np.float32)

    class Resizing:
        def __dlpack__(self, **options):
            x.resize(new, refcheck=False)
            return np.ones(1000000, np.float32).__dlpack__(**options)

        def __dlpack_device__(self):
            return 1, 0

    for new in (4, (1000, 1000)):
        with pytest.raises(ValueError, match="arg0: expected an array that no other argument changes, got one that was "
                           "resized or reshaped"):
            program(x, Resizing())
        x = np.ones(1000000, np.float32)


LOADS_IN_REGIONS = {
    "for": """
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> f32 {
    %v = memref.load %a[%i] : memref<?xf32>
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  }""",
    "parallel": """
  %r = scf.parallel (%i) = (%zero) to (%n) step (%one) init (%init) -> f32 {
    %v = memref.load %a[%i] : memref<?xf32>
    scf.reduce(%v : f32) {
    ^bb0(%l: f32, %m: f32):
      %next = arith.addf %l, %m : f32
      scf.reduce.return %next : f32
    }
  }""",
    "while": """
  %end, %r = scf.while (%i = %zero, %sum = %init) : (index, f32) -> (index, f32) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i, %sum : index, f32
  } do {
  ^bb0(%i: index, %sum: f32):
    %v = memref.load %a[%i] : memref<?xf32>
    %j = arith.addi %i, %one : index
    %next = arith.addf %sum, %v : f32
    scf.yield %j, %next : index, f32
  }""",
    "if": """
  %some = arith.cmpi sgt, %n, %zero : index
  %r = scf.if %some -> f32 {
    %last = arith.subi %n, %one : index
    %v = memref.load %a[%last] : memref<?xf32>
    scf.yield %v : f32
  } else {
    scf.yield %init : f32
  }""",
}


@pytest.mark.parametrize("kind", LOADS_IN_REGIONS)
def test_loads_in_regions_with_results_are_checked(kind):
    """Whether a load is in bounds does not depend on what the function writes with its result."""
    program = bngrad.compile(f"""
func.func @f(%a: memref<?xf32>, %n: index) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %init = arith.constant 0.0 : f32{LOADS_IN_REGIONS[kind]}
  memref.store %r, %a[%zero] : memref<?xf32>
  return
}}""")
    a = np.arange(1, 4, dtype=np.float32)
    program(a, 3)
    assert a[0] == (3 if kind == "if" else 6)
    for n in (4, 1000, 1 << 30):
        with pytest.raises(bngrad.ShapeError, match="expected index of dim 0 of .* to be at"):
            program(a, n)


def test_regions_of_paddings_are_checked():
    program = bngrad.compile("""
func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %v = tensor.extract %x[%n] : tensor<?xf32>
    tensor.yield %v : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}""")
    x = np.arange(3, dtype=np.float32)
    assert program(x, 2).tolist() == [2, 0, 1, 2, 2]
    for n in (3, -1, 1 << 30):
        with pytest.raises(bngrad.ShapeError, match="expected index of dim 0 of .* to be at"):
            program(x, n)
