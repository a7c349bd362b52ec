"""Runs the programs of docs/upstream.md.

Usage: upstream.py DOCUMENT

A program is an ```mlir block (```mlir invalid if it does not parse), followed by a ```console block of commands that
read it. The line after a command must be part of its output; `Segmentation
fault` means any crash. A command without such a line must succeed. Both
pipelines must compile a program, unless one of its commands is a pipeline.
Prints LINE and the reason for each difference, then `N faults, M commands, K
failed`.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

CRASH = "Segmentation fault"
PIPELINES = ["bngrad-opt --bngrad-cpu-pipeline",
             "bngrad-opt --bngrad-cuda-pipeline"]


class Command(NamedTuple):
    text: str
    expected: str  # part of the output; empty: success


class Program(NamedTuple):
    line: int  # first line of its block, from 1
    text: str
    commands: List[Command]


def find_commands(console: str) -> Iterator[Command]:
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$).+)?)",
                                        console, re.M):
        yield Command(command, expected)


def find_programs(document: str) -> Iterator[Program]:
    pattern = r"^```mlir[^\n]*\n(.*?)^```$\s*(?:^```console\n(.*?)^```$)?"
    for match in re.finditer(pattern, document, re.M | re.S):
        line = document.count("\n", 0, match.start()) + 1
        commands = list(find_commands(match[2] or ""))
        if not any(command.text in PIPELINES for command in commands):
            commands += [Command(pipeline, "") for pipeline in PIPELINES]
        yield Program(line, match[1], commands)


def run(command: str, text: str) -> Tuple[int, str]:
    """The exit status of the last command of a pipe, or of one that fails,
    negative after a crash, and all its output."""
    for part in command.split(" | "):
        tool, *flags = shlex.split(part)
        result = subprocess.run([tool, "-", *flags], input=text, text=True,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=120)
        if result.returncode:
            break
        text = result.stdout
    return result.returncode, result.stdout


def check(command: Command, code: int, output: str) -> bool:
    if command.expected == CRASH:
        # A sanitizer ends the process with 1, and so does a request for as much memory as the garbage says that is read.
        return code < 0 or "Sanitizer" in output or "out of memory" in output
    if not command.expected:
        return code == 0
    is_ours = command.text.startswith("bngrad-")
    return (code >= 0 and command.expected in output
            and (not is_ours or output.count("error: ") <= 1))


def main() -> int:
    document = Path(sys.argv[1])
    count = commands = failed = 0
    for program in find_programs(document.read_text(encoding="utf-8")):
        count += 1
        for command in program.commands:
            commands += 1
            code, output = run(command.text, program.text)
            if not check(command, code, output):
                failed += 1
                print(f"{program.line}: {command.text}: expected "
                      f"{command.expected or 'success'!r}, got status {code}: "
                      f"{output.strip()[:400]}")
    print(f"{count} faults, {commands} commands, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
