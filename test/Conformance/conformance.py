"""Runs every case with expected values in a folder of JSON files.

Usage: conformance.py --bin-dir DIR [FOLDER]

The default of FOLDER is BNGRAD_CONFORMANCE_DIR. Without either, nothing is
run, which is an error if BNGRAD_REQUIRE names conformance. A file contains one
case, a list `cases`, or a list `grids` of shapes without expected values. One
line per case; the last one is

    conformance: N passed, M failed, K out of scope

Exit status 1 if a case failed or none passed. Grids are counted separately, on
the previous line, and print a line only for entries that fail or cannot be
run. BNGRAD_LONG_TESTS=1 runs larger shapes and more combinations of a grid.
"""

import sys

sys.dont_write_bytecode = True  # the folder may be read-only

import argparse
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

try:
    import numpy as np
except ImportError:
    sys.exit(f"conformance: error: {sys.executable} has no numpy")

import cases
import grids
import values
import verifier
from programs import Failure, Tools

# By id; all others must run.
DOUBLE_BACKWARD = "the gradient of the gradient is not an op here"
NO_OFFSET = "the gradient depends on no offset, so the op has no such operand"
EMPTY_IS_LEGAL = "no channels are legal here: the results are empty"
NOT_OF_IR = "a descriptor of a library, for which this op has no counterpart"
OUT_OF_SCOPE = {
    "derived_double_backward_training": DOUBLE_BACKWARD,
    "derived_double_backward_frozen": DOUBLE_BACKWARD,
    "NervanaSystems/ngraph:batch_norm_training_backprop_et_check": NO_OFFSET,
    "NervanaSystems/ngraph:batch_norm_training_backprop_shape_check": NO_OFFSET,
    "NervanaSystems/ngraph:partial_delta_zero_channels": EMPTY_IS_LEGAL,
    "NervanaSystems/ngraph:partial_input_zero_channels": EMPTY_IS_LEGAL,
    "uxlfoundation/oneDNN:negative_dims": NOT_OF_IR,
    "uxlfoundation/oneDNN:tag_any_for_src_on_backward": NOT_OF_IR,
    "uxlfoundation/oneDNN:src_dtype_undef": NOT_OF_IR,
    "uxlfoundation/oneDNN:src_f32_/_dst_bf16": NOT_OF_IR,
    "uxlfoundation/oneDNN:src_nchw_/_dst_nhwc": NOT_OF_IR,
}

Check = Callable[[Tools], Optional[str]]  # returns a remark, or raises Failure


class Item(NamedTuple):
    """An item that prints one line."""
    id: str
    check: Check
    is_grid: bool = False


def fail(message: str) -> Check:
    def check(tools: Tools) -> Optional[str]:
        raise Failure(message)
    return check


def make_item(case: Any, others: List[Any], fallback: str) -> Item:
    """`fallback` is the id of a case without one."""
    if not isinstance(case, dict):
        return Item(fallback, fail("expected a case to be a JSON object"))
    is_verifier = {"types", "expect"} <= case.keys()
    id = str(case.get("id", fallback))
    if is_verifier and "id" not in case and "name" in case:
        id = f"{case.get('source_repo')}:{case['name']}"
    id = id.replace(" ", "_")
    if is_verifier:
        return Item(id, lambda tools: verifier.check_case(case, others, tools))
    if not {"inputs", "expected"} <= case.keys():
        return Item(id, fail(
            "unknown schema: expected inputs and expected, or types and "
            f"expect, got {', '.join(map(str, case)) or 'nothing'}"))

    def check(tools: Tools) -> Optional[str]:
        parsed = cases.read_case(case)
        needed_slack = values.check_case(parsed, tools)
        remarks = []
        if parsed.ignored:
            remarks.append(f"ignored: {', '.join(parsed.ignored)}")
        if needed_slack:
            remarks.append(f"{', '.join(needed_slack)}: allowed for how the "
                           "case rounds its numbers")
        return "; ".join(remarks) or None
    return Item(id, check)


def read_file(path: Path, is_long: bool) -> Iterator[Item]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        yield Item(path.name, fail(f"cannot read: {error.strerror}"))
        return
    except ValueError as error:
        yield Item(path.name, fail(f"expected JSON, got {error}"))
        return
    if isinstance(content, dict) and isinstance(content.get("grids"), list):
        for grid in content["grids"]:
            if not isinstance(grid, dict) or not isinstance(grid.get("cases"),
                                                            list):
                yield Item(path.name, fail("expected cases in every grid"))
                continue
            for entry in grids.read_entries(grid, is_long):
                yield Item(entry.id, make_grid_check(entry), is_grid=True)
        return
    if isinstance(content, dict) and "cases" not in content:
        yield make_item(content, [], path.stem)
        return
    found = content.get("cases") if isinstance(content, dict) else content
    if not isinstance(found, list):
        yield Item(path.name, fail("expected cases to be a list"))
        return
    for i, case in enumerate(found):
        yield make_item(case, found, f"{path.stem}[{i}]")


def make_grid_check(entry: grids.Entry) -> Check:
    def check(tools: Tools) -> Optional[str]:
        grids.check_entry(entry, tools)
        return entry.skipped
    return check


def read_folder(folder: Path, is_long: bool) -> List[Item]:
    if not folder.is_dir():
        return [Item(str(folder), fail("expected a folder, got none"))]
    paths = sorted(folder.glob("*.json"))
    if not paths:
        return [Item(str(folder), fail("expected JSON files, got none"))]
    return [item for path in paths for item in read_file(path, is_long)]


def run(item: Item, tools: Tools) -> Tuple[str, Optional[str]]:
    """PASS, FAIL, SKIP or OUT OF SCOPE, and the reason."""
    if item.id in OUT_OF_SCOPE:
        return "OUT OF SCOPE", OUT_OF_SCOPE[item.id]
    try:
        remark = item.check(tools)
    except Failure as failure:
        return "FAIL", str(failure)
    except Exception as error:  # the contents of a case are arbitrary
        return "FAIL", f"cannot be read: {type(error).__name__}: {error}"
    if item.is_grid and remark:
        return "SKIP", remark
    return "PASS", remark


def describe(id: str, word: str, reason: Optional[str]) -> str:
    """One line, for any contents of the texts."""
    if word == "PASS":
        line = f"PASS {id}" + (f" ({reason})" if reason else "")
    else:
        line = f"{word} {id}: {reason}"
    return " ".join(line.split())


def run_all(items: List[Item], tools: Tools) -> int:
    counts = {"PASS": 0, "FAIL": 0, "SKIP": 0, "OUT OF SCOPE": 0}
    grid_counts = dict(counts)
    with ThreadPoolExecutor(
            os.cpu_count(), initializer=np.seterr,
            initargs=("ignore",)) as pool:
        results = pool.map(lambda item: run(item, tools), items)
        for item, (word, reason) in zip(items, results):
            (grid_counts if item.is_grid else counts)[word] += 1
            if not item.is_grid or word != "PASS":
                print(describe(item.id, word, reason), flush=True)
    if any(grid_counts.values()):
        print(f"parametric: {grid_counts['PASS']} passed, "
              f"{grid_counts['FAIL']} failed")
    print(f"conformance: {counts['PASS']} passed, {counts['FAIL']} failed, "
          f"{counts['OUT OF SCOPE']} out of scope")
    return int(counts["PASS"] == 0 or counts["FAIL"] > 0
               or grid_counts["FAIL"] > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", type=Path, required=True,
                        help="folder of bngrad-opt and bngrad-runner")
    parser.add_argument("folder", nargs="?",
                        default=os.environ.get("BNGRAD_CONFORMANCE_DIR"))
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")
    if not options.folder:
        is_required = "conformance" in os.environ.get("BNGRAD_REQUIRE",
                                                      "").split(",")
        print("conformance: BNGRAD_CONFORMANCE_DIR is not set, nothing was run"
              + (", but BNGRAD_REQUIRE names it" if is_required else ""))
        return int(is_required)
    items = read_folder(Path(options.folder),
                        os.environ.get("BNGRAD_LONG_TESTS") == "1")
    with tempfile.TemporaryDirectory() as folder:
        return run_all(items, Tools(options.bin_dir.resolve(), Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
