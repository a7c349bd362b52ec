"""Calls of programs for GPUs on the emulator, which takes the place of the driver in a process.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import os
import pathlib

import bngrad
import pytest
from bngrad_compiler import _library
from program_numerics import F32, check, make_data, make_program

EMULATOR = pathlib.Path(os.environ["BNGRAD_BUILD"]) / "lib/libBNGradCudaEmulator.so"


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    monkeypatch.setattr(_library, "_cuda_path", lambda: str(EMULATOR))


@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_calls(is_dynamic):
    """Arrays of the host are copied there and back."""
    shape = (3, 4, 33)
    operands = make_data(shape, 1, F32, F32)
    program = bngrad.compile(make_program(shape, 1, F32, F32, is_dynamic), target="cuda")
    for _ in range(2):
        check(program(*operands), operands, feature_dims=(1,))
    with pytest.raises(bngrad.ShapeError, match="expected size"):
        program(operands[0][..., :5].copy(), *operands[1:])
