"""Compiled code lives as long as anything that may call it, and processes may fork and end meanwhile.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import bngrad
import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "Inputs"))
import deep_bytecode

DOUBLE = """
func.func @double(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
X = np.arange(5, dtype=np.float32)


def overwrite_freed_code():
    """Compiles other programs, whose code takes the place of what was freed."""
    gc.collect()
    for _ in range(3):
        bngrad.compile(DOUBLE.replace("addf", "mulf"))(X)


def is_double(program):
    return np.array_equal(program(X), 2 * X)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda program: pickle.loads(pickle.dumps(program)),
                                    lambda program: copy.deepcopy([program])[0], lambda program: program.__call__,
                                    lambda program: program._call])
def test_copies_outlive_the_program(copied):
    program = bngrad.compile(DOUBLE)
    other = copied(program)
    del program
    overwrite_freed_code()
    assert is_double(other)


def test_attributes_in_another_object():
    program = bngrad.compile(DOUBLE)
    other = object.__new__(bngrad.Program)
    other.__dict__.update(program.__dict__)
    del program
    overwrite_freed_code()
    assert is_double(other)


def test_pickles_keep_the_options():
    program = bngrad.compile(DOUBLE + DOUBLE.replace("double", "other"), entry="other")
    again = pickle.loads(pickle.dumps(program))
    assert (again.entry, again.target, again.signature) == ("other", "cpu", program.signature)


def test_code_is_freed_with_the_last_owner():
    program = bngrad.compile(DOUBLE)
    other, reference = copy.copy(program), weakref.ref(program._call)
    del program
    gc.collect()
    assert reference() is not None
    del other
    gc.collect()
    assert reference() is None


def test_a_call_keeps_the_code():
    """The last reference goes while another thread calls."""
    x = np.zeros(2_000_000, np.float32)
    for _ in range(5):
        programs = [bngrad.compile(DOUBLE)]
        started, right = threading.Event(), []

        def call(program):
            started.set()
            right.append(not program(x).any())

        thread = threading.Thread(target=call, args=(programs[0],))
        thread.start()
        started.wait()
        programs.clear()
        overwrite_freed_code()
        thread.join()
        assert right == [True]


def test_signals_stay_as_they_are():
    program = f"""
import bngrad, os, signal
received = []
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: received.append(number))
bngrad.compile({DOUBLE!r})
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    os.kill(os.getpid(), number)
print(len(received))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "4\n", "")


def test_fork_while_another_thread_compiles():
    program = f"""
import bngrad, os, threading, time
bngrad.compile({DOUBLE!r})

def compile():
    while True:
        bngrad.compile({DOUBLE!r})

threading.Thread(target=compile, daemon=True).start()
right = 0
for i in range(10):
    time.sleep(0.01 * i)
    child = os.fork()
    if child == 0:
        bngrad.compile({DOUBLE!r})
        os._exit(0)
    right += os.waitpid(child, 0)[1] == 0
print(right, flush=True)
os._exit(0)
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "10\n", "")


def make_gradients(count):
    """A program that takes long to compile."""
    ops = "".join(f"""
  %g{i}, %s{i}, %o{i} = bngrad.batch_norm_backward grad_output(%g{i - 1} : tensor<?x?xf32>) input(%x : tensor<?x?xf32>)
      mean(%m : tensor<?xf32>) inv_std(%m : tensor<?xf32>) : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>"""
                  for i in range(1, count + 1))
    return f"""
func.func @gradients(%g0: tensor<?x?xf32>, %x: tensor<?x?xf32>, %m: tensor<?xf32>) -> tensor<?x?xf32> {{{ops}
  return %g{count} : tensor<?x?xf32>
}}"""


def test_fork_waits_for_a_compilation():
    program = f"""
import bngrad, os, threading, time

def measure(function):
    start = time.monotonic()
    function()
    return time.monotonic() - start

def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

bngrad.compile({DOUBLE!r})
seconds = measure(lambda: bngrad.compile({make_gradients(4)!r}))
alone = measure(fork)
thread = threading.Thread(target=bngrad.compile, args=({make_gradients(4)!r},))
thread.start()
time.sleep(seconds / 4)
waited = measure(fork)
thread.join()
print(waited > alone + seconds / 4 or (seconds, alone, waited))
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")


@pytest.mark.parametrize("module, use", [("bngrad._compile", f"bngrad.compile({DOUBLE!r})"),
                                         ("bngrad._explain", "bngrad.explain"),
                                         ("bngrad_compiler", f"bngrad.compile({DOUBLE!r})")])
def test_fork_while_another_thread_imports(module, use):
    program = f"""
import bngrad, os, signal, sys, threading, time

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and not begun.is_set():
            begun.set()
            time.sleep(1)

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: {use})
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    {use}
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
thread.join()
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == (0, "0\n", "")


def test_the_process_ends_while_a_daemon_thread_compiles():
    program = f"""
import bngrad, sys, threading, time

def compile():
    while True:
        bngrad.compile({DOUBLE!r})

threading.Thread(target=compile, daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
    for seconds in (0.1, 0.3, 0.5, 0.7, 0.9):
        result = subprocess.run([sys.executable, "-c", program, str(seconds)], capture_output=True, text=True,
                                timeout=120)
        assert (result.returncode, result.stderr) == (0, "")


class Interrupted:
    def __index__(self):
        raise KeyboardInterrupt

    def __float__(self):
        raise KeyboardInterrupt


def test_interrupts_are_no_errors_of_types():
    program = bngrad.compile("""
func.func @scalars(%x: tensor<2xf32>, %i: index, %f: f32) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}""")
    x = X[:2]
    for arguments in ((x, Interrupted(), 1.0), (x, 1, Interrupted())):
        with pytest.raises(KeyboardInterrupt):
            program(*arguments)
    for keywords in ({"feature_dims": Interrupted()}, {"feature_dims": (Interrupted(),)}, {"epsilon": Interrupted()}):
        with pytest.raises(KeyboardInterrupt):
            bngrad.batch_norm_backward(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32),
                                       np.ones(3, np.float32), variance=np.ones(3, np.float32), **keywords)


COPY = """
func.func @reverse(%from: memref<4xf32, strided<[?], offset: ?>> loc("from"),
                   %to: memref<4xf32, strided<[?], offset: ?>> loc("to")) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %k = arith.subi %c3, %i : index
    %x = memref.load %from[%i] : memref<4xf32, strided<[?], offset: ?>>
    memref.store %x, %to[%k] : memref<4xf32, strided<[?], offset: ?>>
  }
  return
}"""


def test_written_memory_that_overlaps():
    program = bngrad.compile(COPY)
    memory = np.arange(8, dtype=np.float32)
    # The same elements in the same or in another order, and the last one overlaps the first.
    for start, other in [(memory[:4], memory[:4]), (memory[:4], memory[3::-1]), (memory[:4], memory[1:5]),
                         (memory[:4], memory[3:7]), (memory[::2], memory[1:5])]:
        with pytest.raises(bngrad.ParameterError, match="to: expected memory apart from that of from, got an overlap"):
            program(start, other)
    assert np.array_equal(memory, np.arange(8))
    program(memory[:4], memory[4:])
    assert np.array_equal(memory[4:], [3, 2, 1, 0])
    program(memory[::2], memory[1::2])
    assert np.array_equal(memory[1::2], [1, 3, 2, 0])


def test_a_program_that_works_in_place():
    program = bngrad.compile("""
func.func @negate(%x: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%x : memref<4xf32>) {
  ^bb0(%a: f32):
    %b = arith.negf %a : f32
    linalg.yield %b : f32
  }
  return
}""")
    memory = np.arange(4, dtype=np.float32)
    program(memory)
    assert np.array_equal(memory, -np.arange(4))


def test_memory_that_is_only_read():
    program = bngrad.compile("""
func.func @add(%a: memref<4xf32>, %b: memref<4xf32>) -> tensor<4xf32> {
  %x = bufferization.to_tensor %a restrict : memref<4xf32> to tensor<4xf32>
  %y = bufferization.to_tensor %b restrict : memref<4xf32> to tensor<4xf32>
  %0 = arith.addf %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}""")
    memory = np.arange(6, dtype=np.float32)
    memory.flags.writeable = False
    assert program(memory[:4], memory[2:]).tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("text", [
    "module {" * 4000 + "}" * 4000,
    "func.func private @f() attributes {a = " + "[" * 8000 + "]" * 8000 + "}",
    "func.func private @f(" + "tuple<" * 16000 + "i1" + ">" * 16000 + ")",
    "#map = affine_map<(d) -> (" + "-" * 50000 + "d)>",
    "#map = affine_map<(d) -> (d" + " + d" * 100000 + ")>",
    *("#map = affine_map<(d) -> (d" + f" {operator} 3" * 100000 + ")>" for operator in ("floordiv", "ceildiv", "mod")),
    "#a0 = [1] " + " ".join(f"#a{i + 1} = [#a{i}]" for i in range(20000)) + " module attributes {a = #a20000} {}",
    "\n".join(["#a0 = [1]"] + [f"#a{i + 1} = [#a{i}]" for i in range(20000)]) +
    "\nfunc.func private @f() attributes {a = #a20000}"])
def test_deep_nesting(text):
    for function in (bngrad.compile, lambda text: bngrad.opt(text, ["--canonicalize"])):
        with pytest.raises(bngrad.CompileError, match="expected brackets, aliases and operators to be nested at most "
                                                      "256 deep, got more"):
            function(text)


def test_deep_libraries(tmp_path):
    (tmp_path / "deep.mlir").write_text("module {" * 4000 + "}" * 4000)
    option = f"transform-preload-library{{transform-library-paths={tmp_path}}}"
    for passes in (f"builtin.module({option})", [f"--transform-preload-library=transform-library-paths={tmp_path}"]):
        with pytest.raises(bngrad.CompileError, match="deep.mlir:1:2056: .* nested at most 256 deep"):
            bngrad.opt("module {}", passes)


@pytest.mark.parametrize("kind", deep_bytecode.KINDS)
def test_deep_bytecode(kind):
    bytecode = deep_bytecode.make(kind, 30000)
    for function in (bngrad.compile, lambda text: bngrad.opt(text, ["--canonicalize", "--allow-unregistered-dialect"])):
        with pytest.raises(bngrad.CompileError, match="expected .* to be nested at most 256 deep, got more"):
            function(bytecode)


def test_words_that_are_no_operators():
    calls = "\n".join("func.call @mod() : () -> ()" for _ in range(300))
    text = f"func.func private @mod()\nfunc.func @f() {{\n{calls}\nreturn\n}}"
    assert bngrad.opt(text, []).count("call @mod") == 300


def test_nesting_up_to_the_limit():
    text = "module {" * 200 + "}" * 200
    assert bngrad.opt(text, []).count("module") == 200
