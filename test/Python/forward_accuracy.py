# RUN: %python -m pytest -q %s
# REQUIRES: torch, jax, flax
"""bench/accuracy.py: the forward pass is within its bounds, and not much worse than the best other library."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import accuracy


def find_rows(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("| ") and any(f"| {name} |" in line for name in accuracy.QUANTITIES)]


def test_errors():
    done = subprocess.run([sys.executable, accuracy.__file__, "--quick", "--assert"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stdout[-2000:] + done.stderr


def test_document():
    """The table of docs/numerics.md is part of the result."""
    rows = find_rows(ROOT / "docs" / "numerics.md")
    assert len(rows) >= 20 and set(rows) <= set(find_rows(ROOT / "bench" / "results" / "accuracy.md"))


def test_wrong_results_are_found():
    """An unbiased variance has an error of 400 u in inv_std, above its bound."""
    case = accuracy.make_cases(is_quick=True)[0]
    exact = accuracy.Exact(case)
    ours = accuracy.run_bngrad(case, False)
    assert all(exact.measure(name, ours[name])[1] < 0.1 for name in accuracy.QUANTITIES)
    count = case.input.size // case.input.shape[1]
    assert exact.measure("inv_std", ours["inv_std"] * (1 - 0.5 / count))[1] > 1
    assert exact.measure("y", ours["y"] + 1e-4)[1] > 1
    rows = [("case", "y", dict.fromkeys(accuracy.OURS, 6.0) | dict.fromkeys(accuracy.PEERS, 1.5),
             dict.fromkeys(accuracy.OURS, 2.0))]
    broken, worse = accuracy.list_misses(rows)
    assert len(broken) == len(worse) == 2 and all(difference > accuracy.LIMIT for difference, _ in worse)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
