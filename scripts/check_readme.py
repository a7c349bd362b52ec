"""Compares the README's numbers with their sources.

Usage: check_readme.py README [LOG]
       check_readme.py --self-test

* Each row of the table with the columns data, shape, floor, time / floor and best
  peer / BNGrad is a case of bench/results/cpu.json, beside the README, with the same
  numbers. The versions of the peers are those of that run.
* With LOG, the output of scripts/demo.sh, the lines of the README's first `text` block
  must be the last lines of LOG. A line that begins with spaces continues the one
  before. Values that differ from machine to machine are left out: times, errors, and
  the bounds of the elements with the largest errors.
* The README states no number of tests, which no check could keep up to date.
"""

import json
import re
import sys
from pathlib import Path
from typing import Dict, List

MEASURED = [r"(?<=max_error )\S+ bound \S+", r"(?<=max_abs_difference )\S+", r"(?<=relative )\S+",
            r"(?<=median_us=)\S+", r"(?<=min_us=)\S+", r"(?<=gbps=)\S+", r"(?<=ratio=)\S+", r"(?<=compile_ms=)\S+",
            r"(?<=schedule=)\S+"]
COLUMNS = ["data", "shape", "floor", "time / floor", "best peer / BNGrad"]
# Those that write to existing outputs; bench/limits.py has the same list.
PEERS = ["torch", "onednn", "onednn-debian"]
TEST_COUNT = re.compile(r"\b\d+ (?:lit |unit )?(?:tests\b|passed\b)")


def normalize(text: str) -> List[str]:
    text = re.sub(r"\n +", " ", text.strip())
    for pattern in MEASURED:
        text = re.sub(pattern, "*", text)
    return text.split("\n")


def compare_demo(readme: str, log: str) -> List[str]:
    """The differences of the demo's output, as lines."""
    block = re.search(r"^```text\n(.*?)^```$", readme, re.M | re.S)
    if not block:
        return ["expected a block of text in the README"]
    stated = normalize(block.group(1))
    printed = normalize(log)[-len(stated):]
    return [f"README: {s}\n   run: {p}" for s, p in zip(stated, printed) if s != p] + (
        ["expected a longer output of the run"] if len(printed) < len(stated) else [])


def make_row(case: Dict) -> List[str]:
    """The README's row of a case of the benchmark."""
    floor, ratios = case["floor_tensors"], case["ratios"]
    time = case["results"]["bngrad"][f"warm_over_floor{floor}"]
    peer = min(ratios[f"{name}/bngrad"] for name in PEERS if f"{name}/bngrad" in ratios)
    return [f"{case['type']} {case['layout'].upper()}", case["sizes"], f"{floor} tensors", f"{time:.2f}", f"{peer:.2f}"]


def compare_table(readme: str, results: Dict) -> List[str]:
    """The differences of the performance table, as lines."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in readme.split("\n")]
    if COLUMNS not in lines:
        return [f"expected a table with the columns {', '.join(COLUMNS)}"]
    differences, count = [], 0
    for row in lines[lines.index(COLUMNS) + 2:]:
        if len(row) != len(COLUMNS):
            break
        count += 1
        name = f"{row[1]} {' '.join(reversed(row[0].lower().split()))}"
        case = next((case for case in results["cases"] if case["name"] == name), None)
        if case is None:
            differences.append(f"expected a case of the benchmark, got {name}")
        elif row != make_row(case):
            differences.append(f"README: {' | '.join(row)}\n   run: {' | '.join(make_row(case))}")
    for peer in results["peers"]:
        version = re.match(r"\d+\.\d+", peer["version"] or "")
        title = peer["title"].split(",")[0]
        if version and f"{title} {version[0]}" not in " ".join(readme.split()):
            differences.append(f"expected the version of the run, {title} {version[0]}")
    return differences if count else ["expected rows in the table"]


def find_test_counts(readme: str) -> List[str]:
    return [f"expected no number of tests, got '{match[0]}'" for match in TEST_COUNT.finditer(readme)]


def self_test() -> None:
    readme = "```text\n== A\nresult 0 x max_error 1e-3 bound 2e-3 ok\n  median_us=3\n```\n"
    log = "before\n== A\nresult 0 x max_error 1.5e-3 bound 2e-3 ok median_us=4\n"
    assert compare_demo(readme, log) == []
    assert len(compare_demo(readme, log.replace("ok", "failed"))) == 1
    assert len(compare_demo(readme, log.replace("== A\n", ""))) == 1
    assert compare_demo(readme, "") and compare_demo("", log)

    table = f"PyTorch\n2.15\n| {' | '.join(COLUMNS)} |\n|---|---|---|---|---|\n| f32 NCHW | 2x3 | 3 tensors | 1.25 | 1.50 |\n"
    results = {"peers": [{"title": "PyTorch", "version": "2.15.0 threads=OpenMP"}, {"title": "x", "version": None}],
               "cases": [{"name": "2x3 nchw f32", "sizes": "2x3", "layout": "nchw", "type": "f32", "floor_tensors": 3,
                          "results": {"bngrad": {"warm_over_floor3": 1.2501, "warm_over_floor5": 0.75}},
                          "ratios": {"torch/bngrad": 1.5, "onednn/bngrad": 2.0, "torch-default/bngrad": 1.0}}]}
    assert compare_table(table, results) == []
    for old, new in ("1.25", "1.24"), ("1.50", "1.00"), ("3 tensors", "5 tensors"), ("2x3", "2x4"), ("2.15", "2.14"):
        assert len(compare_table(table.replace(old, new), results)) == 1, new
    assert len(compare_table(table.replace("| f32", "f64"), results)) == 1
    assert len(compare_table("PyTorch 2.15", results)) == 1
    assert find_test_counts("bngrad: N passed, 32 tensors") == []
    assert len(find_test_counts("All 238 tests pass: 238 passed.")) == 2


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        print("self-test: passed")
        return 0
    path = Path(sys.argv[1])
    readme = path.read_text(encoding="utf-8")
    results = json.loads((path.parent / "bench" / "results" / "cpu.json").read_text(encoding="utf-8"))
    differences = compare_table(readme, results) + find_test_counts(readme)
    for log in sys.argv[2:3]:
        differences += compare_demo(readme, Path(log).read_text(encoding="utf-8"))
    print("\n".join(differences + [f"readme: {len(differences)} differences"]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
