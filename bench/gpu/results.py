"""The table, the data and the plot of the GPU suite.

As a program, results.py A.json [B.json...] --output=BASE writes BASE.{md,json,svg}
from several runs of suite.py, each with some of the parts."""

import argparse
import json
import math
import pathlib
import statistics

PEERS = ("torch", "cudnn", "compile")
TITLES = {
    "bngrad": "BNGrad",
    "torch": "PyTorch",
    "cudnn": "cuDNN",
    "compile": "torch.compile",
}
COLORS = {
    "bngrad": "#d62728",
    "torch": "#ee8a1d",
    "cudnn": "#1f77b4",
    "compile": "#7f7f7f",
}
NOT_MEASURED = "not measured"
LARGE_BYTES = 12e6
LIMIT_ONE_PASS = 1.3  # of the 3-pass time
LIMIT_TWO_PASS = 1.15  # of the 5-pass time


def floors_us(case, bandwidth):
    """Times of 3 and 5 tensors at `bandwidth` GB/s, in microseconds."""
    return [passes * case["tensor_bytes"] / bandwidth / 1e3 for passes in (3, 5)]


def finish(document):
    """Adds the ratios and the exceeded limits."""
    bandwidth = document.get("bandwidth_gbps", {}).get("median")
    for case in document.get("benchmark", []):
        case.pop("ratios", None)
        case["failures"] = failures = []
        own = case["results"].get("bngrad", {})
        if "us" not in own:
            if "absent" in own:
                failures.append(own["absent"])
            continue
        ratios = case["ratios"] = {}
        for peer in PEERS:
            result = case["results"].get(peer, {})
            if "us" in result:
                ratios[peer] = result["us"] / own["us"]
        if bandwidth:
            three, five = floors_us(case, bandwidth)
            ratios["over3"], ratios["over5"] = own["us"] / three, own["us"] / five
        if case["tensor_bytes"] < LARGE_BYTES:
            continue
        is_one_pass = case["schedule"].startswith("one_pass")
        over, limit = ("over3", LIMIT_ONE_PASS) if is_one_pass else ("over5", LIMIT_TWO_PASS)
        if ratios.get(over, 0) > limit:
            failures.append(f"{ratios[over]:.2f} of the {over[-1]}-pass time, limit {limit}")
        for peer in PEERS:
            if ratios.get(peer, 2) < 1:
                failures.append(f"{TITLES[peer]} is {1 / ratios[peer]:.2f} times faster")
    return document


def merge(documents):
    """Merges documents; a part of a later one replaces the same part of an earlier one."""
    merged = {}
    for document in documents:
        # A repeated part is no longer failed.
        for part in document.get("seconds", {}):
            merged.get("failed", {}).pop(part, None)
        for key, value in document.items():
            if key in ("machine", "seconds", "failed", "correctness", "sanitizer", "counters"):
                merged.setdefault(key, {}).update(value)
            elif value or key not in merged:
                merged[key] = value
    return finish(merged)


def summarize_bandwidth(samples):
    return {
        "median": statistics.median(samples),
        "min": min(samples),
        "max": max(samples),
    }


def wrong_items(document):
    """(part, item, reason) of all incorrect items."""
    found = []
    for part, entries in document.get("correctness", {}).items():
        found += [(part, e["name"], e["error"]) for e in entries if "error" in e]
    return found


def _time(result):
    if result is None:
        return NOT_MEASURED
    if "us" not in result:
        return "absent"
    time = result["us"]
    text = f"{time / 1e3:.3g} ms" if time >= 1e3 else f"{time:.3g} µs"
    return text + (" (no graph)" if "not_captured" in result else "")


def _ratio(ratios, key):
    return f"{ratios[key]:.2f}" if key in ratios else ""


def _table(cases):
    head = ["shape", "kernel", "BNGrad", "over 3 passes", "over 5 passes"]
    head += [TITLES[peer] for peer in PEERS]
    head += ["best / BNGrad", "without graph", "limits"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case in cases:
        results, ratios = case["results"], case.get("ratios", {})
        own = results.get("bngrad")
        peers = [ratios[peer] for peer in PEERS if peer in ratios]
        is_large = case["tensor_bytes"] >= LARGE_BYTES
        kept = ("kept" if not case["failures"] else f"{len(case['failures'])} not") if own else ""
        stream = (own or {}).get("stream_us")
        row = [
            case["name"].split()[0],
            case["schedule"].split(",")[0],
            _time(own),
            _ratio(ratios, "over3"),
            _ratio(ratios, "over5"),
            *[_time(results.get(peer)) for peer in PEERS],
            f"{min(peers):.2f}" if peers else "",
            _time({"us": stream}) if stream else "",
            kept if is_large or kept != "kept" else "",
        ]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _machine_lines(document):
    machine = document["machine"]
    lines = [f"* {machine['gpu']}" + (f"; {machine['software']}" if "software" in machine else "")]
    lines.append(f"* {machine['date']}; commit {machine['commit']}; kernels for {machine['chip']}")
    bandwidth = document.get("bandwidth_gbps")
    if bandwidth:
        lines.append(
            f"* copy of 1 GiB, read and written bytes: median {bandwidth['median']:.0f} GB/s,"
            f" from {bandwidth['min']:.0f} to {bandwidth['max']:.0f} during the run"
        )
    else:
        lines.append(f"* copy bandwidth: {NOT_MEASURED}")
    lines += [f"* {part} failed: {why}" for part, why in document.get("failed", {}).items()]
    if "seconds" in document:
        parts = [f"{name} {seconds:.0f} s" for name, seconds in document["seconds"].items()]
        lines.append("* " + ", ".join(parts))
    return lines


def _count(entries):
    """The numbers of correct, wrong and skipped items."""
    wrong = sum("error" in entry for entry in entries)
    skipped = sum("skipped" in entry for entry in entries)
    return len(entries) - wrong - skipped, wrong, skipped


def _correctness_lines(document):
    lines = []
    titles = {
        "small": "small, every schedule, aligned and not",
        "large": "as measured below",
        "load": "loaded, not run",
    }
    for part, entries in document.get("correctness", {}).items():
        worst = [entry["worst"] for entry in entries if "worst" in entry]
        correct, wrong, skipped = _count(entries)
        text = f"* {titles[part]}: {correct} correct, {wrong} wrong, {skipped} not run for lack of time"
        if worst:
            text += f"; at most {max(worst):.2f} of the bound"
        lines.append(text)
    lines += [f"* {part}: {name}: {why}" for part, name, why in wrong_items(document)[:50]]
    return lines or [f"* {NOT_MEASURED}"]


def _sanitizer_lines(document):
    lines = []
    for tool in ("memcheck", "racecheck"):
        result = document.get("sanitizer", {}).get(tool)
        if not result:
            lines.append(f"* {tool}: {NOT_MEASURED}")
        elif "absent" in result:
            lines.append(f"* {tool}: absent: {result['absent']}")
        elif "error" in result:
            lines.append(f"* {tool}: reports: {result['error']}")
        else:
            lines.append(f"* {tool}: {result['items']} functions: {result['summary']}")
    return lines


def _counter_lines(document):
    lines = ["| case | kernels | read | written | tensors moved |", "|---|---|---|---|---|"]
    for name, result in document.get("counters", {}).items():
        if "read" not in result:
            lines.append(f"| {name} | | | | {result.get('absent', NOT_MEASURED)} |")
            continue
        moved = (result["read"] + result["written"]) / result["tensor_bytes"]
        lines.append(
            f"| {name} | {len(result['kernels'])} | {result['read'] / 1e6:.1f} MB |"
            f" {result['written'] / 1e6:.1f} MB | {moved:.2f} |"
        )
    return lines


def markdown(document):
    lines = ["# GPU suite", "", "How to read this: [README](../README.md#gpu-suite).", ""]
    lines += _machine_lines(document)
    lines += ["", "## Correctness", ""] + _correctness_lines(document)
    lines += ["", "## compute-sanitizer", ""] + _sanitizer_lines(document)
    cases = document.get("benchmark", [])
    for element_type in ("f32", "bf16", "f16"):
        for layout, title in (("nchw", "NCHW, NCL"), ("nhwc", "NHWC, 2-D")):
            part = [c for c in cases if c["type"] == element_type and c["layout"] == layout]
            if part:
                lines += ["", f"## {element_type}, {title}", ""] + _table(part)
    lines += ["", "## DRAM bytes (ncu)", ""] + _counter_lines(document)
    failures = [(case["name"], text) for case in cases for text in case["failures"]]
    if failures:
        lines += ["", "## Limits that are not kept", ""]
        lines += [f"* {name}: {text}" for name, text in failures]
    absent = {}
    for case in cases:
        for peer, result in case["results"].items():
            why = result.get("absent") or result.get("not_captured")
            if why:
                absent.setdefault((TITLES[peer], why), []).append(case["name"])
    if absent:
        lines += ["", "## Absent, or not captured into a graph", ""]
        lines += [f"* {who}, {len(names)} cases ({names[0]}, ...): {why}" for (who, why), names in absent.items()]
    return "\n".join(lines) + "\n"


def plot(document, path):
    """Ratios of times to the 3-pass time for large shapes, as SVG."""
    bandwidth = document.get("bandwidth_gbps", {}).get("median")
    rows = [
        case
        for case in document.get("benchmark", [])
        if case["tensor_bytes"] >= LARGE_BYTES and "us" in case["results"].get("bngrad", {})
    ]
    left, top, step, width = 210, 50, 16, 620
    height = top + step * max(len(rows), 1) + 40


    most = 20

    def x(value):
        return left + width * math.log(min(max(value, 0.8), most) / 0.8) / math.log(most / 0.8)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{left + width + 20}" height="{height}" fill="white"/>',
    ]
    at = left
    for name, title in TITLES.items():
        out.append(f'<circle cx="{at}" cy="14" r="4" fill="{COLORS[name]}"/>')
        out.append(f'<text x="{at + 8}" y="18">{title}</text>')
        at += 100
    if not rows or not bandwidth:
        out.append(f'<text x="{left}" y="{top + 12}">{NOT_MEASURED}</text>')
    for tick in (1, 5 / 3, 3, 5, 10, 20):
        line = "#999999" if tick in (1, 5 / 3) else "#dddddd"
        out.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 8}" y2="{height - 36}"'
            f' stroke="{line}"/>'
        )
        label = "5 passes" if tick == 5 / 3 else f"{tick:g}"
        out.append(f'<text x="{x(tick):.1f}" y="{top - 12}" text-anchor="middle">{label}</text>')
    for number, case in enumerate(rows if bandwidth else []):
        y = top + step * (number + 0.5)
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{case["name"]}</text>')
        floor = floors_us(case, bandwidth)[0]
        for name in reversed(list(TITLES)):
            result = case["results"].get(name, {})
            if "us" in result:
                radius = 5 if name == "bngrad" else 4
                out.append(
                    f'<circle cx="{x(result["us"] / floor):.1f}" cy="{y:.1f}" r="{radius}"'
                    f' fill="{COLORS[name]}"/>'
                )
    machine = document["machine"]
    out.append(
        f'<text x="{left}" y="{height - 10}">time over that of 3 tensors at copy bandwidth;'
        f" {machine['gpu']}, {machine['date']}, commit {machine['commit']}</text>"
    )
    path.write_text("\n".join(out) + "\n</svg>\n")


def summary(document):
    """A summary in a few lines."""
    lines = []
    for part, entries in document.get("correctness", {}).items():
        correct, wrong, skipped = _count(entries)
        lines.append(f"{part}: {correct} correct, {wrong} wrong, {skipped} not run")
    for line in _sanitizer_lines(document):
        lines.append(line.lstrip("* ")[:160])
    bandwidth = document.get("bandwidth_gbps")
    lines.append(f"bandwidth: {bandwidth['median']:.0f} GB/s" if bandwidth else f"bandwidth: {NOT_MEASURED}")
    cases = document.get("benchmark", [])
    measured = [case for case in cases if "over3" in case.get("ratios", {})]
    for case in measured:
        ratios = case["ratios"]
        peers = " ".join(f"{peer} {ratios[peer]:.2f}" for peer in PEERS if peer in ratios)
        lines.append(
            f"{case['name']:28} {case['schedule'].split(',')[0]:8} {_time(case['results']['bngrad']):>9}"
            f"  3-pass {ratios['over3']:.2f}  5-pass {ratios['over5']:.2f}  {peers}"
        )
    if cases:
        kept = sum(not case["failures"] for case in measured)
        lines.append(f"limits: {kept} of {len(measured)} measured cases keep all")
    for name, result in document.get("counters", {}).items():
        if "read" in result:
            moved = (result["read"] + result["written"]) / result["tensor_bytes"]
            lines.append(f"{name}: {moved:.2f} tensors moved")
        else:
            lines.append(f"{name}: {result.get('absent', NOT_MEASURED)}"[:160])
    return lines


def write(document, base):
    """Writes BASE.json, BASE.md and BASE.svg."""
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    base.with_suffix(".md").write_text(markdown(document))
    plot(document, base.with_suffix(".svg"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", type=pathlib.Path, nargs="+")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    write(merge([json.loads(path.read_text()) for path in options.inputs]), options.output)


if __name__ == "__main__":
    main()
