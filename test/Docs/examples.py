"""Runs the IR in the documentation.

Usage: examples.py SOURCE_ROOT BNGRAD_OPT

Every ```mlir block of README.md, docs/*.md and include/BNGrad/**/*.td must
parse and verify. In the description of a pass, the pass must convert a block
under `Before:` to the following one under `After:`, apart from the changes of
--canonicalize and --cse, the names of values and the order of constants.
Prints FILE:LINE and the reason for each failing block, then `N examples, M failed`.
"""

import itertools
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

NORMALIZE = ["--canonicalize", "--cse", "--mlir-print-local-scope"]


class Block(NamedTuple):
    """A ```mlir block."""
    path: Path
    line: int  # number of its first line of IR, from 1
    text: str
    title: str  # the preceding line of text
    flag: str  # command-line flag of the described pass, or empty


class Failure(Exception):
    """A block, and the reason of its failure."""

    def __init__(self, block: Block, reason: str):
        super().__init__(reason)
        self.block = block


def find_files(root: Path) -> List[Path]:
    """The files with documentation, in a fixed order."""
    readme = root / "README.md"
    return [*([readme] if readme.exists() else []),
            *sorted((root / "docs").glob("*.md")),
            *sorted((root / "include" / "BNGrad").rglob("*.td"))]


def find_blocks(path: Path) -> Iterator[Block]:
    """The blocks of one file."""
    title = flag = ""
    fence: Optional[str] = None  # indentation of the current fence
    language, first, lines = "", 0, []
    for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), 1):
        if fence is None:
            if start := re.match(r"( *)```+ *(.*)", line):
                fence, language = start.groups()
                first, lines = number + 1, []
            elif named := re.search(r'\bPass<"([\w-]+)"', line):
                flag = f"--{named[1]}"
            elif line.strip():
                title = line.strip()
        elif re.match(f"{fence}```+ *$", line):
            if language == "mlir":
                text = textwrap.dedent("\n".join(lines)) + "\n"
                yield Block(path, first, text, title, flag)
            fence, title = None, ""
        else:
            lines.append(line)
    if fence is not None:
        raise ValueError(f"{path}:{first - 1}: the block never ends")


def run(opt: str, block: Block, flags: List[str]) -> str:
    """The output of `opt` for the block."""
    result = subprocess.run([opt, "-", "--allow-unregistered-dialect", *flags], input=block.text, text=True,
                            capture_output=True)
    if result.returncode == 0:
        return result.stdout
    # `<stdin>:LINE:COLUMN: error: ...` to the line of the document.
    message = (result.stderr.strip().splitlines() or ["no message"])[0]
    if place := re.match(r"<stdin>:(\d+):\d+: (.*)", message):
        line = block.line + int(place[1]) - 1
        raise Failure(block._replace(line=line), place[2])
    raise Failure(block, f"{' '.join([opt, *flags])}: {message}")


def normalize(opt: str, block: Block, flags: List[str]) -> List[str]:
    """The lines of the result, normalized for comparison."""
    lines = [line.strip()
             for line in run(opt, block, flags + NORMALIZE).splitlines()]
    sorted_lines = []
    for is_constant, group in itertools.groupby(
            lines, key=lambda line: " = arith.constant " in line):
        sorted_lines += sorted(group) if is_constant else group
    return sorted_lines + ["the end"]


def check(opt: str, block: Block, before: Optional[Block]) -> None:
    """Checks one block; if `before` is given, the block must be its result."""
    run(opt, block, [])
    if not before:
        return
    expected = normalize(opt, block, [])
    got = normalize(opt, before, [before.flag])
    for want, have in zip(expected, got):
        if want != have:
            raise Failure(block, f"{before.flag} gives '{have}' where this "
                          f"has '{want}'")


def main() -> int:
    root, opt = Path(sys.argv[1]), sys.argv[2]
    count = failed = 0
    for path in find_files(root):
        before = None
        for block in find_blocks(path):
            count += 1
            is_after = (block.title == "After:" and before is not None
                        and before.flag == block.flag)
            try:
                check(opt, block, before if is_after else None)
            except Failure as failure:
                failed += 1
                print(f"{path.relative_to(root)}:{failure.block.line}: "
                      f"{failure}")
            before = block if block.title == "Before:" and block.flag else None
    print(f"{count} examples, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
