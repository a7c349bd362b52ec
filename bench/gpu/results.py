"""The table and the data of the GPU suite, from its journal.

As a program, results.py FOLDER... --output=BASE writes BASE.{md,json,svg} from the
journals of several runs of suite.py; later results replace earlier ones."""

import argparse
import json
import pathlib
import re
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import devices
import framework_tasks
import items
import journal
import plot
from cases import GPU_LARGE_BYTES

# Implementations of the same gradient, which limits apply to.
PEERS = ("torch", "cudnn", "cudnn_graph", "compile", "apex", "flag_gems", "triton")
# Of which BNGrad shall be 1.3 times as fast as the best one, in the geometric mean.
MAIN_PEERS = ("torch", "cudnn", "compile")
# The same traffic in another computation.
OTHERS = ("quack",)
TITLES = {
    "bngrad": "BNGrad",
    "torch": "PyTorch",
    "cudnn": "cuDNN",
    "cudnn_graph": "cuDNN graph",
    "compile": "torch.compile",
    "apex": "Apex SyncBN",
    "flag_gems": "FlagGems",
    "triton": "Triton, two passes",
    "quack": "quack RMSNorm",
    **{schedule: schedule for schedule in items.ALTERNATIVES},
}
DRY_RUN = "emulator, no GPU"
NOT_MEASURED = "not measured"
# As in judge.py, which needs numpy.
TIE = 0.02
KEPT, BROKEN, UNDECIDED = "kept", "broken", "not decided"
SANITIZERS = ("memcheck", "racecheck", "synccheck")
CHECKS = {
    "smoke": "smoke: each kernel once",
    "correctness": "small: every schedule, aligned and not",
    "queued": "queued: many calls in a stream and a graph, in place, misaligned",
    "load": "loaded, not run",
}


def build(records):
    """The document of a journal, or of several."""
    document = {"machine": {}, "seeds": [], "plan": {}, "notes": [], "software": [], "clocks_mhz": []}
    document.update({"seconds": {}, "failed": {}, "absent": {}})
    cases = {}
    for record in records:
        if "machine" in record:
            document["machine"] = dict(record["machine"])
            document["seeds"].append(record["seed"])
            document["plan"].update(record["plan"])
            for name, facts in record["cases"].items():
                old = cases.get(name, {})
                # A bundle that was packed without nvdisasm has no calculated times; those of the same schedule hold.
                if not facts.get("model_us") and old.get("schedule") == facts["schedule"]:
                    facts = {**facts, "model_us": old.get("model_us", {})}
                cases[name] = facts
            # Parts that failed are tried again by each run.
            for part in record["plan"]:
                document["failed"].pop(part, None)
                document["absent"].pop(part, None)
        elif "software" in record:
            document["software"] += [record["software"]] if record["software"] not in document["software"] else []
        elif "note" in record:
            document["notes"].append(record["note"])
        elif "clock_mhz" in record:
            document["clocks_mhz"].append(record["clock_mhz"])
        elif "part" in record:
            kind = "failed" if "failed" in record else "absent"
            document[kind][record["part"]] = record[kind]
    by_part = {}
    for task, record in journal.find_results(records).items():
        part, name = task.split("/", 1)
        by_part.setdefault(part, {})[name] = record["result"]
        document["seconds"][part] = document["seconds"].get(part, 0) + record["seconds"]
    document["tasks"] = by_part
    found = by_part.get("slots", {}).get("clusters", {})
    document["slots"] = found.get("slots", [])
    document["benchmark"] = _cases(cases, by_part, find_layout(document))
    samples = [
        result["bandwidth_gbps"]
        for result in by_part.get("benchmark", {}).values()
        if result.get("bandwidth_gbps")
    ]
    if samples:
        document["bandwidth_gbps"] = {
            "median": statistics.median(samples),
            "min": min(samples),
            "max": max(samples),
        }
    return document


def find_layout(document):
    """(device, number of the layout, whether it is that one) of the model whose slots of clusters are closest to those of
    the driver; None for what is not known."""
    device, slots = devices.find_device(document["machine"]), document["slots"]
    if not device or not slots:
        return device, None, False
    misses = [sum(abs(devices.count_slots(each, cluster, resident) - found) for cluster, resident, found in slots)
              for each in devices.with_layouts(device)]
    return device, misses.index(min(misses)), min(misses) == 0


def _case_results(by_part, name):
    """The results that a case has in each part, BNGrad's own time first."""
    parts = [by_part.get("benchmark", {}).get(name, {}), by_part.get("compile", {}).get(name, {})]
    alternatives = by_part.get("alternatives", {})
    return parts + [alternatives[other] for each in items.ALTERNATIVES if (other := f"{name} {each}") in alternatives]


def _cases(cases, by_part, layout):
    found = []
    device, number, is_exact = layout
    for name, facts in cases.items():
        case = {"name": name, **facts, "results": {}, "ratios": {}, "intervals": {}}
        for result in _case_results(by_part, name):
            for kind in ("results", "ratios", "intervals"):
                for key, value in result.get(kind, {}).items():
                    case[kind].setdefault(key, value)
        result = by_part.get("benchmark", {}).get(name, {})
        if "error" in result:
            case["results"].setdefault("bngrad", {"absent": result["error"]})
        if "worst" in result:
            case["worst"] = result["worst"]
        times = facts.get("model_us", {}).get(device.name) if number is not None else None
        case["calculated_us"] = times[number] if times else None
        case["is_nearest"] = bool(times) and not is_exact
        if times and "us" in case["results"].get("bngrad", {}):
            case["ratios"]["model"] = case["results"]["bngrad"]["us"] / case["calculated_us"]
        case["verdicts"] = _judge(case)
        found.append(case)
    return found


def over_passes(case):
    """The key of the ratio to the passes over the tensors of a case, by its kernel and the number of its inputs."""
    reads = 1 if case["schedule"].startswith("one_pass") else 2
    return f"over{reads * case.get('inputs', 2) + 1}"


def _judge(case):
    """The limits of a case with their states, as judge.py has them, and the reason why it
    has no time."""
    own = case["results"].get("bngrad", {})
    if "absent" in own:
        return [{"name": own["absent"], "state": BROKEN}]
    if "us" not in own or case["tensor_bytes"] < GPU_LARGE_BYTES:
        return []
    is_one_pass = case["schedule"].startswith("one_pass")
    over, most = over_passes(case), items.LIMITS["one_pass" if is_one_pass else "two_pass"]
    verdicts = []
    for name in (over, *PEERS):
        if name not in case["ratios"]:
            continue
        value = case["ratios"][name]
        low, high = case["intervals"].get(name, (value, value))
        text, limit = f"time of {over[-1]} passes", most
        if name in PEERS:
            # BNGrad's time over the other's.
            value, low, high = 1 / value, 1 / high, 1 / low
            text, limit = f"time of {TITLES[name]}", 1 + TIE
        state = BROKEN if low > limit else KEPT if high <= limit else UNDECIDED
        text += f": {value:.2f} ({low:.2f} to {high:.2f}), limit {limit:.2f}"
        verdicts.append({"name": text, "state": state})
    return verdicts


def _count_states(cases):
    return {
        state: sum(verdict["state"] == state for case in cases for verdict in case["verdicts"])
        for state in (KEPT, BROKEN, UNDECIDED)
    }


def _state_of(case):
    counts = _count_states([case])
    parts = [f"{counts[state]} {state}" for state in (BROKEN, UNDECIDED) if counts[state]]
    return ", ".join(parts) or ("kept" if case["verdicts"] else "")


def limit_lines(cases):
    counts = _count_states(cases)
    lines = [f"{counts[KEPT]} limits kept, {counts[BROKEN]} broken, {counts[UNDECIDED]} not decided."]
    for state in (BROKEN, UNDECIDED):
        lines += [
            f"* {case['name']}, {verdict['name']}, {state}"
            for case in cases
            for verdict in case["verdicts"]
            if verdict["state"] == state
        ]
    return lines


def wrong_items(document, parts=None):
    """(part, task, reason) of all tasks that failed, or of those of `parts`."""
    return [
        (part, name, result["error"])
        for part, tasks in document["tasks"].items()
        for name, result in tasks.items()
        if "error" in result and (parts is None or part in parts)
    ]


def failed_parts(document, parts):
    """(parts, reason) of those of `parts` that could not be run."""
    by_reason = {}
    for part, why in document["failed"].items():
        if part in parts:
            by_reason.setdefault(why, []).append(part)
    return [(", ".join(names), why) for why, names in by_reason.items()]


def _count(document, part):
    """The numbers of good and failed tasks, and of those that were not run."""
    found = document["tasks"].get(part, {})
    failed = sum("error" in result for result in found.values())
    total = max(document["plan"].get(part, 0), len(found))
    return len(found) - failed, failed, total - len(found)


def find_misses(document):
    """The measured time over that of the model by case; without a model, over that of the passes."""
    found = {}
    for case in document["benchmark"]:
        ratio = case["ratios"].get("model", case["ratios"].get(over_passes(case)))
        if ratio:
            found[case["name"]] = ratio
    return found


def compare_best(document, peers=MAIN_PEERS):
    """By case, the time of the fastest of `peers` over BNGrad's, and how many of them have a time."""
    found = {}
    for case in document["benchmark"]:
        ratios = [case["ratios"][peer] for peer in peers if peer in case["ratios"]]
        if ratios:
            found[case["name"]] = min(ratios), len(ratios)
    return found


def time_text(result):
    if result is None:
        return NOT_MEASURED
    if "us" not in result:
        return "absent"
    time = result["us"]
    return f"{time / 1e3:.3g} ms" if time >= 1e3 else f"{time:.3g} µs"


def ratio_text(ratios, key):
    return f"{ratios[key]:.2f}" if key in ratios else ""


def nearest_mark(case):
    """Before times of a layout of the model that is not that of the device."""
    return "~" if case["is_nearest"] else ""


def _find_columns(document):
    """The other implementations with a column: the main ones, and all that were measured. `Absent` has the others."""
    measured = {name for case in document["benchmark"] for name, result in case["results"].items() if "us" in result}
    return [name for name in PEERS + OTHERS if name in measured or name in MAIN_PEERS]


def _table(cases, others):
    head = ["shape", "kernel", "BNGrad", "calculated", "measured / calculated", "over 3 passes", "over 5 passes"]
    head += [TITLES[other] for other in others]
    head += ["best peer / BNGrad", *items.ALTERNATIVES, "without graph", "limits"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case in cases:
        found, ratios = case["results"], case["ratios"]
        own = found.get("bngrad")
        peers = [ratios[peer] for peer in PEERS if peer in ratios]
        stream = (own or {}).get("stream_us")
        row = [
            case["name"].split()[0],
            case["schedule"].split(",")[0] + _cluster_text(case),
            time_text(own),
            nearest_mark(case) + f"{case['calculated_us']:.3g} µs" if case["calculated_us"] else "",
            nearest_mark(case) + ratio_text(ratios, "model") if "model" in ratios else "",
            ratio_text(ratios, "over3"),
            ratio_text(ratios, "over5"),
            *[_other(found, ratios, other) for other in others],
            f"{min(peers):.2f}" if peers else "",
            *[_other(found, ratios, schedule) if schedule in found else "" for schedule in items.ALTERNATIVES],
            time_text({"us": stream}) if stream else "",
            _state_of(case),
        ]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _cluster_text(case):
    found = re.search(r"cluster_blocks = (\d+)", case["schedule"])
    return f" of {found[1]}" if found else ""


def _other(found, ratios, name):
    """`time (ratio to BNGrad)`."""
    text = time_text(found.get(name))
    return f"{text} ({ratios[name]:.2f})" if name in ratios else text


def describe_machine(machine, software=()):
    """The GPU with its memory and clocks, and the software."""
    parts = [machine["gpu"]]
    if "memory_bytes" in machine:
        parts.append(f"{machine['memory_bytes'] / 1e9:.1f} GB, {machine['multiprocessors']} multiprocessors of at most"
                     f" {machine['clock_mhz']} MHz, memory of {machine['memory_clock_mhz']} MHz,"
                     f" cache of {machine['l2_bytes'] / 1e6:.0f} MB")
    return "; ".join(parts + ([machine["software"]] if "software" in machine else []) + list(software))


def slot_lines(document):
    """The slots of clusters beside those of each layout of the model, and which of these it is."""
    device, number, is_exact = find_layout(document)
    assumed = devices.with_layouts(device) if device else []
    lines = []
    for cluster, resident, found in document["slots"]:
        of_model = " or ".join(str(devices.count_slots(each, cluster, resident)) for each in assumed)
        lines.append(f"* clusters of {cluster}, {resident} blocks on a multiprocessor: {found} blocks at once"
                     + (f"; model: {of_model}" if of_model else ""))
    if lines and not device:
        lines.append("* the model does not know this device, so that there are no calculated times")
    elif lines:
        layout = ", ".join(map(str, assumed[number].processing_clusters))
        if not is_exact:
            layout = f"none of the model's; times with ~ are calculated for {layout}"
        lines.append(f"* multiprocessors of the processing clusters by these: {layout}")
    return lines or [f"* {NOT_MEASURED}"]


def machine_lines(document):
    machine = document["machine"]
    lines = [f"* {describe_machine(machine, document['software'])}"]
    lines.append(
        f"* {machine['date']}; commit {machine['commit']}; kernels for {machine['chip']}"
        + (f", as {machine['kernels']}" if "kernels" in machine else "")
        + f"; seed {', '.join(map(str, document['seeds']))}"
    )
    if clocks := document["clocks_mhz"]:
        lines.append(f"* clock of the multiprocessors during the benchmark: {min(clocks):.0f} to {max(clocks):.0f} MHz")
    bandwidth = document.get("bandwidth_gbps")
    if bandwidth:
        lines.append(
            f"* copy within the device, read and written bytes: median {bandwidth['median']:.0f}"
            f" GB/s, from {bandwidth['min']:.0f} to {bandwidth['max']:.0f} during the run"
        )
    else:
        lines.append(f"* copy bandwidth: {NOT_MEASURED}")
    return lines


def _note_lines(document):
    lines = [f"* {note}" for note in document["notes"]]
    for kind in ("failed", "absent"):
        lines += [f"* {part} {kind}: {why}" for part, why in document[kind].items()]
    parts = [f"{name} {seconds:.0f} s" for name, seconds in document["seconds"].items()]
    return lines + (["* " + ", ".join(parts)] if parts else [])


def check_lines(document):
    lines = []
    for part, title in CHECKS.items():
        if part not in document["plan"]:
            continue
        good, failed, left = _count(document, part)
        worst = [r["worst"] for r in document["tasks"].get(part, {}).values() if "worst" in r]
        text = f"* {title}: {good} correct, {failed} failed, {left} not run"
        lines.append(text + (f"; at most {max(worst):.2f} of the bound" if worst else ""))
        if not_held := sum("not_held" in r for r in document["tasks"].get(part, {}).values()):
            lines.append(f"* {part}: of {not_held} functions, calls ran before all were queued: the host is slow")
    worst = [case["worst"] for case in document["benchmark"] if "worst" in case]
    if worst:
        lines.append(f"* measured below: {len(worst)} correct; at most {max(worst):.2f} of the bound")
    return lines or [f"* {NOT_MEASURED}"]


def sanitizer_lines(document):
    lines = []
    found = document["tasks"].get("sanitizer", {})
    for tool in SANITIZERS:
        pieces = [result for name, result in found.items() if name.split()[0] == tool]
        absent = [result["absent"] for result in pieces if "absent" in result]
        clean = sum(result.get("items", 0) for result in pieces)
        errors = [result["error"] for result in pieces if "error" in result]
        if absent:
            lines.append(f"* {tool}: absent: {absent[0]}")
        elif pieces:
            text = f"* {tool}: {clean} functions clean, {len(errors)} of {len(pieces)} runs with errors"
            lines.append(text + (f": {errors[0]}" if errors else ""))
        elif why := document["absent"].get("sanitizer"):
            lines.append(f"* {tool}: absent: {why}")
        else:
            lines.append(f"* {tool}: {NOT_MEASURED}")
    return lines


def _counter_lines(document):
    lines = ["| case | kernels | read | written | tensors moved |", "|---|---|---|---|---|"]
    for name, result in document["tasks"].get("counters", {}).items():
        if "read" not in result:
            why = result.get("absent") or result.get("error", NOT_MEASURED)
            lines.append(f"| {name} | | | | {why} |")
            continue
        moved = (result["read"] + result["written"]) / result["tensor_bytes"]
        lines.append(
            f"| {name} | {len(result['kernels'])} | {result['read'] / 1e6:.1f} MB |"
            f" {result['written'] / 1e6:.1f} MB | {moved:.2f} |"
        )
    return lines


def _framework_lines(document):
    found = document["tasks"].get("frameworks", {})
    if not found:
        return [f"* {NOT_MEASURED}"]
    return ["| task | without BNGrad | with BNGrad | ratio |", "|---|---|---|---|",
            *(framework_tasks.describe(*each) for each in found.items())]


def _absent_lines(cases):
    absent = {}
    for case in cases:
        for peer, result in case["results"].items():
            if "absent" in result:
                absent.setdefault((TITLES[peer], result["absent"]), []).append(case["name"])
    return [
        f"* {who}, {len(names)} cases ({names[0]}, ...): {why}"
        for (who, why), names in absent.items()
    ]


def markdown(document):
    lines = ["# GPU suite", "", "How to read this: [README](../README.md#gpu-suite).", ""]
    lines += machine_lines(document) + _note_lines(document)
    lines += ["", "## Blocks of clusters that run at once", ""] + slot_lines(document)
    lines += ["", "## Correctness", ""] + check_lines(document)
    lines += ["", "## compute-sanitizer", ""] + sanitizer_lines(document)
    cases = document["benchmark"]
    for element_type in ("f32", "bf16", "f16"):
        for layout, title in (("nchw", "NCHW, NCL"), ("nhwc", "NHWC, 2-D")):
            part = [c for c in cases if c["type"] == element_type and c["layout"] == layout]
            if part:
                lines += ["", f"## {element_type}, {title}", ""] + _table(part, _find_columns(document))
    lines += ["", "## DRAM bytes (ncu)", ""] + _counter_lines(document)
    lines += ["", "## PyTorch and JAX with and without BNGrad", ""] + _framework_lines(document)
    sections = {
        "Tasks that failed": [f"* {p}: {name}: {why}" for p, name, why in wrong_items(document)[:100]],
        "Limits": limit_lines(cases) if _has_times(cases) else [],
        "Absent": _absent_lines(cases),
    }
    for title, found in sections.items():
        if found:
            lines += ["", f"## {title}", ""] + found
    return "\n".join(lines) + "\n"


def _has_times(cases):
    return any(case["results"] for case in cases)


def file_name(document):
    """The name of the device in that of files, with its memory and highest clocks, such as
    h100-80gb-hbm3-85gb-1980mhz-memory-2619mhz."""
    machine = document["machine"]
    words = re.sub(r"[^a-z0-9]+", " ", machine.get("gpu", "unknown GPU").lower()).split()
    words = [word for word in words if word != "nvidia"]
    if "memory_bytes" in machine:
        words += [f"{machine['memory_bytes'] / 1e9:.0f}gb", f"{machine['clock_mhz']}mhz",
                  f"memory-{machine['memory_clock_mhz']}mhz"]
    return "-".join(words)


def write(document, base):
    """Writes BASE.json, BASE.md and BASE.svg."""
    base.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        "json": json.dumps(document, indent=1) + "\n",
        "md": markdown(document),
        "svg": plot.draw(document, TITLES, GPU_LARGE_BYTES),
    }
    for suffix, text in texts.items():
        journal.write_atomically(base.with_name(f"{base.name}.{suffix}"), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", type=pathlib.Path, nargs="+")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    records = []
    for path in options.inputs:
        found = journal.load(path / "journal.jsonl" if path.is_dir() else path)
        if not any("machine" in record for record in found):
            sys.exit(f"expected the journal of a run, got {path}")
        records += found
    write(build(records), options.output)


if __name__ == "__main__":
    main()
