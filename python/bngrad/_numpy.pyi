from collections.abc import Sequence
from typing import Any

__version__: str
_ROLES: dict[str, str]
_OPS: dict[str, dict[str, str]]

def check_cpu() -> None: ...

class Program:
    def __init__(self, entries: Sequence[int],
                 parameters: Sequence[tuple[str, str, Sequence[int] | None, bool, bool]], code: tuple[int, int]) -> None: ...
    def __call__(self, *arguments: Any) -> Any: ...
