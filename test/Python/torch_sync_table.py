# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""The table of docs/python-torch.md: SyncBatchNorm beside PyTorch's classes, in one process and in two.

Each row of the table has a function of that name in Inputs/torch_sync_*.py, which every process runs. PyTorch's class has
the whole batch in each process, and bngrad's its part.
"""

import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
# The rows.
import torch_sync_calls  # noqa: F401
import torch_sync_construction  # noqa: F401
import torch_sync_state  # noqa: F401
from torch_processes import run_ranks
from torch_sync_rows import ROWS, SIZES

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/python-torch.md"


def run_row(rank, size, name):
    ROWS[name](rank, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ROWS)
def test_row(name, size):
    run_ranks(run_row, size, name)


def test_the_document_has_all_rows():
    section = DOCUMENT.read_text().split("### Comparison with PyTorch's classes")[1].split("\n## ")[0]
    titles = [re.sub(r"[`_]", " ", title).split() for title in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)]
    assert sorted(" ".join(title) for title in titles[1:]) == sorted(name.strip() for name in ROWS)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
