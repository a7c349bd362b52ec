"""The table, its data, and the plot."""

import io
import json
import re

import instruction_sets
import judge
import limits

TITLES = {
    "bngrad": "BNGrad",
    "bngrad-dynamic": "BNGrad, `?` shapes",
    "bngrad-strided": "BNGrad, strided view",
    "walk": "walked floor",
    "hand": "by hand",
    "hand-bare": "by hand, bare",
    "torch": "PyTorch, kept memory",
    "torch-default": "PyTorch as is",
    "onednn": "oneDNN",
    "onednn-debian": "oneDNN of Debian",
}
COLORS = {
    "bngrad": "#d62728",
    "hand": "#000000",
    "torch": "#ee8a1d",
    "torch-default": "#f5c48a",
    "onednn": "#1f77b4",
    "onednn-debian": "#9bc4e2",
}


def _cell(result, tensors):
    """`time (over floor)`, or the reason why there is none."""
    if result is None:
        return ""
    if "warm_us" not in result:
        return "wrong" if "error" in result else "absent"
    time = result["warm_us"]
    text = f"{time / 1e3:.2f} ms" if time >= 1e3 else f"{time:.3g} µs"
    mark = " ~" if "noisy" in result else ""
    return f"{text} ({result[f'warm_over_floor{tensors}']:.2f}){mark}"


def _times(value):
    return "" if value is None else f"{value:.2f}"


def machine_lines(document):
    """The machine, and the libraries with their versions."""
    machine = document["machine"]
    caches = ", ".join(
        f"{name} {size >> 10} KiB" for name, size in machine["caches"].items()
    )
    bandwidth = document["bandwidth_gbps"]
    lines = [
        f"* {machine['cpu']}, family {machine['cpu_family']} model"
        f" {machine['cpu_model']}, {machine['cores']} cores"
        + (f" under {machine['hypervisor']}" if machine["hypervisor"] else "")
        + f"; {caches}; {machine['os']}; huge pages: {machine['huge_pages']}",
        f"* {instruction_sets.to_text(machine)}",
        f"* {machine['threads']} threads; {machine['date']}; commit"
        f" {machine['commit']}; load average at the start {machine['load']}",
        f"* bandwidth, two reads and one streaming write: median"
        f" {bandwidth['median']:.1f} GB/s, from {bandwidth['min']:.1f} to"
        f" {bandwidth['max']:.1f} during the run",
    ]
    for peer in document["peers"]:
        state = f"absent: {peer['absent']}" if peer["absent"] else peer["version"]
        lines.append(f"* {peer['title']}: {state}")
    if document["options"]["quick"]:
        lines.append("* `--quick`: few shapes and rounds; not a measurement to quote")
    return lines


def _case_table(cases, tensors):
    names = [
        "bngrad",
        "walk",
        "hand",
        "hand-bare",
        "torch",
        "torch-default",
        "onednn",
        "onednn-debian",
    ]
    head = ["shape"] + [TITLES[name] for name in names]
    head += ["BNGrad / walked floor", "BNGrad / floor", "cold", "best peer / BNGrad", "by hand / BNGrad", "`?`", "strided", "limits"]
    rows = [head, ["---"] * len(head)]
    for case in cases:
        results, ratios = case["results"], case["ratios"]
        own = results.get("bngrad", {})
        factors = [
            ratios[f"{peer}/bngrad"]
            for peer in limits.PEERS
            if f"{peer}/bngrad" in ratios
        ]
        rows.append(
            [case["sizes"]]
            + [_cell(results.get(name), tensors) for name in names]
            + [
                _times(ratios.get("bngrad/walk")),
                _times(ratios.get("bngrad/floor")),
                _times(own.get(f"cold_over_floor{tensors}")),
                _times(min(factors, default=None)),
                _times(find_ratio(case, "hand", "bngrad")),
                _times(ratios.get("bngrad-dynamic/bngrad")),
                _times(ratios.get("bngrad-strided/bngrad-dynamic")),
                _state_of(case),
            ]
        )
    return ["| " + " | ".join(row) + " |" for row in rows]


def _fused_table(cases):
    lines = ["| case | neighbour | time | over | ratio, 95 % | limit | |"]
    lines.append("|---|---|---|---|---|---|---|")
    for case in cases:
        for verdict in _verdicts_of(case):
            result = case["results"][f"bngrad-{verdict.name}"]
            over = "the gradient alone" if verdict.name == "cast" else "its walked floor"
            lines.append(
                f"| {case['name']} | {verdict.name} | {_cell(result, case['floor_tensors'])} | {over} |"
                f" {verdict.value:.2f} ({verdict.low:.2f} to {verdict.high:.2f}) |"
                f" {verdict.most:.2f} | {verdict.state} |"
            )
    return lines


def _verdicts_of(case):
    """The verdicts on the limits of a case; the twin is none of them."""
    verdicts = [judge.Verdict(**verdict) for verdict in case["verdicts"]]
    return [verdict for verdict in verdicts if verdict.name != limits.TWINS[0].name]


def _twins_of(document):
    verdicts = [judge.Verdict(**verdict) for case in document["cases"] for verdict in case["verdicts"]]
    return [verdict for verdict in verdicts if verdict.name == limits.TWINS[0].name]


def _state_of(case):
    counts = judge.count_states(_verdicts_of(case))
    counts[judge.BROKEN] += len(case["failures"])
    parts = [f"{counts[state]} {state}" for state in (judge.BROKEN, judge.UNDECIDED) if counts[state]]
    return ", ".join(parts) or "kept"


def summarize_limits(document):
    """Lines that state the noise, count the limits by state and list those that are
    not kept; and whether `--assert` succeeds."""
    named = [(case["name"], verdict)
             for case in document["cases"] + document["fused"] for verdict in _verdicts_of(case)]
    named += [("shapes above 20 MB", judge.Verdict(**verdict)) for verdict in document["mean"]]
    verdicts = [verdict for _, verdict in named]
    twins = _twins_of(document)
    counts = judge.count_states(verdicts)
    lines = [f"{counts[judge.KEPT]} limits kept, {counts[judge.BROKEN]} broken,"
             f" {counts[judge.UNDECIDED]} not decided"
             + (f", {len(document['unmeasured'])} without a measurement" if document["unmeasured"] else "") + "."]
    if twins:
        farthest = max(abs(twin.value - 1) for twin in twins)
        widest = max(twin.high - twin.low for twin in twins)
        differ = judge.count_states(twins)[judge.BROKEN]
        lines.append(f"The same kernel twice: {farthest:.3f} apart at most, intervals of {widest:.3f} at most,"
                     f" {differ} of {len(twins) // 2} found to differ.")
    return lines + list_unkept(document, named), are_kept(document, verdicts, twins)


def list_unkept(document, named):
    """A line for each failure and each limit that is not kept; `named`: (case, verdict)."""
    return [f"* broken: {line}" for line in document["failures"]] + [
        f"* {name}, {verdict.text}" for state in (judge.BROKEN, judge.UNDECIDED)
        for name, verdict in named if verdict.state == state]


def are_kept(document, verdicts, twins):
    """Whether a run passes --assert."""
    return (judge.is_kept(verdicts) and not document["failures"]
            and all(twin.state != judge.BROKEN for twin in twins))


def markdown(document):
    """The table in the repository."""
    lines = ["# CPU benchmark", ""]
    lines += ["How to read this: [README](../README.md).", ""]
    lines += machine_lines(document) + [""]
    cases = document["cases"]
    for element_type in ("f32", "bf16", "f16"):
        for layout, title, tensors in (
            ("nchw", "NCHW, NCL: over the 3-pass floor", 3),
            ("nhwc", "NHWC, 2-D: over the 5-pass floor", 5),
        ):
            part = [
                case
                for case in cases
                if case["type"] == element_type and case["layout"] == layout
            ]
            if part:
                lines += [f"## {element_type}, {title}", ""]
                lines += _case_table(part, tensors) + [""]
    if document["fused"]:
        lines += ["## Fused neighbours, f32", ""] + _fused_table(document["fused"]) + [""]
    if document["latency"]:
        lines += ["## Compiling one static kernel in process", ""]
        lines += ["| case | all, ms | of it MLIR's passes, ms |", "|---|---|---|"]
        for name, latency in document["latency"].items():
            if "error" in latency:
                lines.append(f"| {name} | {latency['error']} | |")
            else:
                lines.append(
                    f"| {name} | {latency['compile_ms']:.1f} |"
                    f" {latency['passes_ms']:.1f} |"
                )
        lines.append("")
    lines += ["## Limits", ""]
    lines += summarize_limits(document)[0]
    return "\n".join(lines) + "\n"


def find_ratio(case, first, second):
    """The ratio of two contenders, whichever way round it was kept, or None."""
    ratios = case["ratios"]
    if f"{first}/{second}" in ratios:
        return ratios[f"{first}/{second}"]
    return 1 / ratios[f"{second}/{first}"] if f"{second}/{first}" in ratios else None


def place(case, name, tensors):
    """Where a contender stands in the plot, or None: BNGrad at its time over the floor, and the others beside it by the
    ratios of the table."""
    own = case["results"].get("bngrad", {}).get(f"warm_over_floor{tensors}")
    ratio = 1 if name == "bngrad" else find_ratio(case, name, "bngrad")
    return own * ratio if own and ratio else None


def import_pyplot():
    """Matplotlib for SVG whose text is text."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bngrad"
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot

    return matplotlib.pyplot


def plot(document, path):
    """A plot of times over the floor, with a row per shape and a colour per library."""
    pyplot = import_pyplot()
    panels = []
    for element_type in ("f32", "bf16", "f16"):
        for layout, title, tensors in (("nchw", "NCHW", 3), ("nhwc", "NHWC, 2-D", 5)):
            part = [
                case
                for case in document["cases"]
                if case["type"] == element_type
                and case["layout"] == layout
                and case["is_large"]
            ]
            if part:
                panels.append((f"{element_type} {title}", tensors, part))
    if not panels:
        return
    rows = (len(panels) + 1) // 2
    longest = max(len(part) for _, _, part in panels)
    figure, axes = pyplot.subplots(
        rows, 2, figsize=(13, rows * (1.2 + 0.3 * longest)), squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, tensors, part) in zip(axes.flat, panels):
        for name, color in COLORS.items():
            points = [
                (where, row)
                for row, case in enumerate(part)
                if (where := place(case, name, tensors))
            ]
            if points:
                axis.plot(
                    *zip(*points),
                    "D" if name == "bngrad" else "o",
                    color=color,
                    label=TITLES[name],
                    markersize=8 if name == "bngrad" else 6,
                    zorder=3 if name == "bngrad" else 2,
                )
        for row, case in enumerate(part):
            if floor := place(case, "floor", tensors):
                limit = limits.FLOOR[case["type"]] * floor
                axis.plot([limit] * 2, [row - 0.4, row + 0.4], color="#2ca02c")
        axis.axvline(1, color="gray", linewidth=1)
        axis.set_xscale("log")
        ticks = [1, 1.5, 2, 3, 5, 10, 20, 50, 100]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_yticks(range(len(part)), [case["sizes"] for case in part])
        axis.set_ylim(len(part) - 0.4, -0.6)
        axis.grid(axis="x", color="#dddddd")
        axis.set_axisbelow(True)
        axis.set_title(title)
        axis.set_xlabel(f"time over the {tensors}-pass floor (green: limit)")
    handles = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    finish_plot(figure, handles, document, path)


def finish_plot(figure, handles, document, path):
    """Adds the legend, of handles by label, and the machine, and writes the file."""
    figure.legend(
        handles.values(), handles.keys(), loc="upper center", ncols=6, frameon=False
    )
    machine = document["machine"]
    figure.text(
        0.5,
        0.005,
        f"{machine['cpu']}, {instruction_sets.to_text(machine)}, {machine['threads']} threads, {machine['date']},"
        f" commit {machine['commit']}",
        ha="center",
        fontsize=8,
    )
    height = figure.get_figheight()
    figure.tight_layout(rect=(0, 0.3 / height, 1, 1 - 0.4 / height))
    text = io.StringIO()
    figure.savefig(text, metadata={"Date": None})
    # A line per plot, as git counts lines.
    path.write_text(re.sub(r"\s*\n\s*(?!<g id=.axes)", " ", text.getvalue()) + "\n")


def to_json(document):
    """The document with a line for each case, and for each other value at its top."""
    def to_lines(value):
        if not isinstance(value, list):
            return json.dumps(value)
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"

    return "{\n" + ",\n".join(f"{json.dumps(key)}: {to_lines(value)}" for key, value in document.items()) + "\n}\n"


def write_files(document, base, markdown_of, plot_of):
    """Writes BASE.json, BASE.md and BASE.svg."""
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".json").write_text(to_json(document))
    base.with_suffix(".md").write_text(markdown_of(document))
    plot_of(document, base.with_suffix(".svg"))


def write(document, base):
    """Writes the results of the libraries."""
    write_files(document, base, markdown, plot)
