"""model.py --tools=BIN --nvdisasm=PATH [--device=H200] [--shapes=REGEX]
[--output=FILE.md] [--ptxas=PATH] [--assert]: the time of each benchmark shape on a GPU, by
calculation.

No GPU is needed. The kernels are compiled by bngrad-compile and ptxas. Registers and
shared memory are those that ptxas reports, instructions those that nvdisasm lists,
and launches those of the IR. The numbers of devices.py and the constants below are
from data sheets and microbenchmarks that others have published; nothing here is
measured. docs/gpu-performance.md explains the formulas.
"""

import argparse
import dataclasses
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import items
import sass
from cases import GPU_LARGE_BYTES
from devices import DEVICES, count_slots, with_layouts


# The share of the data sheet's bandwidth that a copy reaches: about 3.0 of 3.35 TB/s on an H100, and 4.3 of 4.8 on an H200.
REACHED = 0.896
# Of a load from memory, in microseconds; Little's law asks for this much in flight.
LATENCY = 0.8
# Instructions that a scheduler issues in a cycle, at most, and cycles between two of a
# warp.
ISSUE_RATE, STALL = 0.8, 5
# From the start of a block to its first load, and until this is back.
START = 0.7
RAMP = START + LATENCY
# Between two kernels of a graph; until blocks that wait for the kernel ahead of them see
# what it has stored.
GAP, FLUSH = 1.0, 0.3
# A barrier of a cluster, with the fences around it, and loads from other blocks after it.
CLUSTER_BARRIER = 0.5
# The share of the second-level cache that keeps data from one pass to the next.
L2_KEPT = 0.6
# The limits are this much larger in layouts of the multiprocessors other than the first, where some clusters run after
# all others with any schedule (docs/gpu-performance.md).
OTHER_LAYOUT = 1.2
# Issue slots of instructions that not all lanes of a scheduler execute in a cycle, on sm_80, sm_90 and sm_100: in f64,
# half of them, and conversions from and to f64, an eighth.
SLOTS = {"DADD": 2, "DMUL": 2, "DFMA": 2, "F2F": 8, "I2F": 8}
# The driver's share of a block's shared memory, and units of allocation.
RESERVED_SHARED, REGISTER_UNIT = 1 << 10, 256


@dataclasses.dataclass(frozen=True)
class Launch:
    """A launch of the IR, for aligned data."""

    kernel: str
    blocks: int
    threads: int
    cluster: int
    shared_bytes: int


@dataclasses.dataclass(frozen=True)
class Traffic:
    """Bytes of data that a kernel moves: from and to memory, and from the
    second-level cache."""

    read: float
    written: float
    cached: float = 0.0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """The time of a kernel in microseconds, and what it follows from. `bound` is the
    resource that binds."""

    launch: Launch
    registers: int
    blocks_per_multiprocessor: int
    waves: float
    kib_in_flight: float
    kib_needed: float
    instructions_per_element: float
    microseconds: float
    bound: str


def count_blocks(device, launch, usage):
    """Blocks that a multiprocessor holds at once."""
    warps = math.ceil(launch.threads / 32)
    of_warp = math.ceil(usage.registers * 32 / REGISTER_UNIT) * REGISTER_UNIT
    shared = launch.shared_bytes + usage.shared_bytes + RESERVED_SHARED
    return min(device.threads // (warps * 32), device.registers // (of_warp * warps),
               device.shared_bytes // shared, device.blocks)


def split_passes(kernel):
    """The addresses of the last two barriers before the first store of data, 0 for those
    that there are not. The pass that stores data begins after the second. Between the two,
    one pass computes the per-channel values in the first warp of a block."""
    barriers = [0, 0]
    # Sums in f64 have the size of data.
    for instruction in kernel.instructions if not kernel.name.startswith("reduce") else []:
        if kernel.data_bytes([instruction], "global store"):
            return tuple(barriers[-2:])
        if instruction.name.startswith(("BAR", "UCGABAR_WAIT")):
            barriers.append(instruction.address)
    return 0, 0


def count_issue_slots(instructions):
    """The issue slots of `instructions`."""
    return sum(SLOTS.get(i.name.split(".")[0], 1) if "64" in i.name or i.name.startswith("D") else 1
               for i in instructions)


def loaded_bytes(kernel, instructions):
    """Bytes of data that a thread reads in `instructions`: from shared memory, if they do."""
    return kernel.data_bytes(instructions, "shared load") or kernel.data_bytes(instructions, "global load")


def count_instructions(kernel, bytes_of_thread):
    """Issue slots of a thread that reads `bytes_of_thread` of data in each of its passes,
    from memory or from shared memory: before the per-channel values, for them, and from the
    second pass on. A pass that is not a loop of the kernel is part of the instructions
    outside of loops, and so is the part of one that comes before its loop. Of two loops of a
    pass, the first is unrolled, and has all of the rest."""
    channels, second = split_passes(kernel)
    passes, parts = set(), [[], [], []]
    for instruction in kernel.outside():
        parts[(instruction.address >= channels) + (instruction.address >= second)].append(instruction)
    total = [count_issue_slots(part) for part in parts]
    for loop in kernel.loops:
        body, number = kernel.body(loop), 2 * int(loop[0] >= second)
        loaded = loaded_bytes(kernel, body)
        if not loaded or number in passes:
            continue
        passes.add(number)
        before = [i for i in parts[number] if i.address < loop[0]]
        total[number] += count_issue_slots(body) * max(bytes_of_thread - loaded_bytes(kernel, before), 0) / loaded
    return tuple(total)


def loads_late(kernel):
    """Whether the per-channel values wait for a load from memory that begins after the sums."""
    channels, second = split_passes(kernel)
    return any(i.kind == "global load" for i in kernel.instructions if channels <= i.address < second)


def count_stages(kernel):
    """Parts of a tile that are waited for one by one: initialisations of mbarriers."""
    return max(sum(i.name.startswith("SYNCS.EXCH") for i in kernel.instructions), 1)


def waits_first(kernel):
    """Whether the kernel waits for the one ahead of it, and may be launched before that ends."""
    return any(instruction.name.startswith("ACQBULK") for instruction in kernel.instructions)


def find_in_flight(kernel):
    """Bytes of loads that a thread has under way, in the loop or straight line where
    they are most."""
    return max(sass.bytes_in_flight(body)
               for body in [kernel.body(loop) for loop in kernel.loops] + [kernel.outside()])


def find_tail(waves, filled, has_phases):
    """The time of a launch over that of its data, for a last wave that is not full. `filled`
    is how far the loads in flight of a full wave fill the memory system.

    Blocks that load and store at any time share what others leave. Of blocks with phases,
    the last wave is as long as the others; of several waves, drift fills half of it.
    """
    if waves <= 1:
        return 1
    last = waves - math.floor(waves)
    if has_phases:
        return min(math.ceil(waves) / waves, 1 + 0.5 / waves if waves >= 2 else 2)
    slower = min(REACHED, filled) / min(REACHED, last * filled) if last else 1
    return (math.floor(waves) + last * slower) / waves


def estimate(device, launch, usage, kernel, traffic, elements):
    """The time of a launch."""
    resident = count_blocks(device, launch, usage)
    waves = launch.blocks / count_slots(device, launch.cluster, resident)
    blocks = min(resident, launch.blocks / device.multiprocessors)
    is_one_pass = launch.kernel.startswith("one_pass")
    moved = traffic.read + traffic.cached
    warps = math.ceil(launch.threads / 32) * launch.blocks
    of_sums, of_channels, of_results = count_instructions(kernel, moved / (launch.blocks * launch.threads))
    instructions = warps * (of_sums + of_results) + (launch.blocks if is_one_pass else warps) * of_channels
    # Few blocks leave multiprocessors idle, and few warps their schedulers.
    busy = device.multiprocessors * min(1, launch.blocks / device.multiprocessors)
    of_scheduler = math.ceil(max(blocks, 1) * warps / launch.blocks / device.schedulers)
    issue_rate = busy * device.schedulers * device.clock * 1e3 * min(ISSUE_RATE, of_scheduler / STALL)
    issue = instructions / issue_rate
    sums, results = (warps * each / issue_rate for each in (of_sums, of_results))
    # All warps of a block wait for the one that computes the per-channel values.
    channels = (of_channels * STALL / (device.clock * 1e3) + CLUSTER_BARRIER * (launch.cluster > 1)
                + LATENCY * loads_late(kernel))

    # The copies of a tile are under way at once; of several blocks, half of the time.
    of_block = launch.shared_bytes if is_one_pass else find_in_flight(kernel) * launch.threads
    coincides = is_one_pass and (resident == 1 or waves <= 1)
    in_flight = of_block * blocks * (0.5 if is_one_pass and not coincides else 1)
    needed = device.dram * 1e3 * LATENCY / device.multiprocessors
    rate = device.dram * 1e3 * min(REACHED, in_flight / needed)
    data = traffic.read + traffic.written + traffic.cached
    memory = (traffic.read + traffic.written) / rate + traffic.cached / (device.l2 * 1e3) if data else 0
    tail = find_tail(waves, in_flight / needed, is_one_pass)
    bound = ("issue of instructions" if issue > memory else
             "memory" if in_flight / needed >= REACHED else "loads in flight")
    if coincides:
        # All blocks load, add, compute the per-channel values, and store at once. Sums of a
        # stage overlap the loads of those after it, and stores the instructions around them.
        load, store = traffic.read / rate, traffic.written / rate
        add = max(load, sums) + min(load, sums) / count_stages(kernel)
        # The first load of each wave is as late as that of the kernel.
        time = add + max(store, results) + math.ceil(waves) * channels + (math.ceil(waves) - 1) * RAMP
        bound = "phases of all blocks coincide" if waves <= 1 else "phases of one block follow each other"
    else:
        time = max(memory, issue) * tail
        bound += f", {waves:.2f} waves" if tail > 1.1 else ""
    return Estimate(launch, usage.registers, resident, waves, in_flight / 1024, needed / 1024,
                    instructions * 32 / elements, RAMP + time, bound)


def runs_at_once(device, launch, usage):
    """Whether all blocks of a launch run at once."""
    return launch.blocks <= count_slots(device, launch.cluster, count_blocks(device, launch, usage))


def find_traffic(device, launches, tensor, ends_together=False, inputs=2):
    """The traffic of each launch that reads `inputs` tensors, by the kernel's name. Of a second pass, which goes
    backwards, the part that the second-level cache keeps is read from there.

    `ends_together`: the first pass ends at the end of the data, as its slices
    alternate and its blocks run at once. Otherwise the cache has the ends of many
    slices, and only data that fit are taken to be read from there.
    """
    kept = min(inputs * tensor, L2_KEPT * device.l2_bytes)
    found = {}
    for launch in launches:
        if launch.kernel.startswith("one_pass"):
            found[launch.kernel] = Traffic(inputs * tensor, tensor)
        elif launch.kernel.startswith("reduce"):
            found[launch.kernel] = Traffic(inputs * tensor, 0)
        elif launch.kernel.startswith("apply"):
            cached = kept if ends_together or inputs * tensor <= kept else 0
            found[launch.kernel] = Traffic(inputs * tensor - cached, tensor, cached)
        else:
            found[launch.kernel] = Traffic(0, 0)
    return found


LAUNCH = re.compile(r"gpu\.launch async.*? function\(@(\w+)\)")


def _extent(text, group):
    """The product of the three extents of `group` in a launch, 1 without it."""
    found = re.search(group + r"\([^)]*\) in \(([^)]*)\)", text)
    if not found:
        return 1
    values = re.findall(r"= %c(\d+)", found[1])
    if len(values) != 3:
        raise ValueError(f"expected constant {group} of a launch, got {found[1]}")
    return math.prod(map(int, values))


def find_launches(ir):
    """The launches for aligned data: of each kind of kernel, the first in the text, and
    no other kinds after one pass."""
    found = {}
    for line in ir.splitlines():
        if not (launch := LAUNCH.search(line)):
            continue
        shared = re.search(r"dynamic_shared_memory_size %c(\d+)", line)
        found.setdefault(launch[1], Launch(
            launch[1], _extent(line, "blocks"), _extent(line, "threads"), _extent(line, "clusters"),
            int(shared[1]) if shared else 0))
    if "one_pass" in found:
        return [found["one_pass"]]
    return list(found.values())


class Compiler:
    """Compiles items, and reads what became of them."""

    def __init__(self, tools, ptxas, nvdisasm, work, chip):
        self.tools, self.ptxas, self.nvdisasm, self.work, self.chip = tools, ptxas, nvdisasm, work, chip

    def _run(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise RuntimeError(f"{command[0]}: {lines[0]}")
        return done

    def compile(self, item):
        """Launches, usage and kernels of an item."""
        source, ptx, cubin = (self.work / name for name in ("item.mlir", "item.ptx", "item.cubin"))
        source.write_text(items.make_ir(item))
        options = f"chip={self.chip} device-arguments=true stop-after=apply"
        ir = self._run(self.tools / "bngrad-opt", source, f"--bngrad-cuda-pipeline={options}").stdout
        self._run(self.tools / "bngrad-compile", source, "-o", ptx, "--target=cuda", "--device-arguments",
                  f"--chip={self.chip}")
        report = self._run(self.ptxas, f"-arch={self.chip}", "-v", ptx, "-o", cubin).stderr
        listing = self._run(self.nvdisasm, "-c", cubin).stdout
        return find_launches(ir), sass.read_usage(report), sass.read_kernels(listing)


def estimate_item(device, item, compiled):
    """The estimates of an item's kernels, and the time of all."""
    launches, usages, kernels = compiled
    tensor = item.case.elements * items.BYTES[item.type]
    ends_together = item.variant != "dynamic" and runs_at_once(device, launches[0], usages[launches[0].kernel])
    traffic = find_traffic(device, launches, tensor, ends_together, item.inputs)
    found = [estimate(device, launch, usages[launch.kernel], kernels[launch.kernel], traffic[launch.kernel],
                      item.case.elements) for launch in launches]
    # Blocks that wait for the kernel ahead have started by then.
    gaps = sum(FLUSH - START if waits_first(kernels[launch.kernel]) else GAP for launch in launches[1:])
    return found, sum(each.microseconds for each in found) + gaps


def compare_passes(device, item, found, total):
    """The number of passes over the tensors, and the time over that of the passes alone."""
    passes = 1 + item.inputs * (1 if found[0].launch.kernel == "one_pass" else 2)
    tensor = item.case.elements * items.BYTES[item.type]
    return passes, total / (passes * tensor / (device.dram * 1e3 * REACHED))


def estimate_layouts(device, item, compiled):
    """The time of an item with each distribution of the multiprocessors over processing clusters."""
    return [estimate_item(each, item, compiled)[1] for each in with_layouts(device)]


def find_broken(device, item, found, totals):
    """The limits that the times of an item, one for each of with_layouts, do not keep."""
    if item.case.elements * items.BYTES[item.type] < GPU_LARGE_BYTES:
        return []
    broken = []
    for each, total in zip(with_layouts(device), totals):
        passes, ratio = compare_passes(device, item, found, total)
        kind = "one_pass" if found[0].launch.kernel == "one_pass" else "two_pass"
        limit = items.LIMITS[kind] * (1 if total == totals[0] else OTHER_LAYOUT)
        if ratio > limit:
            layout = ", ".join(map(str, each.processing_clusters))
            broken.append(f"{item.name}: expected at most {limit:.2f} of {passes} passes, got {ratio:.3f}"
                          + (f" with processing clusters of {layout}" if layout else ""))
    return broken


def make_rows(device, item, found, totals):
    """The lines of the table for an item: the whole, with the time of each of with_layouts, and each kernel."""
    passes, ratio = compare_passes(device, item, found, totals[0])
    ratios = " or ".join(f"{ratio * total / totals[0]:.2f}" for total in totals)
    times = " or ".join(f"{total:.1f}" for total in totals)
    lines = [f"| **{item.name}** | | | | | | {times} | {ratios} of {passes} passes |"]
    for each in found:
        launch = each.launch
        cluster = f", clusters of {launch.cluster}" if launch.cluster > 1 else ""
        lines.append(
            f"| {launch.kernel} | {launch.blocks} x {launch.threads}{cluster} | {each.registers} |"
            f" {each.blocks_per_multiprocessor} ({each.waves:.2f}) | {each.kib_in_flight:.0f} of {each.kib_needed:.0f} |"
            f" {each.instructions_per_element:.1f} | {each.microseconds:.1f} | {each.bound} |")
    return lines


def main():
    parser = argparse.ArgumentParser(prog="model.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tools", required=True, type=pathlib.Path, help="folder of bngrad-compile")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="of a CUDA toolkit, or of PyPI's nvidia-cuda-nvdisasm")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--device", default="H200", choices=DEVICES)
    parser.add_argument("--shapes", default="", help="a regular expression")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--assert", action="store_true", dest="asserts", help="fail if a limit is broken")
    arguments = parser.parse_args()
    device = DEVICES[arguments.device]
    try:
        selected = [item for item in items.large() if re.search(arguments.shapes, item.name)]
    except re.error as error:
        parser.error(f"expected a regular expression for --shapes: {error}")
    if not selected:
        parser.error(f"expected --shapes to match a case, got '{arguments.shapes}'")
    if not shutil.which(arguments.nvdisasm):
        parser.error(f"expected nvdisasm in the PATH or as --nvdisasm=PATH, got '{arguments.nvdisasm}'")
    device_texts = [", ".join(map(str, each.processing_clusters)) for each in with_layouts(device)]
    lines = [
        f"# Times on {device.name} by calculation",
        "",
        "Calculated by `bench/gpu/model.py`; no GPU has measured them.",
        *([f"Two times are those of multiprocessors in processing clusters of {device_texts[0]}, or of"
           f" {device_texts[1]}; rows of kernels are those of the first, and schedules are chosen for the second."] if len(device_texts) > 1 else []),
        "",
        "| case, kernel | blocks x threads | registers | blocks per SM (waves) | KiB in flight per SM |"
        " instructions per element | µs | over the floor, bound |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    broken = []
    with tempfile.TemporaryDirectory() as work:
        compiler = Compiler(arguments.tools, arguments.ptxas, arguments.nvdisasm, pathlib.Path(work), device.chip)
        for item in selected:
            compiled = compiler.compile(item)
            found, _ = estimate_item(device, item, compiled)
            totals = estimate_layouts(device, item, compiled)
            rows = make_rows(device, item, found, totals)
            lines += rows
            print("\n".join(rows), file=sys.stderr)
            broken += find_broken(device, item, found, totals)
    text = "\n".join(lines) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    else:
        print(text, end="")
    if arguments.asserts:
        for line in broken:
            print(f"bngrad: error: {line}", file=sys.stderr)
        sys.exit(bool(broken))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, ValueError) as error:
        sys.exit(f"bngrad: error: {error}")
