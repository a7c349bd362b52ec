#!/usr/bin/env python3
"""Checks the prose of comments and docs for two marks of bad style.

* The word `what` occurs at most once per 1000 words in every top-level folder
  with more than 500 words. The field's noun is better: `the prefetch distance`
  rather than `what is read ahead`.
* No sentence of README.md has more than 24 words.

Counted are comments of C, C++, Python, shell, CMake and PTX, docstrings, comments
and descriptions of TableGen, Markdown, and comments of lit tests. Licence
lines, code blocks, `code`, URLs, and directives of lit and FileCheck are not.

Usage: check_prose.py [--word=WORD] [--all] [SOURCE_ROOT]
       check_prose.py --self-test
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import defaultdict
from pathlib import Path

MOST_PER_1000 = 1
SMALL_FOLDER = 500
LONGEST_SENTENCE = 24
WORST_FILES = 10

# Tables of measurements, and assembly written by a compiler.
GENERATED = re.compile(r"bench/results/|.*\.sm_\d+\.ptx$")

WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
LICENCE = re.compile(r"Licensed under the Apache|See LICENSE for|SPDX-License")
# `RUN:`, `CHECK-NEXT:`, `REQUIRES:`, `expected-error @below {{`, `-----`.
DIRECTIVE = re.compile(r"\s*(?:[A-Z][A-Z0-9_-]*:|expected-[a-z-]+|-----)")
# A string or character literal, or a comment, of the C family.
C_TOKEN = re.compile(
    r'R"(?P<raw>\w*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'"
    r"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/", re.DOTALL)
TABLEGEN_TOKEN = re.compile(
    r"(?P<doc>(?:summary|description)\s*=\s*)?\[\{(?P<code>.*?)\}\]"
    r'|"(?P<string>(?:\\.|[^"\\\n])*)"|//(?P<line>[^\n]*)', re.DOTALL)
SHELL_TOKEN = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|(?:^|(?<=\s))#(?P<line>[^\n]*)""",
                         re.MULTILINE)
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)

# (number of the first line, text) of one comment or paragraph.
Text = tuple[int, str]


def blank(match: re.Match) -> str:
    """Replaces a match by its line breaks, so that lines keep their numbers."""
    return "\n" * match[0].count("\n")


def without_code(text: str) -> str:
    text = CODE_BLOCK.sub(blank, text)
    text = re.sub(r"`+[^`]*`+", blank, text)
    return re.sub(r"https?://\S+", "", text)


def find_tokens(pattern: re.Pattern, source: str, *groups: str) -> list[Text]:
    """Returns the matches of `groups` of `pattern` with their lines."""
    texts = []
    for match in pattern.finditer(source):
        for group in groups:
            if match[group] is not None:
                line = source.count("\n", 0, match.start(group)) + 1
                texts.append((line, match[group]))
    return texts


def read_c(source: str) -> list[Text]:
    return find_tokens(C_TOKEN, source, "line", "block")


def read_tablegen(source: str) -> list[Text]:
    texts = find_tokens(TABLEGEN_TOKEN, source, "line")
    for match in TABLEGEN_TOKEN.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["doc"] and match["code"] is not None:
            texts.append((line, match["code"]))
        # Descriptions of operands, options and types, but no predicates.
        string = match["string"]
        if string and " " in string and not re.search(r"\$|::|\(\)", string):
            texts.append((line, string))
    return texts


def read_python(source: str) -> list[Text]:
    texts = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            texts.append((token.start[0], token.string))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node) is not None:
                string = node.body[0].value
                texts.append((string.lineno, string.value))
    return texts


def read_shell(source: str) -> list[Text]:
    texts = find_tokens(SHELL_TOKEN, source, "line")
    return [text for text in texts if not text[1].startswith("!")]


def read_mlir(source: str) -> list[Text]:
    return [text for text in find_tokens(C_TOKEN, source, "line")
            if not DIRECTIVE.match(text[1])]


def read_lit(source: str) -> list[Text]:
    """Reads a `.test`: prose and directives up to the first `//---` or `#---`."""
    texts = []
    for number, line in enumerate(source.splitlines(), start=1):
        line = re.sub(r"^(?://|#)", "", line)
        if line.startswith("---"):
            break
        if not DIRECTIVE.match(line):
            texts.append((number, line))
    return texts


def read_markdown(source: str) -> list[Text]:
    return [(1, source)]


READERS = {
    ".c": read_c, ".cpp": read_c, ".def": read_c, ".h": read_c,
    ".ptx": read_c, ".md": read_markdown, ".mlir": read_mlir,
    ".py": read_python, ".sh": read_shell, ".cmake": read_shell,
    "CMakeLists.txt": read_shell, ".td": read_tablegen, ".test": read_lit,
}


def read_prose(path: Path) -> list[Text]:
    """Returns the lines of prose of a file with their numbers."""
    reader = READERS.get(path.name) or READERS.get(path.suffix)
    if not reader:
        return []
    lines = []
    for first, text in reader(path.read_text()):
        for number, line in enumerate(without_code(text).split("\n"), first):
            if not LICENCE.search(line):
                lines.append((number, line))
    return lines


def find_sentences(markdown: str) -> list[Text]:
    """Returns the sentences of a Markdown file; a table cell is at least one."""
    sentences = []
    text = CODE_BLOCK.sub(blank, markdown)
    # A blank line, a list item, a heading or a table cell ends a paragraph.
    boundary = r"\n\s*\n|\n(?=\s*(?:[-*+#|]|\d+\.) ?)|\|"
    start = 0
    for end in [m.start() for m in re.finditer(boundary, text)] + [len(text)]:
        position = start
        for part in re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?=[\s)])",
                             text[start:end]):
            skipped = len(part) - len(part.lstrip())
            line = text.count("\n", 0, position + skipped) + 1
            sentences.append((line, part.strip()))
            position += len(part)
        start = end
    return sentences


def check_word(root: Path, files: list[str], word: str, show_all: bool) -> bool:
    """Counts `word` by folder; returns whether each is within the limit."""
    words, found = defaultdict(int), defaultdict(dict)
    for file in files:
        if not (root / file).is_file() or GENERATED.match(file):
            continue
        folder = file.split("/")[0] if "/" in file else "."
        places = []
        for number, line in read_prose(root / file):
            here = WORD.findall(line)
            words[folder] += len(here)
            places += [(number, line.strip()) for other in here
                       if re.split("['’]", other.lower())[0] == word]
        if places:
            found[folder][file] = places

    failed = False
    print(f'{"folder":<12} {"words":>7} {word:>7} {"per 1000":>9}')
    for folder in sorted(words):
        count = sum(map(len, found[folder].values()))
        ratio = 1000 * count / max(words[folder], 1)
        bad = ratio > MOST_PER_1000 and words[folder] > SMALL_FOLDER
        failed |= bad
        print(f"{folder:<12} {words[folder]:7} {count:7} {ratio:9.2f}"
              f'{"  FAILED" if bad else ""}')
        worst = sorted(found[folder].items(), key=lambda item: -len(item[1]))
        if bad or show_all:
            for file, places in worst if show_all else worst[:WORST_FILES]:
                for number, line in places:
                    print(f"  {file}:{number}: {line}")
    total = sum(words.values())
    count = sum(len(p) for files in found.values() for p in files.values())
    print(f'{"total":<12} {total:7} {count:7} {1000 * count / max(total, 1):9.2f}')
    return not failed


def check_sentences(readme: Path) -> bool:
    """Prints the sentences of `readme` that are too long."""
    passed = True
    for number, sentence in find_sentences(readme.read_text()):
        length = len(re.findall(r"\S*\w\S*", sentence))
        if length > LONGEST_SENTENCE:
            passed = False
            print(f"{readme.name}:{number}: expected a sentence of at most "
                  f"{LONGEST_SENTENCE} words, got {length}")
    return passed


def list_files(root: Path) -> list[str]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True,
                            capture_output=True, text=True).stdout
    return [file for file in listed.split("\0") if file]


# Each has one `what` in its prose, on line 2, and one outside of it.
SAMPLES = {
    "a.cpp": 'f("what", 1\'000); // Text.\n// So what is this?\n',
    "a.h": '/* Text\n   of what, */ f(R"(what)");\n',
    "a.td": 'let a = [{ what }];\nlet description = [{ What. }]; // Text\n',
    "a.py": '"""Text\nof what."""\nf("what")  # Text.\n',
    "a.sh": '#!/bin/what\nf "# what" # so what\n',
    "CMakeLists.txt": 'message("what")\n# What.\n',
    "a.mlir": '// RUN: what\nf "what" // and what\n// CHECK: what\n',
    "a.test": 'RUN: what\nText: what.\n//--- a.mlir\nwhat\n',
    "a.md": 'Text `what` https://what.org\nof what.\n```\nwhat\n```\n',
}


def self_test() -> bool:
    """Checks samples, and that planted violations fail."""
    passed = True

    def expect(condition: bool, case: str) -> None:
        nonlocal passed
        if not condition:
            passed = False
            print(f"self-test: failed: {case}")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "lib").mkdir()
        for name, source in SAMPLES.items():
            (root / name).write_text(source)
            lines = [number for number, line in read_prose(root / name)
                     if "what" in line.lower()]
            expect(lines == [2], f"{name}: expected line 2, got {lines}")

        good = "// A comment of exactly seven words here.\n" * 150
        planted = root / "lib/planted.cpp"
        planted.write_text(good)
        expect(check_word(root, ["lib/planted.cpp"], "what", False),
               "a folder without the word")
        planted.write_text(good + "// What it takes, and what it gives.\n")
        expect(not check_word(root, ["lib/planted.cpp"], "what", False),
               "a folder with 2 in 1000 words")
        planted.write_text("// What.\n")
        expect(check_word(root, ["lib/planted.cpp"], "what", False),
               "a small folder")

        readme = root / "README.md"
        readme.write_text("One two. " * 50 + "\n\n| a | b |\n" * 50)
        expect(check_sentences(readme), "short sentences")
        readme.write_text("Short.\n\n" + "word " * 23 + "end.\n")
        expect(check_sentences(readme), "a sentence of 24 words")
        readme.write_text("Short.\n\n" + "word " * 24 + "end.\n")
        expect(not check_sentences(readme), "a long sentence")
    print(f'self-test: {"passed" if passed else "failed"}')
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, metavar="SOURCE_ROOT",
                        default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--word", default="what", help="the word to count")
    parser.add_argument("--all", action="store_true",
                        help="print every occurrence")
    parser.add_argument("--self-test", action="store_true",
                        help="check this script with planted violations")
    options = parser.parse_args()
    if options.self_test:
        return 0 if self_test() else 1
    files = list_files(options.root)
    passed = check_word(options.root, files, options.word.lower(), options.all)
    readme = options.root / "README.md"
    passed &= not readme.is_file() or check_sentences(readme)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
