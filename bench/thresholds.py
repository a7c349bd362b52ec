"""The measurements behind the limits of the CPU's schedules.

For each limit of lib/Transforms/Schedule/SizeRules.h, gradients on both
sides of it are run in two or more schedules, in turns. Run by
`scripts/bench.sh --thresholds`.
"""

import os
import re

import cases
import data
import instruction_sets
import kernels
import machine
import measure
import native

ROUNDS = 9


def nchw(batch, channels, row, dtype="f32"):
    return cases.Case((batch, channels, row), "nchw", dtype)


def nhwc(rows, channels):
    return cases.Case((rows, channels), "nhwc", "f32")


# Limit, the two schedules, and its cases. A schedule is a kind, or a parameter
# that differs from the chosen one.
COMPARISONS = (
    (
        "Fewer than `kFewChannels` = 8 channels: `split`",
        ("split", "channels"),
        [nchw(32, channels, 12544) for channels in (1, 2, 3, 5, 7, 8, 9, 16)],
    ),
    (
        "At least `kSerialElements` = 16384 elements: `split`",
        ("split", "channels"),
        [nchw(8, 1, row) for row in (256, 1024, 2048, 4096, 16384, 65536)],
    ),
    (
        "Rows shorter than `kShortRow` = 256: `tiles`",
        ("tiles", "channels"),
        [nchw(64, 512, row) for row in (49, 100, 144, 196, 256, 400, 784)],
    ),
    (
        "At least `kManyRows` = 8192 rows: `tiles`",
        ("tiles", "channels"),
        [nchw(batch, 256, 49) for batch in (2, 4, 8, 16, 32, 64, 128)],
    ),
    (
        "Rows shorter than `kVeryShortRow` = 16: `tiles`",
        ("tiles", "channels"),
        [nchw(16, 256, row) for row in (2, 4, 9, 15, 16, 25, 36)],
    ),
    (
        "At least `kManyVeryShortRows` = 64 rows: `tiles`",
        ("tiles", "channels"),
        [nchw(batch, 8, 9) for batch in (1, 2, 4, 8, 16, 64)],
    ),
    (
        "At least `kManySamples` = 32 samples in caches: `tiles`",
        ("tiles", "channels"),
        [nchw(batch, 512, row, dtype) for row in (49, 196) for dtype in ("f32", "bf16") for batch in (1, 8, 16, 32, 64)],
    ),
    (
        "At least `kSomeSamples` = 16 samples of tensors above a third of `kThreadShareBytes`: `tiles`",
        ("tiles", "channels"),
        [nchw(batch, (1 << 18) // batch, 196, dtype) for dtype in ("f32", "bf16") for batch in (1, 8, 16, 32)],
    ),
    (
        "At least `kSomeSamples` = 16 samples of very short rows: `tiles`",
        ("tiles", "channels"),
        [nchw(batch, 4096, 9, dtype) for dtype in ("f32", "bf16") for batch in (1, 4, 8, 16, 32)],
    ),
    (
        "`columns`: 48 bytes of the first-level cache for each of `rows`",
        ("chosen", "columns = 128", "columns = 256", "columns = 2048"),
        [nhwc(25088, 128), nhwc(25088, 512), nhwc(6272, 2048)],
    ),
    (
        "`columns`: 8 bytes of the first-level cache for each byte of an element of `tiles`",
        ("chosen", "columns = 128", "columns = 256", "columns = 2048"),
        [nchw(64, 512, 49), nchw(64, 512, 196), nchw(32, 2048, 49)],
    ),
    (
        "`row_blocks` = 32 of `rows`",
        ("chosen", "row_blocks = 8", "row_blocks = 16", "row_blocks = 64"),
        [nhwc(1024, 64), nhwc(25088, 128), nhwc(100352, 64), nhwc(6272, 2048)],
    ),
)


def vary(schedule, variant):
    """`schedule` with another kind, or another value of one parameter."""
    if "=" not in variant:
        return re.sub(r"<\w+", "<" + variant, schedule)
    name = variant.split(" ")[0]
    if f"{name} =" in schedule:
        return re.sub(rf"{name} = \d+", variant, schedule)
    return schedule.replace(">", f", {variant}>")


class Thresholds:
    """One run."""

    def __init__(self, arguments):
        threads = int(os.environ["OMP_NUM_THREADS"])
        folder = arguments.work / "kernels"
        self.compiler = kernels.Compiler(arguments.tools, folder, threads)
        selected = [case for *_, some in COMPARISONS for case in some]
        self.harness = native.Harness(arguments.work, machine.last_level_cache())
        self.harness.initialize()
        self.store = data.Store(self.harness, selected)

    def contenders(self, case, variants):
        """The gradient of `case` in the schedules that `variants` describe."""
        chosen = f"#bngrad.schedule<{self.compiler.schedule(case, 'static')}>"
        found = []
        for variant in variants:
            schedule = vary(chosen, variant) if variant != "chosen" else chosen
            contender = measure.bngrad_contender(
                self.harness, self.compiler, self.store, case, "static", schedule
            )
            if not contender.absent:
                reference = data.Backward(self.store, case, "static")
                measure.check(contender, self.store, reference)
            if problem := contender.absent or contender.error:
                raise RuntimeError(f"{case.name}, {variant}: {problem}")
            found.append(contender)
        return found

    def row(self, case, variants):
        """Warm times, and the ratios of the other schedules to the first."""
        contenders = self.contenders(case, variants)
        measure.run_rounds(self.harness, contenders, ROUNDS)
        cells = [case.name]
        for contender in contenders:
            time = measure.summarize(contender, case)["warm_us"]
            cells.append(f"{time:.3g}" if time < 1000 else f"{time:.0f}")
        for contender in contenders[1:]:
            cells.append(f"{measure.ratio(contender, contenders[0]):.2f}")
        return "| " + " | ".join(cells) + " |"

    def table(self, limit, variants, selected):
        """The lines of the table of a limit."""
        titles = [f"{variant}, µs" for variant in variants]
        titles += [f"{variant} / {variants[0]}" for variant in variants[1:]]
        lines = ["", f"## {limit}", "", "| case | " + " | ".join(titles) + " |"]
        lines.append("|---|" + "---:|" * len(titles))
        for case in selected:
            lines.append(self.row(case, variants))
            print(lines[-1], flush=True)
        return lines


def run(arguments, root):
    """Measures, and writes the tables to the output that `arguments` name."""
    described = machine.describe(root, os.environ["OMP_NUM_THREADS"]) | arguments.described_isa
    lines = [
        "# Limits of the CPU's schedules, measured",
        "",
        f"Warm times, medians of {ROUNDS} rounds in which the schedules take turns, and",
        f"medians of the rounds' ratios. {described['cpu']}, {instruction_sets.to_text(described)},",
        f"{described['threads']} threads, commit `{described['commit']}`. `scripts/bench.sh --thresholds` repeats it. A limit is",
        "right where its ratio crosses 1. Ratios within 10 % of 1 are noise.",
    ]
    thresholds = Thresholds(arguments)
    for comparison in COMPARISONS:
        lines += thresholds.table(*comparison)
    output = arguments.output.with_suffix(".md")
    output.write_text("\n".join(lines) + "\n")
    print(f"bngrad: written to {output}")
