"""Checks that conformance.py detects errors of a case.

Usage: self_test.py --bin-dir DIR [--long]

Runs it on generated folders: good cases of every kind, the same cases with one
changed expected value, malformed ones, and tools that crash or print nothing.
Without --long, some kinds of good cases, and one changed value for each kind of
value.
Compares every line and the exit status. Prints a line per folder, and exits
with 1 if one was unexpected.
"""

import sys

sys.dont_write_bytecode = True

import argparse
import copy
import itertools
import json
import os
import re
import tempfile
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

import conformance
from rounding import closed_form

F32 = {"f32": {"rtol": 1e-5, "atol": 1e-5}}
BOTH = {**F32, "f64": {"rtol": 1e-12, "atol": 1e-12}}
COARSE = {"kind": "abs", "atol": 0.05}
RESULTS = ("grad_input", "grad_scale", "grad_offset")
# Good cases without --long, and those whose values are then changed: the sums and
# parts of the last ones are kinds of values that the first lacks.
QUICK = ("nchw", "nhwc_frozen_masked", "second_half", "first_half", "shards")
QUICK_WRONG = ("nchw", "first_half", "second_half", "shards")


def pack(array: np.ndarray) -> Dict[str, Any]:
    return {"shape": list(array.shape), "data": array.ravel().tolist()}


def make_case(id: str, shape: Tuple[int, ...], dims: Tuple[int, ...],
              tolerance: Any, statistics: str = "batch",
              statistic: str = "variance", with_scale: bool = True,
              with_mask: bool = False, dtype: Optional[str] = None) -> Any:
    """Data in multiples of 1/8, exact in every element type."""
    random = np.random.RandomState(len(id))
    channel = [shape[dim] for dim in dims]
    operands = {"grad_output": random.randint(-16, 17, shape) / 8,
                "input": random.randint(-16, 17, shape) / 8}
    if with_scale:
        operands["scale"] = random.randint(4, 24, channel) / 8
    operands["mean"] = random.randint(-4, 5, channel) / 8
    operands[statistic] = random.randint(8, 24, channel) / 8
    if with_mask:
        operands["mask"] = random.randint(0, 2, shape) != 0
    epsilon = 0.125 if statistic == "variance" else 0.0
    results = closed_form(operands, dims, epsilon, statistics)
    case = {"id": id, "tolerance": tolerance,
            "attributes": {"epsilon": epsilon, "feature_axes": list(dims),
                           "statistics": statistics, "stat_kind": statistic},
            "inputs": {name: pack(values.astype(float))
                       for name, values in operands.items()},
            "expected": {name: pack(results[name].astype(float))
                         for name in RESULTS}}
    if dtype:
        case["attributes"]["dtype"] = dtype
    return case


def make_cases(is_long: bool) -> List[Any]:
    """Good cases; each covers a feature that the others lack."""
    cases = [
        make_case("nchw", (3, 4, 2, 5), (1,), BOTH if is_long else F32),
        make_case("nhwc_frozen_masked", (2, 3, 5, 4), (3,), F32, "global",
                  "inv_std", with_scale=False, with_mask=True),
        make_case("two_feature_dims", (5, 3, 2, 4), (1, 2), BOTH),
        make_case("inv_std", (6, 3), (1,), F32, statistic="inv_std"),
        make_case("half", (4, 3, 5), (1,), COARSE, with_scale=False,
                  dtype="f16, f32 params"),
        make_case("bfloat", (4, 3), (1,), {"kind": "abs", "atol": 0.1},
                  dtype="bfloat16"),
        make_case("empty", (4, 3, 0), (1,), F32),
        make_case("ulps", (4, 3), (1,), {
            "kind": "ulp", "ulps": 4, "note": "suggested: atol 1e-5"}),
    ]
    some = make_case("some_results", (4, 3, 2), (1,), {
        "kind": "per_output", "grad_scale": {"atol": 1e-5}}, with_scale=False)
    some["inputs"]["scale"] = some["expected"]["grad_input"] = None
    del some["expected"]["grad_offset"]
    cases.append(some)

    kept = make_case("kept_dims", (4, 3, 2), (1,), F32)
    for values in [*kept["inputs"].values(), *kept["expected"].values()]:
        if values["shape"] == [3]:
            values["shape"] = [1, 3, 1]
    cases.append(kept)

    halves = make_case("second_half", (4, 3), (1,), F32)
    operands = {name: np.reshape(values["data"], values["shape"])
                for name, values in halves["inputs"].items()}
    sums = np.array([[3, -4, 5], [-2, 1, 0.5]])
    halves["inputs"].update(sum_dy=pack(sums[0]), sum_dy_xmu=pack(sums[1]),
                            count=pack(np.array([4, 0, 7])))
    halves["expected"] = {"grad_input": pack(closed_form(
        {**operands, "sums": sums, "count": np.array(11)}, (1,), 0.125,
        "batch")["grad_input"].astype(float))}
    cases.append(halves)

    first = make_case("first_half", (4, 3), (1,), F32)
    results = closed_form({name: np.reshape(values["data"], values["shape"])
                           for name, values in first["inputs"].items()},
                          (1,), 0.125, "batch")
    first["expected"] = {name: pack(results[name].astype(float))
                         for name in ("sum_dy", "sum_dy_xmu")}
    cases.append(first)

    shards = make_case("shards", (5, 2, 3), (1,), F32, statistic="inv_std")
    shards["shards"] = []
    for begin, end in ((0, 2), (2, 2), (2, 5)) if is_long else ((0, 2), (2, 5)):
        part = {name: np.reshape(values["data"], values["shape"])
                for name, values in shards["inputs"].items()}
        for name in ("grad_output", "input"):
            part[name] = part[name][begin:end]
        results = closed_form(part, (1,), 0.0, "batch")
        shards["shards"].append({
            "rows": [begin, end], "count": (end - begin) * 3,
            **{name: results[name].astype(float).tolist() for name in
               ("sum_dy", "sum_dy_xmu", "grad_scale", "grad_offset")}})
    cases.append(shards)
    return [case for case in cases if is_long or case["id"] in QUICK]


def make_wrong_cases(cases: List[Any], is_long: bool) -> List[Any]:
    """Each with one expected number changed by more than its tolerance."""
    wrong = []

    def add(case: Any, name: str) -> Any:
        changed = copy.deepcopy(case)
        changed["id"] += f"_wrong_{name}"
        wrong.append(changed)
        return changed

    for case in cases:
        if not is_long and case["id"] not in QUICK_WRONG:
            continue
        shards = case.get("shards", [])
        for name, values in case["expected"].items():
            if values and values["data"] and (is_long or not shards):
                add(case, name)["expected"][name]["data"][-1] += 0.25
        for i, shard in enumerate(shards if is_long else shards[:1]):
            for name in shard.keys() - {"rows", "count"}:
                add(case, f"{i}_{name}")["shards"][i][name][-1] += 0.25
            add(case, f"{i}_count")["shards"][i]["count"] += 1
    # Within the tolerance of f32 only.
    slight = add(make_case("slight", (6, 3), (1,), BOTH, statistic="inv_std"),
                 "digit")
    slight["expected"]["grad_offset"]["data"][0] += 1e-7
    return wrong


def make_malformed() -> List[Tuple[Any, str]]:
    """Cases and the expected lines."""
    good = make_case("good", (4, 3), (1,), F32)
    found = []

    def add(message: str, *path: Any, value: Any = None) -> None:
        """Sets or removes the value at `path`."""
        case = copy.deepcopy(good)
        case["id"] = f"malformed_{len(found)}"
        at = case
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
        found.append((case, message))

    add("unknown schema: .*", "expected")
    add("expected attributes", "attributes")
    add("expected feature_index or feature_axes", "attributes", "feature_axes")
    add("expected feature_axes to be dims of rank 2, got .*", "attributes",
        "feature_axes", value=[2])
    add("expected statistics to be batch or global, got 'some'", "attributes",
        "statistics", value="some")
    add("expected stat_kind to be variance or inv_std, got 'std'",
        "attributes", "stat_kind", value="std")
    add("expected an input inv_std", "attributes", "stat_kind",
        value="inv_std")
    add("expected dtype to name a float type, got 'i8'", "attributes", "dtype",
        value="i8")
    add("expected an input mean", "inputs", "mean")
    add("unknown input other", "inputs", "other", value=good["inputs"]["mean"])
    add("expected 3 numbers in mean, got 2", "inputs", "mean", "data",
        value=[1, 2])
    add("expected numbers as mean", "inputs", "mean", "data",
        value=["a", 1, 2])
    add("expected scale to have shape and data", "inputs", "scale", value=[1])
    add("expected at least one expected value", "expected", value={})
    add("expected a tolerance", "tolerance")
    add("expected atol, rtol or ulps for grad_input, got kind", "tolerance",
        value={"kind": "abs"})
    add("expected rows of shards.* to be in .*", "shards",
        value=[{"rows": [0, 5]}])
    add("unknown keys in shards.*: what", "shards",
        value=[{"rows": [0, 4], "what": 1}])
    add(".*expected shape of mean to be compatible with .*", "inputs", "mean",
        value=pack(np.zeros(4)))
    return found


def verifier_case(name: str, expect: str, repo: str = "stablehlo",
                  **changes: Any) -> Any:
    types = {"input": "tensor<2x3xf32>", "scale": "tensor<3xf32>",
             "mean": "tensor<3xf32>", "variance": "tensor<3xf32>",
             "grad_output": "tensor<2x3xf32>",
             "results": ["tensor<2x3xf32>", "tensor<3xf32>", "tensor<3xf32>"]}
    return {"name": name, "source_repo": repo, "types": {**types, **changes},
            "attributes": {"epsilon": 0.5, "feature_index": 1},
            "expect": expect}


def shaped_case(name: str, expect: str, **shapes: Any) -> Any:
    types = {name: "dynamic rank" for name in
             ("input", "gamma", "beta", "mean", "variance", "delta")}
    case = verifier_case(name, expect, "other")
    case["types"] = {**types, **shapes, "element_types": "f32"}
    return case


def run_conformance(bin_dir: Path, environment: Dict[str, str]
                    ) -> Tuple[int, str, str]:
    """Exit status, output and errors of conformance.py: of a child of this
    process, as numpy is loaded here and takes long."""
    with tempfile.TemporaryFile("w+") as out, \
            tempfile.TemporaryFile("w+") as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.environ.clear()
                os.environ.update(environment)
                sys.argv = ["conformance.py", "--bin-dir", str(bin_dir)]
                status = conformance.main()
            except Exception:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, wait_status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return (os.waitstatus_to_exitcode(wait_status), out.read(),
                err.read())


class SelfTest:
    def __init__(self, bin_dir: Path, folder: Path, is_long: bool):
        self.bin_dir, self.folder, self.is_long = bin_dir, folder, is_long
        self.numbers, self.failed = itertools.count(), 0

    def stubs(self, runner: str, opt: str) -> Path:
        """A folder of tools that are shell scripts; $text is their input."""
        folder = self.folder / f"bin{next(self.numbers)}"
        folder.mkdir()
        for name, body in (("bngrad-runner", runner), ("bngrad-opt", opt)):
            path = folder / name
            path.write_text(f"#!/bin/sh\ntext=$(cat)\n{body}\n")
            path.chmod(0o755)
        return folder

    def run(self, name: str, files: Optional[Dict[str, Any]], lines: List[str],
            status: int, bin_dir: Optional[Path] = None, **env: str) -> None:
        """`files` are texts or JSON by name, None for no folder; `lines` are
        regular expressions, one for each expected line."""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("BNGRAD_")}
        environment.update(env)
        if files is not None:
            folder = self.folder / str(next(self.numbers))
            folder.mkdir()
            for file, content in files.items():
                (folder / file).write_text(content if isinstance(content, str)
                                           else json.dumps(content))
            environment.setdefault("BNGRAD_CONFORMANCE_DIR", str(folder))
        status_found, output, errors = run_conformance(
            bin_dir or self.bin_dir, environment)
        printed = output.splitlines()
        problems = [f"expected /{line}/, got {text!r}" for line, text in
                    itertools.zip_longest(lines, printed)
                    if line is None or text is None
                    or not re.fullmatch(line, text)]
        if status_found != status:
            problems.append(f"expected exit status {status}, "
                            f"got {status_found}")
        if errors:
            problems.append(f"expected no errors, got {errors!r}")
        print(f"{'FAILED' if problems else 'ok'} {name}")
        for problem in problems:
            print(f"  {problem}")
        self.failed += bool(problems)


def total(passed: int, failed: int, out_of_scope: int = 0) -> str:
    return (f"conformance: {passed} passed, {failed} failed, "
            f"{out_of_scope} out of scope")


def test_values(test: SelfTest) -> None:
    cases = make_cases(test.is_long)
    cases[0]["expected"]["grad_mean"] = cases[0]["expected"]["grad_scale"]
    remarks = {"nchw": r" \(ignored: grad_mean\)"}
    test.run("good cases",
             {"cases.json": {"cases": cases}, "one.json": cases[1]},
             [f"PASS {case['id']}{remarks.get(case['id'], '')}"
              for case in cases + cases[1:2]] + [total(len(cases) + 1, 0)], 0)
    del cases[0]["expected"]["grad_mean"]
    wrong = make_wrong_cases(cases, test.is_long)
    test.run("wrong numbers", {"cases.json": wrong},
             [rf"FAIL {case['id']}: .*expected .* got .*" for case in wrong]
             + [total(0, len(wrong))], 1)
    # One more digit than an operand has: accepted and reported.
    case = make_case("rounded", (4, 3), (1,), {"f64": {"atol": 1e-12}})
    for values in case["expected"].values():
        values["data"] = [float(f"{value:.9g}") for value in values["data"]]
    test.run("rounded numbers", {"case.json": case}, [
        r"PASS rounded \(f64: allowed for how the case rounds its numbers\)",
        total(1, 0)], 0)


def test_malformed(test: SelfTest) -> None:
    found = make_malformed()
    lines = [f"FAIL {case['id']}: {message}" for case, message in found]
    test.run("malformed cases", {
        "a.json": {"cases": [case for case, _ in found]}, "b.json": "{",
        "c.json": {"cases": 1}, "d.json": [7], "e.json": {},
        "f.json": {"grids": [{}]}}, lines + [
            "FAIL b.json: expected JSON, got .*",
            "FAIL c.json: expected cases to be a list",
            r"FAIL d\[0\]: expected a case to be a JSON object",
            "FAIL e: unknown schema: .* got nothing",
            "FAIL f.json: expected cases in every grid",
            total(0, len(found) + 5)], 1)


def test_verifier(test: SelfTest) -> None:
    bad = {"mean": "tensor<4xf32>"}
    sizes = {"input": [64, "?", 7], "mean": [3]}
    test.run("cases of verifiers", {"a.json": {"cases": [
        verifier_case("valid", "valid; speculatable"),
        verifier_case("error", "error", **bad),
        verifier_case("not really", "error"),
        verifier_case("nor this", "valid", **bad),
        verifier_case("syntax", "error", mean="tensor<4xf32"),
        verifier_case("speculation", "valid; not speculatable"),
        verifier_case("other", "perhaps"),
        verifier_case("missing", "valid", results=["tensor<2xf32>"]),
        shaped_case("refined", "valid; results [{64,3,7},{3},{3}]", **sizes),
        shaped_case("coarse", "valid; results [{64,?,7},{?},{?}]", **sizes),
        shaped_case("ranks", "error", input=[2, 3], delta=[2, 3, 4]),
        {**verifier_case("as", "error"), "types": {
            "element_type": "i8", "shapes": "as valid"}},
        verifier_case("negative dims", "error", "uxlfoundation/oneDNN"),
    ]}}, [
        "PASS stablehlo:valid", "PASS stablehlo:error",
        "FAIL stablehlo:not_really: expected an error, got none",
        "FAIL stablehlo:nor_this: expected no error, got: .*shape of mean.*",
        "FAIL stablehlo:syntax: expected an error of the op, got: .*",
        "FAIL stablehlo:speculation: expected the op to be not speculatable.*",
        "FAIL stablehlo:other: expected expect to be valid or error, .*",
        "FAIL stablehlo:missing: expected types of operands and .*",
        "PASS other:refined",
        r"FAIL other:coarse: expected result types tensor<64x\?x7xf32>, .*",
        "PASS other:ranks", "PASS stablehlo:as",
        "OUT OF SCOPE uxlfoundation/oneDNN:negative_dims: .+",
        total(5, 7, 1)], 1)


def test_grids(test: SelfTest) -> None:
    good = make_case("good", (4, 3), (1,), F32)
    grids = {"grids": [
        {"source_repo": "a", "source_path": "b c", "what":
         "flags {none,G,CR} x dt {f32,bf16} x tag {abx,axb}"
         if test.is_long else "flags {none,CR} x dt {f32,bf16}", "cases": [
             {"shape": [2, 5, 3]}, {"shape": [2, 17, 4], "layout": "nCw16c"},
             {"shape": [9000, 9000, 9000]}, {"rule": "any"}]},
        {"source_repo": "d", "source_path": "e",
         "epsilon": [1e-5, 0.5] if test.is_long else 0.5,
         "cases": [{"shape": [2, 3, 4], "feature_index": "every axis"},
                   {"shape": [2, 3], "feature_index": 2},
                   {"shape": ["S", 3], "S": 0, "train": [True, False]},
                   {"shape": [4, 3, 2], "reduce_axes": [0, -1]},
                   {"dtype": "f16", "layout": "channels_last"}]}]}
    lines = [r"SKIP a:b_c\[3\]: gives no shape in numbers, got None",
             r"SKIP d:e\[1\]: expected feature_index to be a dim, got 2"]
    test.run("grids", {"a.json": good, "g.json": grids},
             ["PASS good", *lines, "parametric: 6 passed, 0 failed",
              total(1, 0)], 0)
    failing = test.stubs("echo 'result 0 grad_input FAILED'; exit 1", "exit 1")
    test.run("a grid that fails", {"g.json": {"grids": [
        {"source_repo": "a", "source_path": "b",
         "cases": [{"shape": [2, 3]}]}]}},
        [r"FAIL a:b\[0\]: 2x3 .*: result 0 grad_input FAILED",
         "parametric: 0 passed, 1 failed", total(0, 0)], 1, failing)


def test_tools(test: SelfTest) -> None:
    files = {"a.json": make_case("good", (4, 3), (1,), F32),
             "b.json": {"cases": [verifier_case("error", "error")]}}
    two = "echo \"x:1:1: error: 'a.b' op c\" >&2\n"
    for name, runner, opt, runner_message, opt_message in (
            ("crash", "kill -SEGV $$", "kill -ABRT $$",
             r"bngrad-runner crashed \(SIGSEGV\)",
             r"bngrad-opt crashed \(SIGABRT\)"),
            ("print nothing", "", "exit 1",
             "expected --check of 3 results, got 0",
             "expected one error, got none"),
            ("print two errors", two + two + "exit 1", two + two + "exit 1",
             "x:1:1: error: .*", "expected one error, got 2: .*")):
        test.run(f"tools that {name}", files, [
            f"FAIL good: f32, static shapes: bngrad: {runner_message}",
            f"FAIL stablehlo:error: {opt_message}", total(0, 2)], 1,
            test.stubs(runner, opt))
    test.run("no tools", files, [
        "FAIL good: .*cannot run bngrad-runner: .*",
        "FAIL stablehlo:error: cannot run bngrad-opt: .*", total(0, 2)], 1,
        test.folder)


def test_forms(test: SelfTest) -> None:
    """A runner that fails on one form of a case: if noticed, it is run."""
    case = make_case("case", (4, 3), (1,), F32)
    shards = make_case("case", (4, 3), (1,), F32, statistic="inv_std")
    shards["shards"] = [{"rows": [0, 1]}, {"rows": [1, 4]}]
    for form, where, content in (
            ("?x", "f32, dynamic shapes: bngrad", case),
            ("xf64>", "f64, static shapes: bngrad",
             make_case("case", (4, 3), (1,), BOTH, statistic="inv_std")),
            ("stablehlo.batch_norm_grad", "f32, static shapes: stablehlo",
             case),
            ("mhlo.batch_norm_grad", "f32, static shapes: mhlo", case),
            ("torch.aten", "f32, static shapes: torch", case),
            ("backward_reduce", "f32, static shapes: reduce", shards),
            ("backward_elemt", r"f32, static shapes: shards\[0\]: elemt",
             shards)):
        stubs = test.stubs(
            f"case \"$text\" in *'{form}'*) echo fails; exit 1;; esac\n"
            f"printf %s \"$text\" | '{test.bin_dir}/bngrad-runner' \"$@\"", "")
        test.run(f"a runner without {form}", {"a.json": content},
                 [f"FAIL case: {where}: fails", total(0, 1)], 1, stubs)


def test_folders(test: SelfTest) -> None:
    test.run("no folder named", None,
             ["conformance: BNGRAD_CONFORMANCE_DIR is not set, nothing was "
              "run"], 0)
    test.run("no folder named but required", None,
             ["conformance: BNGRAD_CONFORMANCE_DIR is not set, nothing was "
              "run, but BNGRAD_REQUIRE names it"], 1,
             BNGRAD_REQUIRE="numpy,conformance")
    test.run("a missing folder", None,
             ["FAIL /no/such: expected a folder, got none", total(0, 1)], 1,
             BNGRAD_CONFORMANCE_DIR="/no/such")
    test.run("an empty folder", {},
             ["FAIL .*: expected JSON files, got none", total(0, 1)], 1)
    test.run("nothing in scope", {"a.json": {
        "id": "derived_double_backward_frozen"}},
        ["OUT OF SCOPE derived_double_backward_frozen: .+", total(0, 0, 1)], 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin-dir", type=Path, required=True)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = SelfTest(options.bin_dir.resolve(), Path(folder), options.long)
        for run in (test_folders, test_tools, test_forms, test_malformed,
                    test_verifier, test_grids, test_values):
            run(test)
    print(f"self-test: {test.failed} failed")
    return int(test.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
