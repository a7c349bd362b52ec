#!/usr/bin/env python3
"""Checks that a wheel has the files of python/wheel-files.txt, and no others.

Usage: check_wheel.py [--without=FRAMEWORKS] [--no-path=PATH]... WHEEL
       check_wheel.py --self-test

FRAMEWORKS are those whose library the wheel lacks, such as `torch,jax`. No file may contain a
PATH, of the sources or of the build. Prints a line for each file that is missing, that is not in
the list, or that contains such a path.
"""

import argparse
import fnmatch
import sys
import zipfile
from pathlib import Path
from typing import Dict, List, Sequence

SOURCES = (".py", ".pyi", ".typed")
LIST = Path(__file__).resolve().parents[1] / "python" / "wheel-files.txt"


def read_lists(text: str) -> Dict[str, List[str]]:
    """The patterns of each wheel by its name."""
    lists: Dict[str, List[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            patterns = lists.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            patterns.append(line)
    return lists


def compare(patterns: Sequence[str], files: Sequence[str], without: Sequence[str]) -> List[str]:
    """The differences, as lines. Every pattern stands for one file."""
    absent = {f"bngrad/_lib/libbngrad_{framework}.so" for framework in without}
    found = {pattern: fnmatch.filter(files, pattern) for pattern in patterns if pattern not in absent}
    known = {file for matches in found.values() for file in matches}
    return ([f"expected one {pattern}, got {len(matches)}" for pattern, matches in found.items() if len(matches) != 1]
            + [f"expected no {file}" for file in files if file not in known])


def find_paths(contents: Dict[str, bytes], paths: Sequence[str]) -> List[str]:
    """The files with one of the paths, as lines."""
    return [f"expected {file} without the path {path}" for file, content in contents.items() for path in paths
            if path.encode() in content]


def self_test() -> None:
    lists = read_lists("# text\n\n[a]\na/b.py\na/c.*.so\n[b]\nb/d.py\nbngrad/_lib/libbngrad_x.so\n")
    assert lists == {"a": ["a/b.py", "a/c.*.so"], "b": ["b/d.py", "bngrad/_lib/libbngrad_x.so"]}
    assert compare(lists["a"], ["a/b.py", "a/c.abi3.so"], []) == []
    assert compare(lists["a"], ["a/b.py"], []) == ["expected one a/c.*.so, got 0"]
    assert compare(lists["a"], ["a/b.py", "a/c.1.so", "a/c.2.so"], []) == ["expected one a/c.*.so, got 2"]
    assert compare(lists["a"], ["a/b.py", "a/c.1.so", "a/e"], []) == ["expected no a/e"]
    assert compare(lists["b"], ["b/d.py"], ["x"]) == []
    assert compare(lists["b"], ["b/d.py", "bngrad/_lib/libbngrad_x.so"], ["x"]) == [
        "expected no bngrad/_lib/libbngrad_x.so"]
    assert find_paths({"a": b"x /s/b y", "c": b""}, ["/s"]) == ["expected a without the path /s"]
    # The list has all Python files of the sources.
    lists = read_lists(LIST.read_text())
    folders = {"bngrad": LIST.parent / "bngrad", "bngrad-compiler": LIST.parent / "compiler" / "bngrad_compiler"}
    assert set(lists) == set(folders)
    for name, folder in folders.items():
        sources = {str(file.relative_to(folder.parent)) for file in folder.rglob("*") if file.suffix in SOURCES}
        assert {file for file in lists[name] if file.endswith(SOURCES)} == sources, name


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--without", default="")
    parser.add_argument("--no-path", action="append", default=[], metavar="PATH")
    parser.add_argument("wheel", nargs="?", type=Path)
    options = parser.parse_args()
    if options.self_test:
        self_test()
        print("self-test: passed")
        return 0
    name = options.wheel.name.split("-")[0].replace("_", "-")
    with zipfile.ZipFile(options.wheel) as wheel:
        files = [file for file in wheel.namelist() if not file.endswith("/")]
        errors = find_paths({file: wheel.read(file) for file in files}, options.no_path)
    errors += compare(read_lists(LIST.read_text())[name], files, options.without.split(","))
    print("\n".join(f"{options.wheel.name}: {error}" for error in errors) or f"{options.wheel.name}: {len(files)} files")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
