# RUN: %build_cudart
# RUN: %emulated_python -m pytest -q %s
# REQUIRES: torch, jax, python-compiler
"""The part `frameworks` of the GPU suite, on the emulator: its tasks run, and tell wrong results."""

import os
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / "bench" / each) for each in ("gpu", "")]
import emulated_cuda  # noqa: F401
import frameworks

import bngrad.torch


def test_tasks():
    tasks = frameworks.make_tasks()
    assert len(tasks) == len(set(tasks)) == 12 * 2 * 3 + 4
    assert {" ".join(task.split()[:3]) for task in tasks[1:8] if task.startswith("op")} == {
        f"op {type} {layout}" for type in frameworks.TYPES for layout in frameworks.LAYOUTS}


@pytest.mark.parametrize("task", ["op f32 nchw 4x6x5x5", "op bf16 nhwc 4x6x5x5", "op f16 nchw 3x2x4x4",
                                  "step eager small", "step captured small"])
def test_results(task, monkeypatch):
    monkeypatch.setattr(frameworks, "OP_ROUNDS", 2)
    result = frameworks.run(task)
    assert result["ratio"] == 1 and result["ms"].keys() == {"torch", "bngrad"}
    assert frameworks.describe(task, result).startswith(f"| {task} | 1 ms | 1 ms | 1.00") or "step" in task


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
