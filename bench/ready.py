"""The C library's ready kernels beside kernels compiled for one shape.

Run by `scripts/bench.sh --ready`. The same static kernel is measured twice, so
that the ratio of the two shows the noise.
"""

import os
import statistics

import cases
import data
import instruction_sets
import kernels
import machine
import measure
import native
import peers

ROUNDS = 9


class Ready:
    """One run."""

    def __init__(self, arguments):
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        folder = arguments.work / "kernels"
        self.compiler = kernels.Compiler(arguments.tools, folder, self.threads)
        self.library = peers.ready(arguments.work, arguments.tools)
        if self.library.absent:
            raise RuntimeError("the C library: " + self.library.absent)
        self.selected = cases.select(arguments.shapes or "")
        self.rounds = arguments.rounds or ROUNDS
        self.harness = native.Harness(arguments.work, machine.last_level_cache())
        self.harness.initialize()
        self.store = data.Store(self.harness, self.selected)

    def contenders(self, case):
        """The kernel for this shape, the same once more, and the ready one."""
        found = [
            measure.bngrad_contender(self.harness, self.compiler, self.store, case, "static")
            for _ in range(2)
        ]
        found[1].name = "bngrad-twin"
        problem = measure.problem_of(self.store, case, self.threads)
        found += measure.peer_contenders(self.library, problem)
        reference = data.Backward(self.store, case, "static")
        for contender in found:
            if not contender.absent:
                measure.check(contender, self.store, reference)
            if problem := contender.absent or contender.error:
                raise RuntimeError(f"{case.name}, {contender.name}: {problem}")
        return found

    def row(self, case):
        """Time of the static kernel, and the ratios of twin and ready kernel."""
        static, twin, ready = self.contenders(case)
        measure.run_rounds(self.harness, [static, twin, ready], self.rounds)
        time = measure.summarize(static, case)["warm_us"]
        own = measure.summarize(ready, case)["warm_us"]
        return time, own, measure.ratio(twin, static), measure.ratio(ready, static)


def text(ratio):
    """A ratio; of a case that other processes disturbed throughout, none."""
    return "-" if ratio is None else "%.2f" % ratio


def run(arguments, root):
    """Measures, and writes a table to the output that `arguments` name."""
    described = machine.describe(root, os.environ["OMP_NUM_THREADS"]) | arguments.described_isa
    ready = Ready(arguments)
    rows = []
    for case in ready.selected:
        row = (case, *ready.row(case))
        rows.append(row)
        print(f"{case.name}: {row[1]:.1f} us, twin {text(row[3])}, ready {text(row[4])}", flush=True)
    measured = [row for row in rows if row[3] is not None and row[4] is not None]
    if not measured:
        raise RuntimeError("expected an undisturbed measurement, got none")
    ratios = [row[4] for row in measured]
    large = [row for row in measured if row[0].is_large]
    lines = [
        "# Ready kernels beside kernels for one shape",
        "",
        f"Warm calls of the C library beside a kernel compiled for the shape, medians of {ready.rounds}",
        "rounds in which they take turns, and medians of the rounds' ratios. The twin is the",
        f"static kernel once more: noise. {described['cpu']}, {instruction_sets.to_text(described)},",
        f"{described['threads']} threads, commit `{described['commit']}`. `scripts/bench.sh --ready` repeats it.",
        "",
        f"Geometric mean of ready / static: {statistics.geometric_mean(ratios):.3f}. "
        f"Greatest of a large shape: {max((row[4] for row in large), default=0):.2f}, of a twin: "
        f"{max((row[3] for row in large), default=0):.2f}.",
        "",
        "| case | static, µs | ready, µs | twin / static | ready / static |",
        "|---|---:|---:|---:|---:|",
    ]
    for case, time, own, twin, ratio in rows:
        lines.append(f"| {case.name} | {time:.4g} | {own:.4g} | {text(twin)} | {text(ratio)} |")
    output = arguments.output.with_suffix(".md")
    output.write_text("\n".join(lines) + "\n")
    print(lines[7])
    print(f"bngrad: written to {output}")
