"""Checks the links and paths in the Markdown files.

Usage: links.py SOURCE_ROOT

* Each relative link names a file or folder, and its #anchor a heading of that file.
* Each path in `code` that begins with a folder of the repository exists, where {a,b}, *
  and <name> stand for several.
Files of folders named build* or with a leading dot are left out.
Prints FILE:LINE and the reason for each violation, then `N links, M paths, K errors`.
"""

import itertools
import os
import re
import sys
from pathlib import Path
from typing import Iterator, List, Set

# Written by scripts on sources that have moved since.
GENERATED = {Path("docs/mutation.md")}
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"(`+)(.*?)\1", re.S)
LINK = re.compile(r"\]\(<?([^()\s>]+(?:\([^()\s]*\))?)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.M)


def find_documents(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")))
        for name in sorted(files):
            if name.endswith(".md"):
                yield (Path(folder) / name).relative_to(root)


def blank(match: re.Match) -> str:
    """Replaces a match by its line breaks, so that lines keep their numbers."""
    return "\n" * match[0].count("\n")


def find_anchors(path: Path) -> Set[str]:
    """The anchors that GitHub gives the headings of a file."""
    anchors: Set[str] = set()
    for match in HEADING.finditer(FENCE.sub(blank, path.read_text(encoding="utf-8"))):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match[1]).lower()
        slug = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        names = itertools.chain([slug], (f"{slug}-{i}" for i in itertools.count(1)))
        anchors.add(next(name for name in names if name not in anchors))
    return anchors


def check_link(root: Path, document: Path, target: str) -> str:
    """The reason why a link is broken; empty: it is not."""
    name, _, anchor = target.partition("#")
    path = root / document if not name else root / document.parent / name
    if not path.exists():
        return f"expected a file or folder, got {name}"
    if root.resolve() not in [path.resolve(), *path.resolve().parents]:
        return f"expected a path in the repository, got {name}"
    if anchor and (path.suffix != ".md" or anchor not in find_anchors(path)):
        return f"expected a heading of {path.name}, got #{anchor}"
    return ""


def expand(path: str) -> List[str]:
    """The patterns of a path with {a,b} and <name>."""
    path = re.sub(r"<\w+>", "*", path)
    if not (match := re.search(r"\{([^{}]*)\}", path)):
        return [path]
    return [pattern for part in match[1].split(",")
            for pattern in expand(path[:match.start()] + part + path[match.end():])]


def main() -> int:
    root = Path(sys.argv[1])
    folders = "|".join(sorted(re.escape(path.name) for path in root.iterdir()
                              if path.is_dir() and not path.name.startswith((".", "build"))))
    path_pattern = re.compile(rf"(?:{folders})/[\w./{{}},*<>+-]*")
    links = paths = errors = 0
    for document in find_documents(root):
        text = FENCE.sub(blank, (root / document).read_text(encoding="utf-8"))
        reports = []
        for match in LINK.finditer(CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)):
            if re.match(r"[a-z]+:", match[1]):
                continue
            links += 1
            reports.append((match.start(), check_link(root, document, match[1])))
        for match in CODE.finditer(text):
            if document in GENERATED or not path_pattern.fullmatch(match[2]):
                continue
            paths += 1
            missing = [pattern for pattern in expand(match[2]) if not any(root.glob(pattern.rstrip("/")))]
            reports.append((match.start(), f"expected a path, got {', '.join(missing)}" if missing else ""))
        for position, report in sorted(reports):
            if report:
                errors += 1
                print(f"{document}:{text.count(chr(10), 0, position) + 1}: {report}")
    print(f"{links} links, {paths} paths, {errors} errors")
    return 1 if errors or not links else 0


if __name__ == "__main__":
    sys.exit(main())
