#!/usr/bin/env python3
"""Applies one line of test/mutants.txt, `FILE ## OLD ## NEW [## COUNT]`.

Prints COUNT, the number of tests that must notice (default 1).

Usage: apply_mutant.py SOURCE_ROOT LINE
"""

import sys
from pathlib import Path


def main() -> int:
    root, line = Path(sys.argv[1]), sys.argv[2]
    fields = line.split(" ## ")
    if len(fields) not in (3, 4):
        sys.exit(f"expected FILE ## OLD ## NEW [## COUNT], got {line!r}")
    file, old, new = fields[:3]
    path = root / file
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"expected {old!r} once in {file}, got {text.count(old)} times")
    path.write_text(text.replace(old, new))
    print(fields[3] if len(fields) == 4 else 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
