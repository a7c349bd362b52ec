"""All mutants of the sources in one build, each selected by a switch at run time.

`a < b` becomes `(bngrad_mutants::on(7) ? (a <= b) : (a < b))`; on(7) is true if
BNGRAD_MUTANT is 7, and notes in the file BNGRAD_MUTANTS_REACHED that it was
asked. Lines keep their numbers, so that a diagnostic of the compiler leads to
the mutants that it does not take.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import sites
from sites import Mutant, Site

sys.path.append(str(Path(__file__).resolve().parents[1]))
from sources import list_files  # noqa: E402

HEADER = """#ifndef BNGRAD_MUTANTS_H
#define BNGRAD_MUTANTS_H
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
namespace bngrad_mutants {
struct Switch {
  long active = 0, count = 0;
  volatile unsigned char *reached = nullptr;
  Switch() {
    if (const char *number = std::getenv("BNGRAD_MUTANT"))
      active = std::atol(number);
    const char *path = std::getenv("BNGRAD_MUTANTS_REACHED");
    int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    struct stat status;
    if (file < 0 || ::fstat(file, &status) != 0)
      return;
    void *bytes = ::mmap(nullptr, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED)
      return;
    reached = static_cast<unsigned char *>(bytes);
    count = status.st_size;
  }
};
inline bool on(long number) {
  static Switch state;
  if (number < state.count)
    state.reached[number] = 1;
  return state.active == number;
}
} // namespace bngrad_mutants
#endif
"""


FLAGS = ["-O0", "-w", "-ferror-limit=0", "-Wno-c++11-narrowing"]


class OutOfTime(Exception):
    """A build that did not end in time."""


@dataclass
class Span:
    """A range of bytes of the mutated text that belongs to one mutant."""

    start: int
    end: int
    number: int


class Writer:
    """Writes a file with its mutants, and remembers where each is."""

    def __init__(self, data: bytes, mutants: list[Mutant]) -> None:
        self.data = data
        self.out = bytearray()
        self.spans: list[Span] = []
        places: dict[tuple[int, int], list[tuple[int, Site]]] = defaultdict(list)
        for mutant in mutants:
            for site in mutant.sites:
                places[(site.start, site.end)].append((mutant.number, site))
        self.places = sorted(places.items(), key=lambda item: (item[0][0], -item[0][1]))

    def write(self) -> bytes:
        self._range(0, len(self.data), 0, len(self.places))
        return bytes(self.out)

    def _range(self, start: int, end: int, first: int, last: int) -> None:
        """Writes the original from start to end, with the places first to last inside."""
        at = start
        while first < last:
            (begin, finish), edits = self.places[first]
            inner = first + 1
            while inner < last and self.places[inner][0][0] < finish:
                inner += 1
            self.out += self.data[at:begin]
            self._place(begin, finish, edits, first + 1, inner)
            at, first = finish, inner
        self.out += self.data[at:end]

    def _place(self, start: int, end: int, edits: list[tuple[int, Site]], first: int, last: int) -> None:
        begin = len(self.out)
        forms = {site.form for _, site in edits}
        isStatement = sites.STATEMENT in forms
        declaration = next((f for f in forms if f.startswith(sites.DECLARATION)), None)
        if declaration:
            self._range(start, end, first, last)
            self.out += b"; "
        self.out += b"{ " if isStatement else b"("
        for number, site in edits:
            here = len(self.out)
            switch = f"::bngrad_mutants::on({number})"
            text = on_one_line(site.text)
            if isStatement:
                self.out += f"if ({switch}) {{ {text} }} else ".encode()
            elif sites.VALUE in forms:
                self.out += f"{switch} ? ::mlir::Value({text}) : ".encode()
            else:
                self.out += f"{switch} ? ({text}) : ".encode()
            self.spans.append(Span(here, len(self.out), number))
        if declaration:
            self.out += f"static_cast<bool>({declaration[len(sites.DECLARATION):]}))".encode()
        else:
            prefix, suffix = (b"{ ", b" } }") if isStatement else (b"(", b"))")
            if sites.VALUE in forms:
                prefix = b"::mlir::Value("
            elif sites.CONDITION in forms:
                prefix = b"static_cast<bool>("
            self.out += prefix
            self._range(start, end, first, last)
            self.out += suffix
        for number, _ in edits:
            self.spans.append(Span(begin, len(self.out), number))


def on_one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", re.sub(r"//[^\n]*", "", text))


class Schemata:
    """The mutated copy of the sources and its build."""

    def __init__(self, root: Path, work: Path, deadline: float = float("inf")) -> None:
        self.root, self.source = root, work / "source"
        self.deadline = deadline
        self.build = self.source / "build"
        self.header = work / "bngrad_mutants.h"
        self.precompiled = work / "bngrad_mutants.pch"
        self.log = work / "build.log"
        self.dropped: set[int] = set()

    def copy(self, mutated: set[str]) -> None:
        """Copies the files that git knows or would take. Equal files stay, so that little is built again."""
        names = set(list_files(self.root))
        for name in sorted(names - mutated):
            text = (self.root / name).read_bytes()
            if name.startswith("lib/") and name.endswith("CMakeLists.txt"):
                text += self._options(Path(name).parent, mutated)
            put(self.source / name, text)
            shutil.copymode(self.root / name, self.source / name)
        for path in self.source.rglob("*"):
            name = str(path.relative_to(self.source))
            if not name.startswith("build/") and path.is_file() and name not in names:
                path.unlink()
        put(self.header, (HEADER + self._includes(mutated)).encode())

    def _includes(self, mutated: set[str]) -> str:
        """Headers of IR that the sources include: parsed once, they cost a fraction of the time. Those of
        transformations and utilities declare names such as mlir::Loops, which some source uses for its own."""
        found: set[str] = set()
        include = re.compile(r'^#include "((?:mlir/Dialect/\w+/IR|mlir/IR|llvm/ADT)/\w+\.h)"', re.M)
        for name in mutated:
            found |= set(include.findall((self.root / name).read_text()))
        return "".join(f'#include "{name}"\n' for name in sorted(found))

    def _precompile(self, mutated: set[str], environment: dict[str, str]) -> None:
        """Compiles the header with the flags of a mutated source."""
        commands = json.loads((self.build / "compile_commands.json").read_text())
        sources = {str(self.source / name) for name in mutated}
        words = next(shlex.split(c["command"]) for c in commands if c["file"] in sources)
        compiler = next(i for i, word in enumerate(words) if "clang" in word)
        end = words.index("-o")
        words = words[compiler:end]
        if "-include-pch" in words:
            at = words.index("-include-pch")
            del words[at:at + 2]
        command = words + ["-x", "c++-header", str(self.header), "-o", str(self.precompiled)]
        stamp = self.header.with_suffix(".stamp")
        made_of = self.header.read_bytes() + shlex.join(command).encode()
        if self.precompiled.exists() and stamp.exists() and stamp.read_bytes() == made_of:
            return
        if self._run(command, environment) is not None:
            raise SystemExit(f"bngrad: error: the headers of the mutated sources do not compile (see {self.log})")
        stamp.write_bytes(made_of)

    def _options(self, folder: Path, mutated: set[str]) -> bytes:
        """The flags of mutated sources: compiled fast, with all errors and no warnings."""
        files = " ".join(sorted(Path(f).name for f in mutated if Path(f).parent == folder))
        if not files:
            return b""
        options = ";".join(FLAGS + ["-include-pch", str(self.precompiled)])
        return f'\nset_source_files_properties({files} PROPERTIES COMPILE_OPTIONS "{options}")\n'.encode()

    def write(self, files: dict[str, list[Mutant]]) -> dict[str, Writer]:
        writers = {}
        for file, mutants in files.items():
            kept = [m for m in mutants if m.number not in self.dropped]
            writers[file] = Writer((self.root / file).read_bytes(), kept)
            put(self.source / file, writers[file].write())
        return writers

    def make(self, files: dict[str, list[Mutant]], configure: list[str], environment: dict[str, str]) -> None:
        """Builds, dropping mutants that do not compile; raises OutOfTime at the deadline."""
        self.copy(set(files))
        self.write(files)
        if not (self.build / "build.ninja").exists():
            self._run(configure + ["-S", str(self.source), "-B", str(self.build)], environment)
        self._precompile(set(files), environment)
        for attempt in range(20):
            writers = self.write(files)
            output = self._run(["cmake", "--build", str(self.build), "--target", "all", "check-bngrad-depends",
                                "--", "-k", "0"], environment)
            if output is None:
                return
            radius = attempt
            while not self._drop(output, writers, radius) and radius < 100_000:
                radius = 3 * radius + 1
            if radius >= 100_000:
                break
        raise SystemExit(f"bngrad: error: the mutated sources do not build (see {self.log})")

    def _run(self, command: list[str], environment: dict[str, str]) -> str | None:
        """None if the command succeeded, else its output."""
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", start_new_session=True)
        left = None if self.deadline == float("inf") else max(self.deadline - time.monotonic(), 0)
        try:
            output = process.communicate(timeout=left)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise OutOfTime from None
        self.log.write_text(output)
        if process.returncode == 0:
            return None
        if "-S" in command:
            raise SystemExit(f"bngrad: error: configuring the mutated sources failed (see {self.log})")
        return output

    def _drop(self, output: str, writers: dict[str, Writer], radius: int) -> bool:
        """Drops the mutants at the places of the errors; if there is none, more around them with every attempt."""
        before = len(self.dropped)
        pattern = re.compile(r"^(\S+?):(\d+):(\d+): (error|fatal error|note): ", re.M)
        open_error: tuple[str, int] | None = None
        for match in pattern.finditer(output):
            path = os.path.normpath(os.path.join(self.build, match.group(1)))
            file = os.path.relpath(path, self.source)
            line, column = int(match.group(2)), int(match.group(3))
            isNote = match.group(4) == "note"
            if isNote and not open_error:
                continue
            if not isNote and open_error:
                self._drop_around(writers[open_error[0]], open_error[1], radius)
            if not isNote:
                open_error = None
            if file not in writers:
                # In a header: the notes that follow lead here.
                continue
            if self._drop_at(writers[file], line, column):
                open_error = None
            elif not isNote:
                open_error = (file, line)
        if open_error:
            self._drop_around(writers[open_error[0]], open_error[1], radius)
        if len(self.dropped) == before:
            self._drop_in_headers(output, writers)
        return len(self.dropped) > before

    def _drop_in_headers(self, output: str, writers: dict[str, Writer]) -> None:
        """An error in a template of a header: its notes tell where it was asked for."""
        for match in re.finditer(r"^(\S+?):(\d+):(\d+): note: ", output, re.M):
            file = os.path.relpath(os.path.normpath(os.path.join(self.build, match.group(1))), self.source)
            if file in writers and not self._drop_at(writers[file], int(match.group(2)), int(match.group(3))):
                self._drop_around(writers[file], int(match.group(2)), 0)

    def _drop_at(self, writer: Writer, line: int, column: int) -> bool:
        lines = bytes(writer.out).split(b"\n")
        offset = sum(len(text) + 1 for text in lines[:line - 1]) + column - 1
        around = [span for span in writer.spans if span.start <= offset < span.end]
        if not around:
            return False
        least = min(span.end - span.start for span in around)
        self.dropped |= {span.number for span in around if span.end - span.start == least}
        return True

    def _drop_around(self, writer: Writer, line: int, radius: int) -> None:
        lines = bytes(writer.out).split(b"\n")
        start = sum(len(text) + 1 for text in lines[:max(line - 1 - radius, 0)])
        end = sum(len(text) + 1 for text in lines[:line + radius])
        self.dropped |= {span.number for span in writer.spans if span.start < end and span.end > start}


def put(path: Path, data: bytes) -> None:
    """Writes a file unless it has this text already."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
