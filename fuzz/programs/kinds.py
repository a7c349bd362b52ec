"""What each kind of operation means. The files that define kinds add them to KINDS."""

from typing import TYPE_CHECKING, Dict, List, Sequence

from bounded import Bounded
from values import Invalid, Op, Type

if TYPE_CHECKING:
    from writer import Named, Writer


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Invalid(what)


class Kind:
    """The semantics of a kind of operation."""

    def infer(self, op: Op, types: Sequence[Type]) -> List[Type]:
        raise NotImplementedError

    def evaluate(self, op: Op, types: Sequence[Type], values: Sequence[Bounded]) -> List[Bounded]:
        raise NotImplementedError

    def write(self, writer: "Writer", op: Op, operands: Sequence["Named"], results: Sequence[Type]) -> List[str]:
        raise NotImplementedError


# By name.
KINDS: Dict[str, Kind] = {}
