"""A part that is missing is an ImportError of one line that says which, why and what to install.

RUN: %python -m pytest -q %s
"""

import os
import pathlib
import shutil
import subprocess
import sys

import bngrad
import pytest

SITE = pathlib.Path(bngrad.__file__).resolve().parents[1]
# Part, module, expected framework, and its oldest version.
FRAMEWORKS = [("bngrad.torch", "torch", "PyTorch", "2.10"), ("bngrad.jax", "jax", "JAX", "0.6")]


@pytest.fixture
def site(tmp_path):
    """Copies of the packages, from which tests remove files."""
    for name in ("bngrad", "bngrad_compiler"):
        if (SITE / name).exists():
            shutil.copytree(SITE / name, tmp_path / name, symlinks=True)
    return tmp_path


def run(site, statement):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # The current folder is the first that Python looks in.
    return subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, cwd=site, env=environment)


def find_error(site, statement):
    """The name and the text of the ImportError of a statement."""
    done = run(site, f"""
try:
    {statement}
except ImportError as error:
    print(type(error).__name__, error.name, error, sep="|")
""")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stdout + done.stderr
    kind, name, text = done.stdout.rstrip("\n").split("|")
    assert kind == "ImportError"
    return name, text


def make_stub(site, name, text):
    """A framework that is found before one that is installed."""
    (site / name).mkdir()
    (site / name / "__init__.py").write_text(text)


@pytest.mark.parametrize("part, module, title, oldest", FRAMEWORKS)
def test_no_framework(site, part, module, title, oldest):
    name, text = find_error(site, f"import sys; sys.modules[{module!r}] = None; import {part}")
    assert name == module
    assert text == f"{part}: expected {title} {oldest} or later, got none: pip install --upgrade '{module}>={oldest}'"


@pytest.mark.parametrize("version", ["0.5.3", "0.0.1+cpu", "unknown"])
@pytest.mark.parametrize("part, module, title, oldest", FRAMEWORKS)
def test_old_framework(site, part, module, title, oldest, version):
    make_stub(site, module, f"__version__ = {version!r}")
    name, text = find_error(site, f"import {part}")
    assert name == module
    assert text == (f"{part}: expected {title} {oldest} or later, got {version}: "
                    f"pip install --upgrade '{module}>={oldest}'")


@pytest.mark.parametrize("part, module, title, oldest", FRAMEWORKS)
def test_file_of_that_name(site, part, module, title, oldest):
    """As a program that its author has called torch.py."""
    file = site / f"{module}.py"
    file.write_text("")
    name, text = find_error(site, f"import {part}")
    assert name == module
    assert text == f"{part}: expected {title} {oldest} or later, got {file}, which has no __version__"


@pytest.mark.parametrize("version, is_old", [("2.9.1", True), ("2.10.0a0+git12", False), ("3.0", False)])
def test_versions_are_compared_as_numbers(site, version, is_old):
    make_stub(site, "torch", f"__version__ = {version!r}")
    (site / "bngrad/_lib/libbngrad_torch.so").unlink(missing_ok=True)
    name, _ = find_error(site, "import bngrad.torch")
    assert name == ("torch" if is_old else "bngrad.torch")


@pytest.mark.parametrize("part, module, title, oldest", FRAMEWORKS)
def test_broken_framework(site, part, module, title, oldest):
    """A framework that lacks a package of its own says so itself."""
    make_stub(site, module, "import a_package_that_is_not_there")
    done = run(site, f"import {part}")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'a_package_that_is_not_there'\n")


def test_no_flax(site):
    name, text = find_error(site, "import sys; sys.modules['flax'] = None; import bngrad.flax")
    assert name == "flax"
    assert text == "bngrad.flax: expected flax 0.10 or later, got none: pip install --upgrade 'flax>=0.10'"


@pytest.mark.parametrize("part, module, title, oldest", FRAMEWORKS)
def test_library(site, part, module, title, oldest):
    """As in a package that was built without the headers of the framework, and one that is damaged."""
    library = f"libbngrad_{module}.so"
    file = site / "bngrad/_lib" / library
    file.unlink(missing_ok=True)
    load = f"from bngrad import _library; _library.load({part!r}, {library!r}, {title!r})"
    name, text = find_error(site, load)
    assert name == part
    assert text == (f"{part}: expected {library} in {file.parent}, got none, as this package was built without the "
                    f"headers of {title}: install a wheel of scripts/wheels.sh")
    file.write_text("no library")
    name, text = find_error(site, load)
    assert name == part and text.startswith(f"{part}: cannot load {library}: {file}: ")
    assert text.endswith(": install the wheel of bngrad again")


def test_no_compiler_library(site):
    if not (site / "bngrad_compiler").exists():
        pytest.skip("no bngrad_compiler")
    shutil.rmtree(site / "bngrad_compiler/_lib", ignore_errors=True)
    name, text = find_error(site, "import bngrad_compiler; bngrad_compiler.library_path()")
    assert name == "bngrad_compiler"
    assert text == (f"bngrad_compiler: expected libBNGradCompiler.so in {site / 'bngrad_compiler/_lib'}, got none: "
                    "install the wheel of bngrad-compiler again")


def test_no_extension_module(site):
    """As in the folder of the sources, or with a wheel for another Python."""
    for file in (site / "bngrad").glob("_numpy*.so"):
        file.unlink()
    name, text = find_error(site, "import bngrad")
    assert name == "bngrad._numpy"
    assert "cannot load the extension module bngrad._numpy: No module named 'bngrad._numpy': install the wheel" in text
