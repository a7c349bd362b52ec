"""Runs the examples of docs/schedules.md.

Usage: schedules.py DOCUMENT BNGRAD_OPT

An example begins with `**`KIND`**, SHAPE NCHW` (or NHWC, or `with channels of dims 0 and
2`), maybe with `on CHIP`, and has a ```text block: a schedule, a blank line, a loop nest.
The document's commands, which begin with `$ bngrad-opt FILE --bngrad-cpu-pipeline` or
`--bngrad-cuda-pipeline`, must choose that schedule for a gradient of that shape. Each
number of the nest must be a constant of the IR after the stage `apply`.
Prints LINE and the reason for each difference, then `N examples, M failed`.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Set

EXAMPLE = re.compile(
    r"^\*\*`(?P<kind>\w+)`\*\*, (?P<shape>[\d?x]+) (?:(?P<layout>NCHW|NHWC)|with channels of dims (?P<dims>[\d and]+))"
    r"(?: on (?P<chip>sm_\d+))?:.*?^```text\n(?P<block>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ bngrad-opt FILE (--bngrad-(cpu|cuda)-pipeline=.*)$", re.M)


class Example(NamedTuple):
    line: int  # of its title, from 1
    kind: str
    shape: List[str]
    features: List[int]
    chip: str  # empty: a CPU
    schedule: str
    nest: str


def find_examples(document: str) -> Iterator[Example]:
    for match in EXAMPLE.finditer(document):
        shape = match["shape"].split("x")
        features = ([int(dim) for dim in re.findall(r"\d+", match["dims"])] if match["dims"] else
                    [1 if match["layout"] == "NCHW" else len(shape) - 1])
        schedule, _, nest = match["block"].partition("\n")
        line = document.count("\n", 0, match.start()) + 1
        yield Example(line, match["kind"], shape, features, match["chip"] or "", schedule, nest)


def write_program(example: Example) -> str:
    data = f"tensor<{'x'.join(example.shape)}xf32>"
    channel = f"tensor<{'x'.join(example.shape[dim] for dim in example.features)}xf32>"
    return f"""
func.func @f(%dy: {data}, %x: {data}, %scale: {channel}, %mean: {channel}, %variance: {channel})
    -> ({data}, {channel}, {channel}) {{
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : {data}) input(%x : {data})
      scale(%scale : {channel}) mean(%mean : {channel}) variance(%variance : {channel})
      {{feature_dims = array<i64: {', '.join(map(str, example.features))}>}} : {data}, {channel}, {channel}
  return %0#0, %0#1, %0#2 : {data}, {channel}, {channel}
}}
"""


def run(opt: str, option: str, example: Example, stage: str) -> str:
    """The IR of the example after `stage`."""
    option = re.sub(r"stop-after=\w+", f"stop-after={stage}", option)
    if example.chip:
        option = re.sub(r"chip=\w+", f"chip={example.chip}", option)
    result = subprocess.run([opt, "-", *shlex.split(option)], input=write_program(example), text=True,
                            capture_output=True)
    if result.returncode != 0:
        raise ValueError(f"{option}: {(result.stderr.strip().splitlines() or ['no message'])[0]}")
    return result.stdout


def check(opt: str, option: str, example: Example) -> Iterator[str]:
    """Yields the differences of an example from the IR."""
    if not example.schedule.startswith(f"#bngrad.schedule<{example.kind}"):
        yield f"expected a schedule of kind {example.kind}, got {example.schedule}"
    chosen: Set[str] = set(re.findall(r"#bngrad\.schedule<[^>]*>", run(opt, option, example, "group")))
    if chosen != {example.schedule}:
        yield f"expected {example.schedule}, got {', '.join(sorted(chosen)) or 'no schedule'}"
    constants = set(re.findall(r"arith\.constant (\d+) : ", run(opt, option, example, "apply")))
    for number in re.findall(r"\d+", example.nest):
        if number not in constants:
            yield f"expected only constants of the loops in the nest, got {number}"


def main() -> int:
    document, opt = Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]
    commands = {target: option for option, target in COMMAND.findall(document)}
    count = failed = 0
    for example in find_examples(document):
        count += 1
        try:
            differences = list(check(opt, commands["cuda" if example.chip else "cpu"], example))
        except (KeyError, ValueError) as error:
            differences = [f"cannot run: {error}"]
        failed += bool(differences)
        for difference in differences:
            print(f"{example.line}: {example.kind}: {difference}")
    # Every title in bold is an example.
    titles = len(re.findall(r"^\*\*`", document, re.M))
    if titles != count:
        print(f"expected {titles} examples, found {count}")
    print(f"{count} examples, {failed} failed")
    return 1 if failed or not count or titles != count else 0


if __name__ == "__main__":
    sys.exit(main())
