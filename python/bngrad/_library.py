"""The libraries of the package, and the frameworks that they are for."""

import ctypes
import importlib
import os
import re
from types import ModuleType


def path(name: str) -> str:
    """Returns the path of the file `name` in bngrad/_lib."""
    return os.path.join(os.path.dirname(__file__), "_lib", name)


def find_framework(part: str, module: str, title: str, oldest: tuple[int, int]) -> ModuleType:
    """Imports a framework of version `oldest` or later for a part of bngrad, such as bngrad.torch.

    Raises ImportError with one line that says what to install.
    """
    expected = f"{part}: expected {title} {oldest[0]}.{oldest[1]} or later"
    advice = f"pip install --upgrade '{module}>={oldest[0]}.{oldest[1]}'"
    try:
        framework = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A framework that lacks one of its own packages reports that itself.
        if error.name != module:
            raise
        raise ImportError(f"{expected}, got none: {advice}", name=module) from None
    version = getattr(framework, "__version__", None)
    if version is None:
        # For example, the user has a file torch.py.
        place = getattr(framework, "__file__", None) or "a folder of that name"
        raise ImportError(f"{expected}, got {place}, which has no __version__", name=module)
    version = str(version)
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < oldest:
        raise ImportError(f"{expected}, got {version}: {advice}", name=module)
    return framework


def load(part: str, name: str, headers: str) -> ctypes.CDLL:
    """Loads a library that a build of the package has only if it had the `headers` of a framework.

    Raises ImportError with one line that says what to install.
    """
    file = path(name)
    if not os.path.exists(file):
        raise ImportError(
            f"{part}: expected {name} in {os.path.dirname(file)}, got none, as this package was built without the "
            f"headers of {headers}: install a wheel of scripts/wheels.sh", name=part, path=file)
    try:
        return ctypes.CDLL(file)
    except OSError as error:
        raise ImportError(
            f"{part}: cannot load {name}: {error}: install the wheel of bngrad again",
            name=part, path=file) from None
