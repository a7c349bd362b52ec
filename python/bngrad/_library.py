"""The libraries of the package."""

import os


def path(name: str) -> str:
    """Returns the path of the file `name` in bngrad/_lib."""
    return os.path.join(os.path.dirname(__file__), "_lib", name)
