#!/usr/bin/env python3
"""Applies one line of test/mutants.txt, `FILE ## OLD ## NEW [## COUNT]`.

Prints COUNT, the number of tests that must notice (default 1). With --check,
applies nothing, but prints each line of a list that could not be applied.

Usage: apply_mutant.py SOURCE_ROOT LINE
       apply_mutant.py SOURCE_ROOT --check LIST
"""

import sys
from pathlib import Path
from typing import List, Tuple


def read(root: Path, line: str) -> Tuple[Path, str, List[str]]:
    """The file of a line, its text, and the other fields."""
    fields = line.split(" ## ")
    if len(fields) not in (3, 4):
        raise ValueError(f"expected FILE ## OLD ## NEW [## COUNT], got {line!r}")
    path = root / fields[0]
    text = path.read_text()
    count = text.count(fields[1])
    if count != 1:
        raise ValueError(f"expected {fields[1]!r} once in {fields[0]}, got {count} times")
    return path, text, fields[1:]


def check(root: Path, names: Path) -> int:
    failed = 0
    lines = [line for line in names.read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        try:
            read(root, line)
        except (OSError, ValueError) as error:
            failed += 1
            print(error)
    print(f"{len(lines)} mutants, {failed} failed")
    return failed > 0


def main() -> int:
    root, line = Path(sys.argv[1]), sys.argv[2]
    if line == "--check":
        return check(root, Path(sys.argv[3]))
    try:
        path, text, (old, new, *count) = read(root, line)
    except ValueError as error:
        sys.exit(str(error))
    path.write_text(text.replace(old, new))
    print(count[0] if count else 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
