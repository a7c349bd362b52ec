#!/usr/bin/env python3
"""Checks that every numbered constraint of an op has code and a test.

BNGradOps.td lists the constraints of an op as (C1), (C2), ... in its
description. For each there must be

* a comment `// (C<n>)` or `/// (C<n>)` in lib/Dialect/BNGradOps.cpp, and
* a function `@<op>_c<n>` or `@<op>_c<n>_<case>` with an expected error in
  test/Dialect/invalid.mlir,

and neither file may name a constraint that does not exist.

Usage: check_constraints.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path


def find_constraints(table: str) -> dict[str, set[int]]:
    """Returns the numbers of the constraints of each op, by mnemonic."""
    constraints = {}
    definition = r'^def \w+\s*:\s*BNGrad_\w*Op<\s*"(\w+)"'
    parts = re.split(definition, table, flags=re.MULTILINE)[1:]
    for name, op in zip(parts[::2], parts[1::2]):
        listed = re.findall(r"^ +\(C(\d+)\) ", op, flags=re.MULTILINE)
        constraints[name] = {int(number) for number in listed}
    return constraints


def find_tests(invalid: str) -> set[tuple[str, int]]:
    """Returns (op, number) of each negative test that expects an error."""
    tests = set()
    for case in invalid.split("// -----"):
        for name, number in re.findall(r"@(\w+?)_c(\d+)(?:_\w+)?\(", case):
            if "expected-error" in case:
                tests.add((name, int(number)))
    return tests


def main() -> int:
    root = Path(sys.argv[1])
    constraints = find_constraints(
        (root / "include/BNGrad/Dialect/BNGradOps.td").read_text())
    code = (root / "lib/Dialect/BNGradOps.cpp").read_text()
    coded = {int(n) for n in re.findall(r"^ *///? .*\(C(\d+)\)", code,
                                        flags=re.MULTILINE)}
    tests = find_tests((root / "test/Dialect/invalid.mlir").read_text())

    problems = []
    for op, numbers in constraints.items():
        if numbers != set(range(1, len(numbers) + 1)):
            problems.append(f"{op}: expected constraints numbered from 1 "
                            f"without a gap, got {sorted(numbers)}")
        for number in sorted(numbers):
            if number not in coded:
                problems.append(f"{op}: (C{number}) has no code: no comment "
                                "with its number in lib/Dialect/BNGradOps.cpp")
            if (op, number) not in tests:
                problems.append(f"{op}: (C{number}) has no test: no function "
                                f"@{op}_c{number} with an expected error in "
                                "test/Dialect/invalid.mlir")
    for op, number in sorted(tests):
        if number not in constraints.get(op, set()):
            problems.append(f"test/Dialect/invalid.mlir: @{op}_c{number} names "
                            "no constraint")
    for problem in problems:
        print(f"check_constraints: error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
