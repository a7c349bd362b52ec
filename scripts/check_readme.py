"""Compares the README's numbers with their sources.

Usage: check_readme.py README [LOG]
       check_readme.py --self-test

* The first performance table has the numbers of bench/results/torch-*.md, a row for each class of CPU, and no numbers
  where there is no such file; the second those of cpu-*.json and compilers-*.json of CPUs with AVX-512. The versions of
  the peers are those of these runs.
* With LOG, the output of scripts/demo.sh, the lines of the README's block of that output
  must be the last lines of LOG, but for the values that the README declares to be
  machine-dependent (scripts/documents.py).
* Readers see each such declaration, and it fits its block.
* A row of a table that names a GPU links the file of results that it was measured in.
* The README states no number of tests, which no check could keep up to date.
"""

import itertools
import json
import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

import documents

COLUMNS = ["data", "PyTorch", "oneDNN", "torch.compile", "JAX/XLA", "IREE", "MLIR's own passes"]
GROUPS = {"f32 NCHW": ("f32", "nchw"), "f32 NHWC": ("f32", "nhwc"),
          "bf16 NCHW": ("bf16", "nchw"), "bf16 NHWC": ("bf16", "nhwc")}
# By row of the first table: the instruction set of its results.
CPU_COLUMNS = ["CPU", "pass", *GROUPS]
CPUS = {"AVX-512": "x86-64-v4-avx512bf16", "AVX2": "x86-64-v3"}
PASS_HEADING = re.compile(r"^## (\w+): aten::.*$", re.MULTILINE)
LAYOUTS = {"channels first": "nchw", "channels last": "nhwc"}
# By column: in cpu-*.json, of which the fastest counts, and in compilers-*.json.
LIBRARIES = {"PyTorch": ["torch"], "oneDNN": ["onednn", "onednn-debian"]}
COMPILERS = {"torch.compile": "inductor", "JAX/XLA": "xla", "IREE": "iree", "MLIR's own passes": "mlir"}
GPU_ROW = re.compile(r"^\|.*\b[ABHL]\d{2,3}\b.*$", re.MULTILINE)
GPU_RESULTS = re.compile(r"\(bench/results/([\w-]+)\.md\)")
TEST_COUNT = re.compile(r"\b\d+ (?:lit |unit )?(?:tests\b|passed\b)")


def compare_demo(readme: str, log: str) -> List[str]:
    """The differences of the demo's output, whose sections begin with `==`, as lines."""
    blocks = [block for block in documents.find_blocks(readme)
              if block.language == "text" and block.text.startswith("== ")]
    if len(blocks) != 1:
        return [f"expected one block of text that begins with '== ', got {len(blocks)}"]
    return documents.compare_output(blocks[0], log)


def find_ratio(case: Dict, column: str) -> Optional[float]:
    """The time of the peer of a column over that of BNGrad, if it was measured."""
    if column in LIBRARIES:
        ratios = [case["ratios"].get(f"{peer}/bngrad") for peer in LIBRARIES[column]]
    else:
        ratios = [1 / limit["value"] for limit in case["verdicts"] if limit["name"] == COMPILERS[column]]
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def make_row(group: str, cpu: Dict, compilers: Dict) -> List[str]:
    """The README's row of a group: geometric means over its shapes above 20 MB that both have."""
    row = [group]
    shared = {case["name"] for case in cpu["cases"]} & {case["name"] for case in compilers["cases"]}
    for column in COLUMNS[1:]:
        cases = (cpu if column in LIBRARIES else compilers)["cases"]
        ratios = [find_ratio(case, column) for case in cases
                  if (case["type"], case["layout"]) == GROUPS[group] and case["is_large"] and case["name"] in shared]
        logarithms = [math.log(ratio) for ratio in ratios if ratio is not None]
        row.append(f"{math.exp(sum(logarithms) / len(logarithms)):.1f}" if logarithms else "")
    return row


def split_rows(text: str) -> List[List[str]]:
    """The cells of each line."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n")]


def make_cpu_rows(cpu: str, results: str) -> List[List[str]]:
    """The README's rows of a class of CPU from a file of bench/torch_cpu.py: geometric means of each pass in it."""
    made = []
    _, *sections = PASS_HEADING.split(results)
    for name, section in zip(sections[::2], sections[1::2]):
        ratios: Dict = {group: [] for group in GROUPS.values()}
        for row in split_rows(section.split("\n## ")[0]):
            # shapes of, shape, type, layout, times of both, ratio, and others.
            if len(row) > 6 and row[3] in LAYOUTS:
                ratios[row[2], LAYOUTS[row[3]]].append(float(row[6]))
        if all(ratios.values()):
            made.append([cpu, name] + [f"{math.exp(sum(map(math.log, found)) / len(found)):.1f}"
                                       for found in ratios.values()])
    return made


def compare_cpus(readme: str, folder: Path) -> List[str]:
    """The differences of the table of classes of CPUs, as lines."""
    rows = split_rows(readme)
    if CPU_COLUMNS not in rows:
        return [f"expected a table with the columns {', '.join(CPU_COLUMNS)}"]
    differences, made = [], []
    for cpu, isa in CPUS.items():
        path = folder / f"torch-{isa}.md"
        if path.exists():
            made += make_cpu_rows(cpu, path.read_text(encoding="utf-8"))
            if f"(bench/results/{path.name})" not in readme:
                differences.append(f"expected a link to bench/results/{path.name}")
    start = rows.index(CPU_COLUMNS) + 2
    found = list(itertools.takewhile(lambda row: len(row) == len(CPU_COLUMNS), rows[start:]))
    if found != made:
        differences += [f"README: {' | '.join(row)}" for row in found if row not in made]
        differences += [f"   run: {' | '.join(row)}" for row in made if row not in found]
    return differences


def compare_table(readme: str, cpu: Dict, compilers: Dict) -> List[str]:
    """The differences of the table of libraries and compilers, as lines."""
    lines = split_rows(readme)
    if COLUMNS not in lines:
        return [f"expected a table with the columns {', '.join(COLUMNS)}"]
    start = lines.index(COLUMNS) + 2
    rows = [row for row in lines[start:start + len(GROUPS) + 1] if len(row) == len(COLUMNS)]
    if len(rows) != len(GROUPS):
        return [f"expected a row for each of {', '.join(GROUPS)}, got {len(rows)}"]
    differences = []
    for row, group in zip(rows, GROUPS):
        made = make_row(group, cpu, compilers)
        if row != made:
            differences.append(f"README: {' | '.join(row)}\n   run: {' | '.join(made)}")
    for peer in cpu["peers"] + compilers["peers"]:
        version = re.search(r"\d+\.\d+", peer["version"] or "")
        title = peer["title"].split(",")[0]
        if version and title in readme and f"{title} {version[0]}" not in " ".join(readme.split()):
            differences.append(f"expected the version of the run, {title} {version[0]}")
    return differences


def find_unmeasured(readme: str, measured: List[str]) -> List[str]:
    """Rows of tables that name a GPU without a link to one of the results `measured`."""
    return [f"expected a link to the results of a GPU in bench/results, got '{row}'" for row in GPU_ROW.findall(readme)
            if not set(GPU_RESULTS.findall(row)) & set(measured)]


def find_measured(folder: Path) -> List[str]:
    """The names of the GPU suite's results that have times."""
    documents_of = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    return [name for name, document in documents_of.items() if isinstance(document, dict) and any(
        "us" in case["results"].get("bngrad", {}) for case in document.get("benchmark", []))]


def find_test_counts(readme: str) -> List[str]:
    return [f"expected no number of tests, got '{match[0]}'" for match in TEST_COUNT.finditer(readme)]


def self_test() -> None:
    readme = ("```text\nother\n```\n\nThe times are machine-dependent:\n\n<!-- machine-dependent: max_error, bound, median_us, ratio -->\n"
              "```text\n== A\nresult 0 x max_error 1e-3 bound 2e-3 ok\n  median_us=3 bytes=5 ratio: 7\n```\n")
    log = "before\n== A\nresult 0 x max_error 1.5e-3 bound 1e-2 ok median_us=4 bytes=5 ratio: 6\n"
    assert documents.check_marks(readme) == []
    assert compare_demo(readme, log) == []
    # What is not declared must be equal, and names are whole words.
    for old, new in (("ok", "failed"), ("bytes=5", "bytes=6"), ("== A\n", ""), ("median_us", "xmedian_us"), ("ratio: ", "ratio:")):
        assert len(compare_demo(readme, log.replace(old, new))) == 1, new
    for name in ("max_error", "bound", "median_us"):
        assert len(compare_demo(readme.replace(f"{name}, ", "", 1), log)) == 1, name
    assert compare_demo(readme, "") and compare_demo("", log) and compare_demo(readme + readme, log)
    # A declaration is visible, fits its block and stands before it.
    for old, new in (("times are machine-dependent", "times follow"), ("bound, ", "bound, seconds, "), ("-->\n", "-->\n\n")):
        assert len(documents.check_marks(readme.replace(old, new))) == 1, new

    def make_case(**values: object) -> Dict:
        return {"type": "f32", "layout": "nchw", "is_large": True, **values}

    cpu = {"peers": [{"title": "PyTorch", "version": "2.15.0 threads=OpenMP"}, {"title": "x", "version": None}],
           "cases": [make_case(name="a", ratios={"torch/bngrad": 2.0, "onednn/bngrad": 5.0, "onednn-debian/bngrad": 4.0}),
                     make_case(name="b", ratios={"torch/bngrad": 8.0, "torch-default/bngrad": 9.0}),
                     make_case(name="a", ratios={"torch/bngrad": 99.0}, is_large=False),
                     make_case(name="a", ratios={"torch/bngrad": 99.0}, layout="nhwc", type="f16"),
                     make_case(name="c", ratios={"torch/bngrad": 99.0})]}
    compilers = {"peers": [{"title": "IREE", "version": "compiler 3.13.0"}],
                 "cases": [make_case(name="a", verdicts=[{"name": "iree", "value": 0.5}, {"name": "xla", "value": 0.1}]),
                           make_case(name="b", verdicts=[])]}
    assert make_row("f32 NCHW", cpu, compilers) == ["f32 NCHW", "4.0", "4.0", "", "10.0", "2.0", ""]
    rows = "".join(f"| {' | '.join(make_row(group, cpu, compilers))} |\n" for group in GROUPS)
    table = f"PyTorch\n2.15, IREE 3.13\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n{rows}"
    assert compare_table(table, cpu, compilers) == []
    for old, new in ("| 4.0", "| 4.1"), ("10.0", "1.0"), ("| f32 NCHW", "| f64 NCHW"), ("2.15", "2.14"), ("3.13", "3.1"):
        assert len(compare_table(table.replace(old, new, 1), cpu, compilers)) == 1, new
    assert len(compare_table("PyTorch 2.15", cpu, compilers)) == 1
    assert len(compare_table(table + rows.split("\n")[0] + "\n", cpu, compilers)) == 1
    assert len(compare_table(table.replace(rows.split("\n")[0] + "\n", ""), cpu, compilers)) == 1
    shapes = "".join(f"| net | {size} | {type} | {layout} | 2 | 1 | {ratio} | | 1.00 |\n" for type in ("f32", "bf16")
                     for layout in LAYOUTS for size, ratio in (("1x1", 2), ("1x2", 8)))
    forward = shapes.replace("| 8 |", "| 18 |")
    results = (f"## backward: aten::native_batch_norm_backward, training\n{shapes}\n"
               f"## forward: aten::native_batch_norm, training\n{forward}"
               "\n## Passes of a block\n| block | channels last | 1 | 2 | 3 | 4 | 5 | 6 |\n")
    rows = [["AVX2", "backward", *["4.0"] * 4], ["AVX2", "forward", *["6.0"] * 4]]
    assert make_cpu_rows("AVX2", results) == rows
    assert make_cpu_rows("AVX2", results.split("\n## forward")[0]) == rows[:1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = "\n".join(f"| {' | '.join(row)} |" for row in (CPU_COLUMNS, ["---"], *rows)) + "\n\n"
        linked = table + "[AVX2](bench/results/torch-x86-64-v3.md)"
        # Numbers without results, and results without a link.
        assert len(compare_cpus(linked, folder)) == 2
        (folder / "torch-x86-64-v3.md").write_text(results, encoding="utf-8")
        assert compare_cpus(linked, folder) == []
        assert len(compare_cpus(table, folder)) == 1
        assert len(compare_cpus(linked.replace("6.0 |", "6.1 |", 1), folder)) == 2
        assert len(compare_cpus("", folder)) == 1
    row = "| H100 | 1.2 | [measured](bench/results/h100-80gb.md) |"
    assert find_unmeasured(f"H100\n\n{row}\n| x100 | 1 |\n", ["h100-80gb"]) == []
    assert len(find_unmeasured(row, ["h200"])) == len(find_unmeasured("| a | H200: 3 |", ["h200"])) == 1
    assert find_test_counts("bngrad: N passed, 32 tensors") == []
    assert len(find_test_counts("All 238 tests pass: 238 passed.")) == 2


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        print("self-test: passed")
        return 0
    path = Path(sys.argv[1])
    readme = path.read_text(encoding="utf-8")
    folder = path.parent / "bench" / "results"
    cpu, compilers = (json.loads((folder / f"{name}-{CPUS['AVX-512']}.json").read_text(encoding="utf-8"))
                      for name in ("cpu", "compilers"))
    differences = compare_cpus(readme, folder) + compare_table(readme, cpu, compilers) + find_test_counts(readme) + documents.check_marks(readme)
    differences += find_unmeasured(readme, find_measured(folder))
    for log in sys.argv[2:3]:
        differences += compare_demo(readme, Path(log).read_text(encoding="utf-8"))
    print("\n".join(differences + [f"readme: {len(differences)} differences"]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
