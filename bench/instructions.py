"""Instructions per element of the hot loops, by schedule, type and instruction set.

    python3 bench/instructions.py [--case=REGEX] [--isa=REGEX] [--mca] [--output=FILE.md] [--tools=FOLDER]
                                  [--limits=FILE [--write]]

Nothing is run: each gradient or forward pass is compiled for each instruction set, and the instructions of the loops that
read grad_output, or the input of a forward pass, are counted in the assembly. A loop is named by what it computes: `sums`
(of a forward pass: `mean`, and `squares` about it) or `elements`. Of several loops that compute the same, such as with
streaming stores and without, the one with the most instructions is shown of those that read the most elements per trip.

--mca adds the cycles that llvm-mca calculates, without caches, for the CPU of each instruction set. --limits compares the
counts with those of a file, of which each may be exceeded by a tenth; --write writes that file. Needs bngrad-compile in
build/bin, and the opt, llc and llvm-mca of LLVM 22.
"""

import argparse
import collections
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

import instruction_sets

ROOT = pathlib.Path(__file__).resolve().parent.parent
LLVM = pathlib.Path("/usr/lib/llvm-22/bin")
# Counts that grow by less are no failure: LLVM's releases differ.
SLACK = 0.1


# Those of x86-64 from the oldest on, then those of other architectures.
ISAS = sorted(reversed(instruction_sets.ALL), key=lambda isa: isa.triple)


def list_options(isa, dashes):
    """Options of bngrad-compile and of LLVM's tools."""
    options = [f"{dashes}mcpu={isa.cpu}"]
    if isa.attributes:
        options.append(f"{dashes}mattr={isa.attributes}")
    if isa.triple:
        options.append(f"{dashes}mtriple={isa.triple}")
    return options


# The loops over data of each layout: sizes, channels, feature dim.
LAYOUTS = {
    "channels": ("16x128x28x28", "128", 1),
    "channels ?": ("?x?x?x?", "?", 1),
    "channels, short": ("16x256x7x7", "256", 1),
    "tiles": ("64x256x7x7", "256", 1),
    "rows": ("3136x256", "256", 1),
    "rows, wide": ("784x960", "960", 1),
    "rows, narrow": ("12544x64", "64", 1),
    "rows ?": ("?x?", "?", 1),
    "split": ("32x3x224x224", "3", 1),
}
TYPES = ("f16", "bf16", "f32", "f64")
# Of gradients, and the forward passes.
ROLES = ("", "mask", "frozen")
FORWARD = ("training", "inference")
HEADER = """# Instructions per element

Of the hot loops, by `bench/instructions.py`, which counts them in the assembly of LLVM 22. In parentheses, with `--mca`:
cycles per element that llvm-mca calculates for Nehalem, Zen 3, Skylake-X, Zen 4 and Neoverse N1, without caches. Nothing
was run. A `?` has dynamic sizes. Rows are gradients, of which `mask` has the mask of a ReLU and `frozen` has global
statistics, or they name a forward pass. Rows with a mean of their own (`mean`, then `squares`) read a block twice.

CPUs of v2 and NEON have registers of 128 bits, those of v3 twice and those of v4 four times as long, so that counts of the
same loop differ by as much. v2 has no instruction that converts f16, which is done on the bits. Where no instruction rounds
to bf16, elements include the block that rounds NaN, of which a quarter of the instructions are seldom executed.

"""
FOOTER = """
## Over twice the best of their class

A class has the same loop, role, type and instruction set.

* `rows` has more columns than registers. Its sums are in memory, and each element loads and stores those of its column.
* `channels ?` has a loop that loads the coefficients of each element, for rows that turn out to be short.

"""


@dataclasses.dataclass(frozen=True)
class Case:
    layout: str
    type: str
    role: str = ""

    @property
    def name(self):
        return ", ".join(filter(None, (self.layout, self.role, self.type)))

    def text(self):
        """MLIR of the batch norm, whose first argument is counted; the first result has its shape."""
        return self.forward_text() if self.role in FORWARD else self.gradient_text()

    def forward_text(self):
        sizes, channels, feature = LAYOUTS[self.layout]
        data, vector = f"tensor<{sizes}x{self.type}>", f"tensor<{channels}x{'f64' if self.type == 'f64' else 'f32'}>"
        attributes = f"feature_dims = array<i64: {feature}>, epsilon = 1.0e-5 : f64"
        if self.role == "inference":
            return f"""
func.func @batch_norm(%x: {data}, %s: {vector}, %o: {vector}, %m: {vector}, %v: {vector}) -> {data} {{
  %0 = bngrad.batch_norm_inference input(%x : {data}) scale(%s : {vector}) offset(%o : {vector})
      mean(%m : {vector}) variance(%v : {vector}) {{{attributes}}} : {data}
  return %0 : {data}
}}
"""
        return f"""
func.func @batch_norm(%x: {data}, %s: {vector}, %o: {vector}) -> ({data}, {vector}, {vector}) {{
  %0:4 = bngrad.batch_norm_training input(%x : {data}) scale(%s : {vector}) offset(%o : {vector}) {{{attributes}}}
      : {data}, {vector}, {vector}, {vector}
  return %0#0, %0#1, %0#3 : {data}, {vector}, {vector}
}}
"""

    def gradient_text(self):
        sizes, channels, feature = LAYOUTS[self.layout]
        data, vector = f"tensor<{sizes}x{self.type}>", f"tensor<{channels}x{'f64' if self.type == 'f64' else 'f32'}>"
        mask = f"tensor<{sizes}xi1>"
        has_mask = self.role == "mask"
        attributes = f"feature_dims = array<i64: {feature}>, epsilon = 1.0e-5 : f64"
        if self.role == "frozen":
            attributes += ", statistics = #bngrad.statistics<global>"
        return f"""
func.func @batch_norm(%dy: {data}, %x: {data}, %s: {vector}, %m: {vector}, %v: {vector}{f", %k: {mask}" * has_mask})
    -> ({data}, {vector}, {vector}) {{
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : {data}) input(%x : {data}) scale(%s : {vector})
      mean(%m : {vector}) variance(%v : {vector}) {f"mask(%k : {mask})" * has_mask} {{{attributes}}}
      : {data}, {vector}, {vector}
  return %0#0, %0#1, %0#2 : {data}, {vector}, {vector}
}}
"""


CASES = tuple(Case(layout, type) for layout in LAYOUTS for type in TYPES) + tuple(
    Case(layout, type, role) for role in ROLES[1:] for layout in ("channels", "rows") for type in ("bf16", "f32")) + tuple(
    Case(layout, type, "training") for layout in LAYOUTS for type in ("bf16", "f32")) + tuple(
    Case(layout, type, "inference") for layout in ("channels", "rows") for type in ("bf16", "f32"))


# LLVM IR ---------------------------------------------------------------------

POINTER = r"ptr (?:align \d+ )?(%[\w.]+)"
ACCESS = re.compile(rf"(?:load|store) (?:volatile )?(?:<(\d+) x )?(\w+)>?.*?, {POINTER}")
MASKED = re.compile(rf"@llvm\.masked\.(?:load|store)\.v(\d+)(\w+)\..*?{POINTER}")
BYTES = {"i8": 1, "i16": 2, "half": 2, "f16": 2, "bfloat": 2, "bf16": 2, "i32": 4, "float": 4, "f32": 4, "i64": 8,
         "double": 8, "f64": 8}


class Function:
    """A function of LLVM IR whose values and blocks have names."""

    def __init__(self, lines):
        self.arguments = re.findall(r"(%[\w.]+)[,)]", lines[0])
        # The slots of arguments that a caller has set.
        self.slots = {}
        self.definitions, self.blocks = {}, {}
        # The first block may have no name.
        block = self.blocks.setdefault("", []) if not re.match(r"[\w.]+:", lines[1]) else None
        for line in lines[1:]:
            label = re.match(r"([\w.]+):", line)
            if label:
                block = self.blocks.setdefault(label[1], [])
                continue
            block.append(line)
            definition = re.match(r"\s+(%[\w.]+) = (.*)", line)
            if definition:
                self.definitions[definition[1]] = definition[2]
        # Labels stand in terminators alone; a switch has several lines.
        self.successors = {name: re.findall(r"label %([\w.]+)", " ".join(body)) for name, body in self.blocks.items()}

    def root(self, pointer):
        """The values that `pointer` is loaded through, and the offset of each: the way from an argument."""
        offsets, seen = [0], set()
        while pointer in self.definitions and pointer not in seen:
            seen.add(pointer)
            text = self.definitions[pointer]
            bases = re.findall(POINTER, text)
            if text.startswith("getelementptr"):
                constant = re.search(r"i8, ptr %[\w.]+, i64 (\d+)$", text)
                offsets[-1] += int(constant[1]) if constant else 0
                pointer = bases[0]
            elif text.startswith("load ptr"):
                offsets.append(0)
                pointer = bases[0]
            elif text.startswith(("phi ptr", "select")):
                kinds = ("getelementptr", "load ptr", "phi ptr", "select")
                incoming = [name for name in re.findall(r"%[\w.]+", text)
                            if name not in seen and self.definitions.get(name, "").startswith(kinds)]
                if not incoming:
                    break
                pointer = incoming[0]
            else:
                break
        return pointer, offsets

    def slot(self, pointer):
        """The number of the argument whose data `pointer` belongs to; None for other memory.

        The packed entry has an array of pointers to descriptors, whose second field is the address of the data.
        """
        root, offsets = self.root(pointer)
        if len(offsets) == 1:
            return self.slots.get(root)
        if root != self.arguments[0] or len(offsets) != 3:
            return None
        return offsets[2] // 8

    def find_body(self, functions):
        """The function with the loops: this one, or one that it calls with the pointers of the data."""
        for body in self.blocks.values():
            for line in body:
                call = re.search(r"call \w+ @([\w.]+)\((.*)\)", line)
                if call and call[1] in functions and "ptr" in call[2]:
                    callee = functions[call[1]]
                    pointers = [re.search(r"%[\w.]+$", value) for value in call[2].split(", ")]
                    callee.slots = {argument: self.slot(pointer[0]) for argument, pointer in zip(callee.arguments, pointers)
                                    if pointer and self.slot(pointer[0]) is not None}
                    return callee
        return self

    def loops(self):
        """The blocks of each innermost loop by its header."""
        back, state, stack = [], {}, []
        first = next(iter(self.blocks))
        stack.append((first, iter(self.successors[first])))
        state[first] = "open"
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[name] = "done"
                stack.pop()
            elif state.get(following) == "open":
                back.append((name, following))
            elif following not in state:
                state[following] = "open"
                stack.append((following, iter(self.successors[following])))
        predecessors = collections.defaultdict(list)
        for name, names in self.successors.items():
            for following in names:
                predecessors[following].append(name)
        bodies = collections.defaultdict(set)
        for latch, header in back:
            body, work = bodies[header], [latch]
            body.add(header)
            while work:
                name = work.pop()
                if name not in body:
                    body.add(name)
                    work.extend(predecessors[name])
        return {header: body for header, body in bodies.items()
                if not any(other != header and other in body for other in bodies)}

    def measure(self, body):
        """The bytes of the first argument that a trip of a loop reads, and whether it writes a result."""
        read, writes = 0, False
        for name in body:
            for line in self.blocks[name]:
                access = MASKED.search(line) or ACCESS.search(line)
                if not access or access[2] not in BYTES:
                    continue
                slot = self.slot(access[3])
                if slot == 0 and ("load" in line.split("(")[0]):
                    read += int(access[1] or 1) * BYTES[access[2]]
                writes |= slot is not None and "store" in line.split("(")[0]
        return read, writes


def parse_functions(text):
    """The functions of a module by name."""
    functions, lines = {}, None
    for line in text.splitlines():
        if line.startswith("define"):
            lines = [line]
        elif line == "}" and lines:
            functions[re.search(r"@([\w.]+)\(", lines[0])[1]] = Function(lines)
            lines = None
        elif lines and line.strip():
            lines.append(line)
    return functions


# Assembly --------------------------------------------------------------------


def parse_blocks(text):
    """The blocks of an assembly file: label, comments after it, instructions."""
    blocks = []
    for line in text.splitlines():
        label = re.match(r"\.LBB(\d+_\d+):|(?:#|//) %bb\.\d+:", line)
        if label:
            blocks.append((label[1], [line], []))
        elif blocks and re.match(r"\s+(?:#|//) ", line):
            if not blocks[-1][2]:
                blocks[-1][1].append(line)
        elif blocks and re.match(r"\t[a-z]", line):
            blocks[-1][2].append(re.split(r"\s+(?:#|//) ", line)[0])
    return blocks


def parse_loops(text):
    """The innermost loops of an assembly file: the names of their blocks in LLVM IR, and their instructions."""
    blocks, loops = parse_blocks(text), {}
    for label, comments, _ in blocks:
        if label and "This Inner Loop Header" in " ".join(comments):
            loops[label] = (set(), [])
    # A block of a loop may stand before its header.
    for label, comments, instructions in blocks:
        inside = re.search(r"in Loop: Header=BB(\d+_\d+)", " ".join(comments))
        names, lines = loops.get(inside[1] if inside else label, (set(), []))
        name = re.search(r"(?:#|//) %([\w.]+)$", comments[0])
        if name:
            names.add(name[1])
        lines.extend(instructions)
    return list(loops.values())


# Counts ----------------------------------------------------------------------


@dataclasses.dataclass
class Count:
    """A hot loop: its instructions per element, and cycles by llvm-mca or None."""

    case: str
    loop: str
    isa: str
    instructions: float
    cycles: float = None


def run(command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"instructions.py: error: {' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def calculate_cycles(isa, instructions):
    """Cycles of a trip."""
    trips = 100
    triple = isa.triple or "x86_64-linux-gnu"
    text = run([LLVM / "llvm-mca", f"-mtriple={triple}", f"-mcpu={isa.model}", f"-iterations={trips}"],
               input="\n".join(instructions) + "\n")
    return int(re.search(r"Total Cycles:\s+(\d+)", text)[1]) / trips


def name_loop(case, function, body, writes):
    """What a loop computes."""
    if writes:
        return "elements"
    if case.role != "training":
        return "sums"
    lines = [line for name in body for line in function.blocks[name]]
    return "squares" if any(re.search(r"\bfmul\b|@llvm\.fma|@llvm\.fmuladd", line) for line in lines) else "mean"


def count(case, isa, tools, with_cycles):
    """The hot loops of a batch norm."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "gradient")
        source, ir, named, assembly = map(path.with_suffix, (".mlir", ".ll", ".named.ll", ".s"))
        source.write_text(case.text())
        run([tools / "bngrad-compile", source, "--packed", "--threads=1", *list_options(isa, "--"), "-o", ir])
        run([LLVM / "opt", "-S", "-passes=instnamer", ir, "-o", named])
        run([LLVM / "llc", "-O3", *list_options(isa, "-"), named, "-o", assembly])
        functions, loops = parse_functions(named.read_text()), parse_loops(assembly.read_text())
    function = functions["batch_norm_packed"].find_body(functions)
    found = {}
    for body in function.loops().values():
        read, writes = function.measure(body)
        elements = read / BYTES[case.type]
        instructions = [line for names, lines in loops if names & body for line in lines]
        if elements == 0 or not instructions:
            continue
        found.setdefault(name_loop(case, function, body, writes), []).append((elements, instructions))
    counts = []
    for loop, candidates in sorted(found.items()):
        most = max(elements for elements, _ in candidates)
        elements, instructions = max(((elements, lines) for elements, lines in candidates if elements == most),
                                     key=lambda candidate: len(candidate[1]))
        cycles = calculate_cycles(isa, instructions) / elements if with_cycles else None
        counts.append(Count(case.name, loop, isa.title, len(instructions) / elements, cycles))
    if not counts:
        sys.exit(f"instructions.py: error: {case.name}, {isa.title}: expected a loop that reads the first argument, got none")
    return counts


def make_table(counts):
    """A row for each loop, a column for each instruction set."""
    names = list(dict.fromkeys(count.isa for count in counts))
    rows = collections.defaultdict(dict)
    for each in counts:
        rows[each.case, each.loop][each.isa] = each
    lines = ["| batch norm | loop | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
    for (case, loop), row in rows.items():
        cells = []
        for name in names:
            each = row.get(name)
            cell = f"{each.instructions:.2f}" if each else "-"
            if each and each.cycles is not None:
                cell += f" ({each.cycles:.2f})"
            cells.append(cell)
        lines.append(f"| {case} | {loop} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def list_outliers(counts):
    """Loops with over twice the instructions of the best of their class: the same loop, role, type and instruction set."""
    best = {}

    def get_class(each):
        return each.loop, *(part for part in each.case.split(", ") if part in TYPES + ROLES + FORWARD), each.isa

    for each in counts:
        best[get_class(each)] = min(best.get(get_class(each), each.instructions), each.instructions)
    return [f"* {each.case}: {each.loop} on {each.isa}: {each.instructions:.2f}, the best of its class "
            f"{best[get_class(each)]:.2f}" for each in counts if each.instructions > 2 * best[get_class(each)]]


def read_limits(path):
    """Counts by batch norm, loop and instruction set: lines of these and a number, separated by `|`."""
    limits = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            *key, value = map(str.strip, line.split("|"))
            limits[tuple(key)] = float(value)
    return limits


def check(counts, limits):
    """The counts that exceed their limits, as lines."""
    lines = []
    for each in counts:
        limit = limits.get((each.case, each.loop, each.isa))
        if limit is None or each.instructions > limit * (1 + SLACK):
            expected = "a limit" if limit is None else f"at most {limit * (1 + SLACK):.2f} instructions per element"
            lines.append(f"{each.case}: {each.loop} on {each.isa}: expected {expected}, got {each.instructions:.2f}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", default="", help="batch norms to count, by name (default: all)")
    parser.add_argument("--isa", default="", help="instruction sets (default: all)")
    parser.add_argument("--mca", action="store_true", help="add cycles by llvm-mca, in parentheses")
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build" / "bin", help="with bngrad-compile")
    parser.add_argument("--output", type=pathlib.Path, help="where the table goes (default: standard output)")
    parser.add_argument("--limits", type=pathlib.Path, help="counts that may not be exceeded by a tenth")
    parser.add_argument("--write", action="store_true", help="write --limits")
    options = parser.parse_args()
    counts = [each for case in CASES if re.search(options.case, case.name)
              for isa in ISAS if re.search(options.isa, isa.title)
              for each in count(case, isa, options.tools, options.mca)]
    if options.limits and options.write:
        lines = [f"{each.case} | {each.loop} | {each.isa} | {each.instructions:.2f}\n" for each in counts]
        header = "# Instructions per element, by bench/instructions.py --limits=FILE --write.\n"
        options.limits.write_text(header + "".join(lines), encoding="utf-8")
    elif options.limits:
        wrong = check(counts, read_limits(options.limits))
        print("\n".join(wrong) or f"instructions: {len(counts)} loops, 0 over their limits")
        return 1 if wrong else 0
    outliers = list_outliers(counts)
    text = HEADER + make_table(counts) + FOOTER + "\n".join(outliers or ["None."]) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
