#!/usr/bin/env python3
"""Lists the files of the sources: those that git knows or would add. A tree without a repository of its own, such as
that of a tarball, has all of its files but hidden ones, builds and caches.

Usage: sources.py ROOT [PATTERN...]

PATTERN, such as lib/*.cpp, selects files; * also stands for folders, as in git.
"""

import fnmatch
import os
import subprocess
import sys
from pathlib import Path

HIDDEN = (".git", ".cache", "__pycache__")


def _list_by_git(root: Path) -> list[str] | None:
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.fsdecode(listed).split("\0")


def _list_by_walk(root: Path) -> list[str]:
    files = []
    for folder, folders, names in os.walk(root):
        inner = os.path.relpath(folder, root)
        folders[:] = [name for name in folders if name not in HIDDEN and not (inner == "." and name.startswith("build"))]
        files += [os.path.normpath(os.path.join(inner, name)) for name in names if not name.endswith(".pyc")]
    return files


def list_files(root: Path) -> list[str]:
    """Their paths from `root`, sorted."""
    listed = _list_by_git(root)
    if listed is None:
        listed = _list_by_walk(root)
    return sorted({file for file in listed if file and (root / file).is_file()})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for file in list_files(Path(sys.argv[1])):
        if len(sys.argv) == 2 or any(fnmatch.fnmatchcase(file, pattern) for pattern in sys.argv[2:]):
            print(file)
