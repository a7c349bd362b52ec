#!/usr/bin/env python3
"""Runs the programs and commands of docs/importing.md, and the README's StableHLO example.

Each section of the document with a program writes module.mlir, arguments and expected
results; its commands must produce those results.

Usage: document.py SOURCE_ROOT BIN_DIR FOLDER [--python=PYTHON]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from clients import has_module

LIMIT = 2e-6
# By the title of a section.
PACKAGES = {"JAX": "jax", "TensorFlow": "tensorflow", "torch-mlir": "torch"}


def find_blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def find_commands(block):
    """The commands of a console block, each on one line."""
    return [line[2:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


def run(command, folder, environment):
    result = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        sys.exit(f"FAILED: {command}\n{result.stderr[-2000:]}")
    return result.stdout


def check_section(title, text, folder, environment):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("\n".join(find_blocks(text, "python")))
    for command in find_commands("\n".join(find_blocks(text, "console"))):
        run(command, folder, environment)
    expected = sorted(folder.glob("expected*.npy"))
    if not expected:
        sys.exit(f"FAILED: {title}: expected results")
    for path in expected:
        value, exact = np.load(folder / path.name.replace("expected", "result")), np.load(path)
        error = np.abs(value - exact).max() / np.abs(exact).max()
        if not error <= LIMIT:
            sys.exit(f"FAILED: {title}: {path.name}: difference {error:.1e} of the largest value, expected {LIMIT}")
    print(f"{title}: {len(expected)} results agree")


def check_readme(root, bin_dir, folder, environment):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "examples").symlink_to(root / "examples")
    (folder / "build").symlink_to(bin_dir.parent)
    (folder / "venv").symlink_to(Path(environment["VIRTUAL_ENV"]))
    block = next(b for b in find_blocks((root / "README.md").read_text(), "console") if "torch-mlir-opt" in b)
    if len(block.splitlines()) != 5:
        sys.exit(f"FAILED: README: expected five lines, got {len(block.splitlines())}")
    install, *commands = find_commands(block)
    if "pip install" not in install:
        sys.exit(f"FAILED: README: expected the installation first, got {install}")
    outputs = [run(command, folder, environment) for command in commands]
    if not re.fullmatch(r"(result \d \w+ max_error \S+ bound \S+ ok\n){3}", outputs[-1]):
        sys.exit(f"FAILED: README: expected three results that are ok, got\n{outputs[-1]}")
    print("README: 3 results agree")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    scripts = Path(options.python).parent
    environment = dict(os.environ, VIRTUAL_ENV=str(scripts.parent),
                       PATH=os.pathsep.join([str(scripts), str(options.bin_dir), os.environ["PATH"]]))
    document = (options.root / "docs" / "importing.md").read_text()
    sections = [s for s in re.split(r"^## ", document, flags=re.MULTILINE) if find_blocks(s, "python")]
    if [section.splitlines()[0] for section in sections] != list(PACKAGES):
        sys.exit(f"FAILED: expected sections {list(PACKAGES)} with programs")
    for section in sections:
        title = section.splitlines()[0]
        if not has_module(options.python, PACKAGES[title]):
            print(f"{title}: skipped, not installed")
            continue
        check_section(title, section, options.folder / title, environment)
    check_readme(options.root, options.bin_dir, options.folder / "readme", environment)


if __name__ == "__main__":
    main()
