# RUN: %build_cudart
# RUN: %emulated_python -m pytest -q %s
# REQUIRES: torch, jax, python-compiler
"""The part `frameworks` of the GPU suite, on the emulator: its tasks run, and tell wrong results."""

import functools
import os
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / "bench" / each) for each in ("gpu", "")]
import emulated_cuda  # noqa: F401
import framework_tasks
import frameworks

import bngrad.torch


@pytest.fixture(autouse=True)
def no_hold(monkeypatch):
    """The emulator has no functions of the host in a stream."""
    monkeypatch.setattr(frameworks, "hold", lambda microseconds: None)


def test_tasks():
    tasks = framework_tasks.make_tasks()
    assert len(tasks) == len(set(tasks)) == 12 * 2 * 3 + 4
    assert {" ".join(task.split()[:3]) for task in tasks[1:8] if task.startswith("op")} == {
        f"op {type} {layout}" for type in framework_tasks.TYPES for layout in framework_tasks.LAYOUTS}
    # A call may be too short for all ops.
    assert all(task.startswith("op") for task in tasks[20:])


@pytest.mark.parametrize("task", ["op f32 nchw 4x6x5x5", "op bf16 nhwc 4x6x5x5", "op f16 nchw 3x2x4x4",
                                  "step eager small", "step captured small"])
def test_results(task, monkeypatch):
    monkeypatch.setattr(frameworks, "OP_ROUNDS", 2)
    result = frameworks.run(task)
    assert result["ratio"] == 1 and result["ms"].keys() == {"torch", "bngrad"}
    assert framework_tasks.describe(task, result).startswith(f"| {task} | 1 ms | 1 ms | 1.00") or "step" in task


def test_switching_is_not_timed(monkeypatch):
    """It would take longer than most ops."""
    is_timed, time_on_device = [], frameworks.time_on_device
    enable = bngrad.torch._override.enable

    def enable_outside(**options):
        assert not is_timed
        enable(**options)

    def note(function):
        is_timed.append(True)
        try:
            return time_on_device(function)
        finally:
            is_timed.pop()

    monkeypatch.setattr(frameworks, "OP_ROUNDS", 1)
    monkeypatch.setattr(bngrad.torch._override, "enable", enable_outside)
    monkeypatch.setattr(frameworks, "time_on_device", note)
    for task in ("op f32 nchw 4x6x5x5", "step eager small"):
        assert "ms" in frameworks.run(task)


def test_an_op_that_took_long_to_queue_is_timed_again(monkeypatch):
    held, seconds, clock = [], [0.01, 0.01, 0.001], [0.0]
    monkeypatch.setattr(frameworks, "hold", held.append)
    monkeypatch.setattr(frameworks.time, "perf_counter", lambda: clock[0])

    def run():
        clock[0] += seconds.pop(0)

    frameworks.time_queued(run)
    assert held == [2000, 4000, 8000] and not seconds


def test_kernels_of_pytorch_are_no_times_of_bngrad(monkeypatch):
    # An epsilon that is not covered.
    monkeypatch.setattr(torch.nn.functional, "batch_norm", functools.partial(torch.nn.functional.batch_norm, eps=1e-40))
    assert "got bngrad::_original_native_batch_norm" in frameworks.run("op f32 nchw 4x6x5x5")["error"]


@pytest.mark.parametrize("task, module", [("step eager", "torchvision"), ("flax small", "jax")])
def test_absent_packages(task, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    result = frameworks.run(task)
    assert module in result["absent"] and module in framework_tasks.describe(task, result)


def test_jax_without_a_gpu():
    assert frameworks.run("flax")["absent"] == "JAX computes on a cpu"


def test_a_package_that_cannot_compute_is_missing(monkeypatch):
    assert frameworks.find_package() is None
    monkeypatch.setattr(bngrad.torch._devices, "_can_compute", {})
    monkeypatch.setattr(bngrad.torch._library_handle, "bngradTorchVerifyDevice", lambda number, has_relu: 1)
    assert "PyTorch's own kernels compute batch norms on cuda:0" in frameworks.find_package()


def test_wrong_results(monkeypatch):
    """A gradient that is not its own."""
    compute = frameworks.run_op
    monkeypatch.setattr(frameworks, "OP_ROUNDS", 1)
    monkeypatch.setattr(frameworks, "switch", lambda is_ours: bngrad.torch.enabled())

    def compute_wrong(x, *operands):
        results = compute(x, *operands)
        if x.dtype == torch.float64:
            return results
        compute_wrong.calls += 1
        return *results[:2], results[2] + (compute_wrong.calls == 2), results[3]

    compute_wrong.calls = 0
    monkeypatch.setattr(frameworks, "run_op", compute_wrong)
    assert "grad_weight: expected an error of at most" in frameworks.run("op f32 nchw 4x6x5x5")["error"]


def test_flax(monkeypatch):
    result = frameworks.run("flax small")
    assert result["loss_difference"] < 0.02 and result["ms"]["bngrad"] > 0
