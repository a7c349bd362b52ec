"""Threads of bngrad, several threads of Python, and forks.

RUN: %python -m pytest -q %s
"""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import bngrad
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def restore():
    count = bngrad.get_num_threads()
    yield
    bngrad.set_num_threads(count)


def make(shape, seed=1):
    random = np.random.default_rng(seed)
    x, dy = (random.normal(size=shape).astype(np.float32) for _ in range(2))
    mean, inv_std = (random.uniform(0.5, 2, size=shape[1]).astype(np.float32) for _ in range(2))
    return (dy, x, mean), {"inv_std": inv_std}


def run(case):
    return bngrad.batch_norm_backward(*case[0], **case[1])


def are_same(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right))


@pytest.mark.parametrize("shape", [(8, 16, 28, 28), (64, 3, 101), (2, 1, 300_001), (4096, 32)])
def test_bits_do_not_depend_on_threads(shape):
    case = make(shape)
    results = []
    for count in (1, 2, 3, 4, 16):
        bngrad.set_num_threads(count)
        assert bngrad.get_num_threads() == count
        results.append(run(case))
    assert all(are_same(results[0], result) for result in results)


def test_many_threads_of_python():
    bngrad.set_num_threads(4)
    cases = [make((8, 16 + i, 20, 20), i) for i in range(8)]
    expected = [run(case) for case in cases]
    wrong = []

    def work(i):
        for _ in range(30):
            if not are_same(run(cases[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for count in (1, 3, 2) * 20:
        bngrad.set_num_threads(count)
        time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_calls_release_the_lock():
    """Another thread of Python runs while a call does. It may not get a core in every call."""
    case = make((32, 64, 64, 64))
    bngrad.set_num_threads(1)
    done = threading.Event()
    ticks = 0

    def tick():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    most = 0
    for _ in range(100):
        before = ticks
        run(case)
        # One or two come before the call, or after it.
        most = max(most, ticks - before)
        if most >= 5:
            break
    done.set()
    thread.join()
    assert most >= 5


def work_in_child(case, queue):
    queue.put([run(case), bngrad.get_num_threads()])


def test_fork_after_threads_have_run():
    bngrad.set_num_threads(4)
    case = make((8, 16, 28, 28))
    expected = run(case)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=work_in_child, args=(case, queue)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in children:
        result, count = queue.get(timeout=60)
        assert count == 4 and are_same(result, expected)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert are_same(run(case), expected)


def test_fork_while_threads_run():
    """A child of a process in the middle of a call has a pool of its own."""
    bngrad.set_num_threads(4)
    case = make((16, 32, 28, 28))
    expected = run(case)
    done = threading.Event()
    thread = threading.Thread(target=lambda: [run(case) for _ in iter(done.is_set, True)])
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if are_same(run(case), expected) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("variables, expected", [
    ({"BNGRAD_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3),
    ({"OMP_NUM_THREADS": "2,1"}, 2),
    ({"BNGRAD_NUM_THREADS": "many"}, len(os.sched_getaffinity(0))),
    ({"BNGRAD_NUM_THREADS": "-1"}, len(os.sched_getaffinity(0))),
    ({}, len(os.sched_getaffinity(0))),
])
def test_first_number(variables, expected):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("BNGRAD_NUM_THREADS", "OMP_NUM_THREADS")}
    printed = subprocess.run([sys.executable, "-c", "import bngrad; print(bngrad.get_num_threads())"],
                             env=environment | variables, check=True, capture_output=True, text=True).stdout
    assert int(printed) == expected


@pytest.mark.parametrize("count", [0, -1, 1025, 2**80])
def test_wrong_number(count):
    with pytest.raises(ValueError, match=f"count: expected 1 to 1024, got {count}"):
        bngrad.set_num_threads(count)
    with pytest.raises(TypeError, match="count: expected an integer, got str"):
        bngrad.set_num_threads("two")


def test_threads_take_no_signals():
    """Signals go to Python, and the process ends while threads sleep."""
    program = """
import bngrad, numpy as np, os, signal
bngrad.set_num_threads(4)
x = np.ones((64, 64, 32, 8), np.float32)
bngrad.batch_norm_backward(x, x, x[0, :, 0, 0], inv_std=x[0, :, 0, 0])
signal.signal(signal.SIGUSR1, lambda *_: print("signal"))
os.kill(os.getpid(), signal.SIGUSR1)
tasks = len(os.listdir("/proc/self/task"))
for task in os.listdir("/proc/self/task"):
    if int(task) != os.getpid():
        blocked = [l for l in open(f"/proc/self/task/{task}/status") if l.startswith("SigBlk")][0]
        assert int(blocked.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1 or "blas" in open(f"/proc/self/task/{task}/comm").read()
print(tasks)
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    printed = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True,
                             text=True, timeout=60).stdout.split()
    assert printed == ["signal", "4"]


def test_daemon_threads_at_the_end():
    """A thread whose call ends after the interpreter does not abort the process."""
    program = """
import bngrad, numpy as np, threading
x, c = np.ones((8, 64, 64), np.float32), np.ones(64, np.float32)
started = threading.Barrier(5)

def call():
    started.wait()
    while True:
        bngrad.batch_norm_backward(x, x, c, inv_std=c)

for _ in range(4):
    threading.Thread(target=call, daemon=True).start()
started.wait()
print("end")
"""
    for _ in range(5):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", "")
