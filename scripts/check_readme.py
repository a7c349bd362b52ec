"""Compares the README's output of scripts/demo.sh with a run of it.

Usage: check_readme.py README LOG
       check_readme.py --self-test

The lines of the README's first `text` block must be the last lines of LOG. A line
that begins with spaces continues the one before. Values that differ from machine to
machine are left out: times, errors, and the bounds of the elements with the largest
errors.
"""

import re
import sys
from pathlib import Path
from typing import List

MEASURED = [r"(?<=max_error )\S+ bound \S+", r"(?<=max_abs_difference )\S+", r"(?<=relative )\S+",
            r"(?<=median_us=)\S+", r"(?<=min_us=)\S+", r"(?<=gbps=)\S+", r"(?<=ratio=)\S+", r"(?<=compile_ms=)\S+",
            r"(?<=schedule=)\S+"]


def normalize(text: str) -> List[str]:
    text = re.sub(r"\n +", " ", text.strip())
    for pattern in MEASURED:
        text = re.sub(pattern, "*", text)
    return text.split("\n")


def compare(readme: str, log: str) -> List[str]:
    """The differences, as lines."""
    block = re.search(r"^```text\n(.*?)^```$", readme, re.M | re.S)
    if not block:
        return ["expected a block of text in the README"]
    stated = normalize(block.group(1))
    printed = normalize(log)[-len(stated):]
    return [f"README: {s}\n   run: {p}" for s, p in zip(stated, printed) if s != p] + (
        ["expected a longer output of the run"] if len(printed) < len(stated) else [])


def self_test() -> None:
    readme = "```text\n== A\nresult 0 x max_error 1e-3 bound 2e-3 ok\n  median_us=3\n```\n"
    log = "before\n== A\nresult 0 x max_error 1.5e-3 bound 2e-3 ok median_us=4\n"
    assert compare(readme, log) == []
    assert len(compare(readme, log.replace("ok", "failed"))) == 1
    assert len(compare(readme, log.replace("== A\n", ""))) == 1
    assert compare(readme, "") and compare("", log)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit()
    differences = compare(*(Path(path).read_text() for path in sys.argv[1:3]))
    print("\n".join(differences))
    sys.exit(bool(differences))
