"""Compares BNGrad's CPU code with other libraries. Run by scripts/bench.sh."""

import argparse
import dataclasses
import os
import pathlib
import re
import statistics
import sys

import cases
import compilers.driver
import data
import instruction_sets
import judge
import kernels
import limits
import machine
import measure
import native
import passes
import peers
import ready
import report
import thresholds

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh")
    parser.add_argument(
        "--assert",
        dest="check",
        action="store_true",
        help="exit 1 if a limit is broken, or too many are not decided",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few shapes and rounds, under a minute"
    )
    parser.add_argument(
        "--thresholds",
        action="store_true",
        help="measure the limits of the choice of a schedule instead",
    )
    parser.add_argument(
        "--ready",
        action="store_true",
        help="compare the C library's ready kernels with kernels for one shape instead",
    )
    parser.add_argument(
        "--compilers",
        action="store_true",
        help="compare with JAX/XLA, torch.compile, IREE and MLIR's own passes instead",
    )
    parser.add_argument(
        "--pass",
        dest="norm_pass",
        choices=list(passes.PASSES),
        default=passes.BACKWARD.name,
        help="default: backward; of --compilers also forward",
    )
    parser.add_argument(
        "--shapes",
        metavar="REGEX",
        help="only cases whose name matches, such as 'x112 nchw f32'",
    )
    parser.add_argument(
        "--peers", metavar="REGEX", default="", help="only libraries that match"
    )
    parser.add_argument(
        "--rounds", type=int, help="undisturbed rounds per case (default 15, quick 5)"
    )
    parser.add_argument(
        "--output",
        metavar="BASE",
        type=pathlib.Path,
        help="where BASE.md, .json and .svg go (default bench/results/cpu-ISA; "
        "build/bench/quick-ISA or build/bench/part-ISA where not everything is measured; "
        "of --thresholds bench/results/thresholds-ISA, of --ready bench/results/ready-ISA, "
        "of --compilers bench/results/compilers-ISA, or compilers-quick-ISA or compilers-part-ISA, "
        "and with --pass=forward compilers-forward-ISA)",
    )
    parser.add_argument(
        "--isa",
        metavar="NAME",
        default=os.environ.get("BNGRAD_ISA"),
        help="hold BNGrad and all others to an instruction set, a value of BNGRAD_ISA "
        "(default: BNGRAD_ISA, or all that the CPU has)",
    )
    parser.add_argument("--tools", required=True, help="folder of bngrad-compile")
    parser.add_argument("--work", required=True, type=pathlib.Path, help="scratch")
    arguments = parser.parse_args()
    arguments.norm_pass = passes.PASSES[arguments.norm_pass]
    for name in ("shapes", "peers"):
        try:
            re.compile(getattr(arguments, name) or "")
        except re.error as error:
            parser.error(f"expected a regular expression for --{name}: {error}")
    if arguments.compilers and (arguments.thresholds or arguments.ready):
        parser.error("expected --compilers without --thresholds and --ready")
    if arguments.norm_pass is not passes.BACKWARD and not arguments.compilers:
        parser.error(f"expected --compilers with --pass={arguments.norm_pass.name}")
    others = ("check", "quick", "shapes", "peers", "rounds")
    if arguments.thresholds and any(getattr(arguments, name) for name in others):
        parser.error(
            "expected --thresholds without --assert, --quick, --shapes, --peers and --rounds"
        )
    if arguments.ready and (arguments.check or arguments.quick or arguments.peers or arguments.thresholds):
        parser.error("expected --ready without --assert, --quick, --peers and --thresholds")
    if arguments.isa:
        instruction_sets.force(arguments.isa)
    arguments.described_isa = instruction_sets.describe(arguments.tools)
    if arguments.output is None:
        stem = instruction_sets.find(arguments.described_isa["isa"]).stem
        base = choose_output(arguments)
        arguments.output = base.with_name(f"{base.name}-{stem}")
    return arguments


def choose_output(arguments):
    """Where results go if --output does not say so, without the instruction set."""
    results = ROOT / "bench/results"
    if arguments.ready and not arguments.shapes:
        return results / "ready"
    if arguments.thresholds:
        return results / "thresholds"
    prefix = "compilers-" if arguments.compilers else ""
    if arguments.norm_pass is not passes.BACKWARD:
        prefix += arguments.norm_pass.name + "-"
    if arguments.quick:
        return arguments.work / (prefix + "quick")
    if arguments.shapes or arguments.peers:
        return arguments.work / (prefix + "part")
    return results / (prefix.rstrip("-") or "cpu")


def destroy(contenders):
    """Destroys the states of the peers' contenders."""
    for contender in contenders:
        if contender.state and not contender.name.startswith("bngrad"):
            contender.keep[0].library.peerDestroy(contender.state)


def variants_of(case):
    """BNGrad's variants of an ordinary case."""
    variants = ["static", "dynamic"]
    if len(case.sizes) == 4:
        variants.append("strided")
    return variants


class Bench:
    """One run."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.threads = int(os.environ["OMP_NUM_THREADS"])
        self.rounds = arguments.rounds or (5 if arguments.quick else 15)
        self.selected = cases.select(
            arguments.shapes or (cases.QUICK if arguments.quick else "")
        )
        if not self.selected:
            sys.exit("bngrad: error: expected --shapes to match a case, got none")
        self.compiler = kernels.Compiler(
            arguments.tools,
            arguments.work / "kernels",
            self.threads,
        )
        self.serial_compiler = kernels.Compiler(arguments.tools, arguments.work / "kernels", 1)
        self.peers = peers.load(arguments.work)
        self.harness = native.Harness(arguments.work, machine.last_level_cache())
        self.harness.initialize()
        self.store = data.Store(self.harness, self.selected)
        self.bandwidth = []
        # By case above 20 MB, the ratios to the hand-written kernel.
        self.hand_ratios = []
        # Limits whose contenders are absent.
        self.unmeasured = []

    def prepare(self, case, variants):
        """BNGrad's contenders of a case."""
        return [
            measure.bngrad_contender(
                self.harness, self.compiler, self.store, case, variant
            )
            for variant in variants
        ]

    def verify(self, case, contenders, variants=None):
        """Checks the results of all contenders; `variants` lists the ones with different references."""
        reference = None
        for i, contender in enumerate(contenders):
            if not contender.run:
                continue
            if variants or reference is None:
                reference = data.Backward(
                    self.store, case, variants[i] if variants else "static"
                )
            measure.check(contender, self.store, reference)

    def measure(self, case, contenders, pairs, found_limits):
        """Summaries by name, ratios by (first, second), and verdicts on limits."""
        by_name = {c.name: c for c in contenders}

        def find(name):
            """A contender of that name, or None."""
            if name != "floor":
                return by_name.get(name)
            walk, cached = by_name.get("walk"), by_name.get("bngrad-cached")
            return measure.floor_of(walk, cached, case, self.threads) if walk and cached else None

        def find_ratios(limit):
            first, second = find(limit.first), find(limit.second)
            return measure.find_ratios(first, second) if first and second else []

        def find_verdicts():
            return [judge.judge(limit, find_ratios(limit))
                    for limit in found_limits if find_ratios(limit)]

        def is_decided():
            return all(verdict.state != judge.UNDECIDED for verdict in find_verdicts())

        measure.run_rounds(self.harness, contenders, self.rounds, is_decided)
        for contender in contenders:
            self.bandwidth += [
                1e-9 * (s.bandwidth_before + s.bandwidth_after) / 2
                for s in contender.samples.values()
            ]
        results = {c.name: measure.summarize(c, c.own_case or case) for c in contenders}
        ratios = {}
        for first, second in pairs:
            found = find(first), find(second)
            if all(found) and (value := measure.ratio(*found)) is not None:
                ratios[first, second] = value
        if case.is_large and (of_hand := find_ratios(limits.HAND_MEAN)):
            self.hand_ratios.append(of_hand)
        self.unmeasured += [f"{case.name}, {limit.name}" for limit in found_limits if not find_ratios(limit)]
        return results, ratios, find_verdicts()

    def run_case(self, case):
        """An ordinary case with all peers."""
        contenders = self.prepare(case, variants_of(case) + ["static"])
        contenders[-1].name = "bngrad-twin"
        contenders[0].schedule = self.compiler.schedule(case, "static")
        problem = measure.problem_of(self.store, case, self.threads)
        walk = peers.WALKS.get(contenders[0].schedule.split(",")[0])
        for peer in self.peers:
            if peer.name == "walk" and (walk is None or not case.is_large):
                continue
            if re.search(self.arguments.peers, peer.name):
                contenders += measure.peer_contenders(peer, problem, walk)
        self.verify(case, contenders)
        if case.is_large:
            contenders.append(measure.cached_contender(
                self.harness, self.serial_compiler, self.store, case, contenders[0].schedule))
        pairs = [(name, "bngrad") for name in limits.PEERS + ("torch-default",)]
        pairs += [("bngrad", "hand"), ("bngrad", "hand-bare"), ("bngrad-dynamic", "bngrad")]
        pairs += [("bngrad-strided", "bngrad-dynamic")]
        pairs += [("bngrad", "walk"), ("bngrad", "floor"), ("bngrad-twin", "bngrad")]
        results, ratios, verdicts = self.measure(
            case, contenders, pairs, limits.find(case) + limits.TWINS)
        destroy(contenders)
        return self.entry(case, results, ratios, verdicts)

    def run_fused(self, case):
        """BNGrad with fused neighbours, and their walked floors."""
        variants = ["static"] + list(kernels.FUSED)
        contenders = self.prepare(case, variants)
        self.verify(case, contenders, variants)
        walk = peers.WALKS.get(self.compiler.schedule(case, "static").split(",")[0])
        for peer in self.peers:
            if peer.name == "walk" and walk is not None and re.search(self.arguments.peers, peer.name):
                contenders += measure.walk_contenders(peer, self.store, case, self.threads, walk)
        found_limits = limits.find_fused(case)
        pairs = [(limit.first, limit.second) for limit in found_limits]
        results, ratios, verdicts = self.measure(case, contenders, pairs, found_limits)
        destroy(contenders)
        return self.entry(case, results, ratios, verdicts)

    def entry(self, case, results, ratios, verdicts):
        """The entry of a case in the document."""
        return {
            "name": case.name,
            "sizes": "x".join(map(str, case.sizes)),
            "layout": case.layout,
            "type": case.type,
            "tensor_bytes": case.tensor_bytes,
            "is_large": case.is_large,
            "floor_tensors": case.floor_tensors,
            "results": results,
            "ratios": {f"{a}/{b}": value for (a, b), value in ratios.items()},
            "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
            "failures": limits.find_failures(case, results),
        }

    def run(self):
        """Runs all cases; returns the document that report.py writes."""
        arguments = self.arguments
        document = {
            "machine": machine.describe(ROOT, self.threads) | arguments.described_isa,
            "options": {"quick": arguments.quick, "rounds": self.rounds},
            "peers": [
                {"title": p.title, "version": p.version, "absent": p.absent}
                for p in self.peers
            ],
            "cases": [],
            "fused": [],
            "latency": {},
        }
        for case in self.selected:
            entry = self.run_case(case)
            document["cases"].append(entry)
            progress(entry)
        fused = [
            case
            for case in self.selected
            if case.sizes in cases.FUSED and case.type == "f32"
        ]
        for case in fused:
            entry = self.run_fused(case)
            document["fused"].append(entry)
            progress(entry)
        for case in self.selected:
            if case.sizes == cases.COMPILED and case.type == "f32":
                try:
                    latency = self.compiler.latency(case)
                except kernels.CompileError as error:
                    latency = {"error": str(error)}
                document["latency"][case.name] = latency
        document["bandwidth_gbps"] = {
            "median": statistics.median(self.bandwidth or [self.harness.bandwidth() * 1e-9]),
            "min": min(self.bandwidth, default=0),
            "max": max(self.bandwidth, default=0),
        }
        document["mean"] = (
            [dataclasses.asdict(judge.judge_mean(limits.HAND_MEAN, self.hand_ratios))]
            if self.hand_ratios else []
        )
        document["unmeasured"] = self.unmeasured
        document["failures"] = [
            f"{entry['name']}: {line}"
            for entry in document["cases"] + document["fused"]
            for line in entry["failures"]
        ] + [
            f"{name}: {line}"
            for name, latency in document["latency"].items()
            for line in limits.judge_latency(latency)
        ]
        return document


def progress(entry):
    """One line per case while it runs."""
    tensors = entry["floor_tensors"]
    parts = []
    for name, result in entry["results"].items():
        if "warm_us" in result:
            parts.append(f"{name} {result[f'warm_over_floor{tensors}']:.2f}")
        else:
            parts.append(f"{name} {'wrong' if 'error' in result else 'absent'}")
    print(f"{entry['name']} (over floor{tensors}): {', '.join(parts)}", flush=True)


def main():
    arguments = parse_arguments()
    if arguments.thresholds:
        thresholds.run(arguments, ROOT)
        return 0
    if arguments.ready:
        ready.run(arguments, ROOT)
        return 0
    if arguments.compilers:
        return 0 if compilers.driver.run(arguments, ROOT) or not arguments.check else 1
    document = Bench(arguments).run()
    report.write(document, arguments.output)
    print(f"bngrad: written to {arguments.output}.md, .json and .svg")
    lines, is_kept = report.summarize_limits(document)
    print("\n".join(lines))
    return 1 if arguments.check and not is_kept else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, OSError) as error:
        sys.exit(f"bngrad: error: {error}")
