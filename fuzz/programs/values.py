"""The parts of programs: types of values, arguments and operations."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from program import Program


class Invalid(Exception):
    """An invalid program: its types do not match, for example after a size was reduced."""


class Type(NamedTuple):
    """A tensor: its sizes at run time, its element type, and which sizes are dynamic."""

    shape: Tuple[int, ...]
    element: str
    dynamic: Tuple[bool, ...]

    def __str__(self) -> str:
        return f"tensor<{self.sizes()}{self.element}>"

    def sizes(self) -> str:
        return "".join(("?" if unknown else str(size)) + "x" for size, unknown in zip(self.shape, self.dynamic))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def of(self, element: str) -> "Type":
        return self._replace(element=element)

    def at(self, dims: Sequence[int]) -> "Type":
        """The type with these dims in this order."""
        return Type(tuple(self.shape[d] for d in dims), self.element, tuple(self.dynamic[d] for d in dims))


def static(shape: Sequence[int], element: str) -> Type:
    return Type(tuple(shape), element, (False,) * len(shape))


@dataclass
class Argument:
    """An argument, the origin of its values, and the layout of its memref (views.py)."""

    type: Type
    role: str = "plain"  # see make_data
    seed: int = 0
    special: str = ""
    layout: Optional[Dict[str, Any]] = None
    by_channel: Tuple[int, ...] = ()  # dims along which the mean differs


@dataclass
class Op:
    kind: str
    operands: List[int]
    attrs: Dict[str, Any] = field(default_factory=dict)
    body: Optional["Program"] = None
