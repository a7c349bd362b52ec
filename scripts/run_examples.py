#!/usr/bin/env python3
"""Runs the Python programs of Markdown documents, and compares their outputs.

Usage: run_examples.py DOCUMENT...
       run_examples.py --print DOCUMENT    prints them as one program instead

The ```python blocks of a document are run from top to bottom, in a process of their own of
the Python that runs this script, in an empty folder. Later blocks use names of earlier ones. A
```text block that follows a program, after at most one paragraph, has the last lines of its
output (scripts/documents.py). Prints DOCUMENT:LINE and the reason for each failure, then
`N programs, M failed`; a program after one that failed is not run, and counts as failed.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Dict, List

import documents

MOST_SECONDS = 600


def find_programs(document: str) -> List[documents.Block]:
    return [block for block in documents.find_blocks(document) if block.language == "python"]


def run_here(path: str, results: Path) -> None:
    """Runs the programs of a document; writes the output of each and the last error to `results`."""
    # Programs import none of this folder's modules.
    sys.path.pop(0)
    names: Dict[str, object] = {"__name__": "__main__"}
    outputs, error = [], ""
    for program in find_programs(Path(path).read_text(encoding="utf-8")):
        # Tracebacks have the lines of the document.
        source = "\n" * (program.line - 1) + program.text
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                exec(compile(source, path, "exec"), names)
            except Exception:
                error = traceback.format_exc()
        if error:
            break
        outputs.append(output.getvalue())
    results.write_text(json.dumps({"outputs": outputs, "error": error}), encoding="utf-8")


def check(path: Path) -> List[str]:
    """The failures of one document, each with its line."""
    document = path.read_text(encoding="utf-8")
    programs = find_programs(document)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        (Path(folder) / "empty").mkdir()
        command = [sys.executable, str(Path(__file__).resolve()), "--run-here", str(path.resolve()), str(results)]
        try:
            run = subprocess.run(command, cwd=Path(folder) / "empty", stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True, timeout=MOST_SECONDS)
            ended = f"the process ended with {run.returncode}:\n{run.stderr.strip()}"
        except subprocess.TimeoutExpired:
            ended = f"the programs took longer than {MOST_SECONDS} s"
        found = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {"outputs": [], "error": ended}
    failures = []
    for program, printed in zip(programs, found["outputs"]):
        stated = documents.find_output(document, program)
        differences = documents.compare_output(stated, printed) if stated else []
        if differences:
            failures.append(f"{path}:{stated.line}: the output differs\n" + "\n".join(differences))
    reasons = [found["error"].strip()] + ["not run after a failure"] * len(programs)
    return failures + [f"{path}:{program.line}: {reason}"
                       for program, reason in zip(programs[len(found["outputs"]):], reasons)]


def main(arguments: List[str]) -> int:
    if arguments[:1] == ["--run-here"]:
        run_here(arguments[1], Path(arguments[2]))
        return 0
    if arguments[:1] == ["--print"]:
        programs = find_programs(Path(arguments[1]).read_text(encoding="utf-8"))
        print("\n".join(program.text for program in programs), end="")
        return 0
    count, failures = 0, []
    for path in map(Path, arguments):
        count += len(find_programs(path.read_text(encoding="utf-8")))
        failures += check(path)
    print("\n".join(failures + [f"{count} programs, {len(failures)} failed"]))
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
