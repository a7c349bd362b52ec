"""Facts about compiled kernels: what ptxas reports, and their instructions.

`read_usage` parses the report of `ptxas -v`, `read_kernels` the listing of
`nvdisasm -c`. Loops are found by backward branches; those that only wait for a barrier
are none. Accesses to *data* are those of 8 bytes or more, and all accesses of a
kernel that has none.
"""

import dataclasses
import re

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
SECTION = re.compile(r"^\s*\.text\.(\w+):")
LABEL = re.compile(r"^\s*(\.L\w+):")
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
TARGET = re.compile(r"`\((\.L\w+)\)")
REGISTER = re.compile(r"\bR(\d+)\b")
WIDTH = re.compile(r"\.(64|128)\b")
# Instructions that read and write global or shared memory, by kind.
KINDS = {"LDG": "global load", "STG": "global store", "LDS": "shared load", "STS": "shared store",
         "LDGSTS": "asynchronous copy", "UBLKCP": "bulk copy"}
WAITS = ("SYNCS", "NANOSLEEP")


@dataclasses.dataclass(frozen=True)
class Usage:
    """Resources of a kernel, as ptxas reports them; bytes are those of a block."""

    registers: int
    shared_bytes: int
    spilled_bytes: int


@dataclasses.dataclass(frozen=True)
class Instruction:
    address: int
    text: str

    @property
    def name(self):
        """The operation, with its modifiers, without a predicate."""
        words = self.text.split()
        return words[1] if words[0].startswith("@") else words[0]

    @property
    def kind(self):
        """The kind of its access to memory, or None."""
        return KINDS.get(self.name.split(".")[0])

    @property
    def bytes(self):
        """Bytes of the access of a thread."""
        width = WIDTH.search(self.name)
        return int(width[1]) // 8 if width else 4

    @property
    def registers(self):
        """Numbers of the registers that it names, first those of the result."""
        return [int(number) for number in REGISTER.findall(self.text)]

    @property
    def target(self):
        found = TARGET.search(self.text)
        return found[1] if found and self.name.startswith("BRA") else None


@dataclasses.dataclass
class Kernel:
    """The instructions of a kernel, and the ranges of addresses of its loops."""

    name: str
    instructions: list
    loops: list

    @property
    def least_data_bytes(self):
        """The least bytes of an access to data."""
        return min(8, max((i.bytes for i in self.instructions if i.kind), default=8))

    def data_bytes(self, instructions, kind):
        """Bytes of data that a thread accesses in `instructions`."""
        return sum(i.bytes for i in instructions if i.kind == kind and i.bytes >= self.least_data_bytes)

    def body(self, loop):
        first, last = loop
        return [i for i in self.instructions if first <= i.address <= last]

    def outside(self):
        """The instructions that are in no loop, up to the last exit."""
        exits = [i.address for i in self.instructions if i.name == "EXIT"]
        end = max(exits, default=self.instructions[-1].address)
        return [i for i in self.instructions if i.address <= end
                and not any(first <= i.address <= last for first, last in self.loops)]


def read_usage(report):
    """The usage of each kernel by name, from standard error of `ptxas -v`."""
    found, name, spilled = {}, None, 0
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            name, spilled = entry[1], 0
        if spills := SPILLS.search(line):
            spilled = int(spills[1]) + int(spills[2])
        if (used := USED.search(line)) and name:
            shared = SHARED.search(line)
            found[name] = Usage(int(used[1]), int(shared[1]) if shared else 0, spilled)
    return found


def read_kernels(listing):
    """The kernels of a listing by name."""
    found, labels, name = {}, {}, None
    for line in listing.splitlines():
        if section := SECTION.match(line):
            name = section[1]
            found[name], labels[name], waiting = [], {}, []
            continue
        if name is None:
            continue
        if line.startswith("//--"):
            name = None
        elif label := LABEL.match(line):
            waiting.append(label[1])
        elif instruction := INSTRUCTION.search(line):
            address = int(instruction[1], 16)
            labels[name].update(dict.fromkeys(waiting, address))
            waiting.clear()
            found[name].append(Instruction(address, instruction[2]))
    return {name: Kernel(name, instructions, _find_loops(instructions, labels[name]))
            for name, instructions in found.items() if instructions}


def _find_loops(instructions, labels):
    """The innermost loops, without those that only wait, repeat a copy for each lane,
    or follow the last instruction."""
    loops = []
    end = max((i.address for i in instructions if i.name == "EXIT"), default=instructions[-1].address)
    for instruction in instructions:
        first = labels.get(instruction.target)
        if first is None or first >= instruction.address or instruction.address > end:
            continue
        body = [i for i in instructions if first <= i.address <= instruction.address]
        waits = any(i.name.startswith(WAITS) for i in body) and not any(i.kind == "shared load" for i in body)
        if waits or any(i.kind == "bulk copy" for i in body):
            continue
        loops.append((first, instruction.address))
    return [loop for loop in loops
            if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)]


def bytes_in_flight(instructions):
    """The most bytes of global loads that a thread has under way: those that it issues
    before it uses the first of them."""
    most, pending = 0, {}
    for instruction in instructions:
        registers = instruction.registers
        for first in [first for first, width in pending.items()
                      if any(first <= used < first + width // 4 for used in registers)]:
            del pending[first]
        if instruction.kind == "global load":
            pending[registers[0]] = instruction.bytes
            most = max(most, sum(pending.values()))
    return most
