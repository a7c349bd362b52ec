"""The table and the plot of `--compilers`."""

import judge
import report

OUTPUTS = {"given": "written to existing arrays", "donated": "written to donated arrays",
           "allocated": "allocated by each call"}
COLORS = {"mlir": "#000000", "iree": "#1f77b4", "xla": "#2ca02c", "xla-one-pass": "#98df8a", "inductor": "#ee8a1d", "torch": "#f5c48a"}
TWIN = "twin"
# The contender that only accesses memory.
FLOOR = "walk"


def verdict_of(value):
    """A verdict, from its fields."""
    return judge.Verdict(**value)


def _time(microseconds):
    return f"{microseconds / 1e3:.3g} ms" if microseconds >= 999.5 else f"{microseconds:.3g} µs"


def _ratio(verdict):
    """The peer's time over BNGrad's, with its interval; limits have the reciprocal."""
    text = f"{1 / verdict.value:.2f} ({1 / verdict.high:.2f} to {1 / verdict.low:.2f})"
    return f"**{text}**" if verdict.state == judge.BROKEN else text


def _verdict_on(case, name):
    """The verdict on the ratio to a peer, or None. It has the ratio that is printed and plotted."""
    return next((verdict_of(value) for value in case["verdicts"] if value["name"] == name), None)


def _cell(case, name):
    result = case["results"].get(name, {})
    if "warm_us" not in result:
        return "wrong" if "wrong result" in result.get("error", "") else "failed" if "error" in result else "absent"
    text = _time(result["warm_us"]) + (" ~" if result.get("noisy") else "")
    verdict = _verdict_on(case, name)
    return f"{text}, {_ratio(verdict)}" if verdict else text


def _mean_row(title, verdicts, names):
    cells = [_ratio(verdict_of(verdicts[name])) if name in verdicts else "" for name in names]
    return [title, "1", *cells]


def _case_tables(document):
    titles = {peer["name"]: peer["title"] for peer in document["peers"]}
    names = [name for name in titles if not name.startswith("bngrad")]
    lines = []
    for element_type in ("f32", "bf16"):
        for layout, title in (("nchw", "NCHW"), ("nhwc", "NHWC, 2-D")):
            part = [case for case in document["cases"] if (case["type"], case["layout"]) == (element_type, layout)]
            if not part:
                continue
            group = f"{element_type} {title}"
            rows = [["shape", "BNGrad", *(titles[name] for name in names)]]
            rows.append(["---"] + ["---:"] * (len(names) + 1))
            rows += [[case["sizes"], *(_cell(case, name) for name in ["bngrad", *names])] for case in part]
            means = document["means"].get(group, {})
            for key, text in (("warm", "geometric mean"), ("cold", "geometric mean, cold")):
                if key in means:
                    rows.append(_mean_row(text, means[key], names))
            lines += [f"## {group}", "", *("| " + " | ".join(row) + " |" for row in rows), ""]
    return lines


def _compile_table(document):
    titles = {peer["name"]: peer["title"] for peer in document["peers"]}
    found = document["compilation"]
    if not found:
        return []
    names = [name for name in titles if any(name in times for times in found.values())]
    lines = ["## Compile times", "",
             "Seconds of the first compilation in a new process, from the program to a function that can be called "
             "(of JAX and torch.compile, with its first call), and *in parentheses* of imports before it.", "",
             "| case | " + " | ".join(titles[name] for name in names) + " |",
             "|---|" + "---:|" * len(names)]
    for case, times in found.items():
        cells = [f"{times[name][1]:.3g} ({times[name][0]:.2g})" if name in times else "" for name in names]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return lines + [""]


def _output_lines(document):
    """How each contender has its results, and the page faults of its calls."""
    lines = ["## Outputs", "", "| | outputs | page faults of a warm call, at most | idle, at most |",
             "|---|---|---:|---:|"]
    for peer in document["peers"]:
        results = [case["results"].get(peer["name"], {}) for case in document["cases"]]
        measured = [result for result in results if "warm_us" in result]
        if measured:
            outputs = sorted({OUTPUTS[result["outputs"]] for result in measured})
            lines.append(f"| {peer['title']} | {'; '.join(outputs)} | {max(r['faults'] for r in measured):.3g} |"
                         f" {max(result['idle'] for result in measured):.1%} |")
    return lines + ["", "*Idle* is the CPU time that all others take during a turn, as a share of a core.", ""]


def _problem_lines(document):
    """Contenders of single cases that are wrong or failed."""
    return [f"* {case['name']}, {name}: {result['error']}" for case in document["cases"]
            for name, result in case["results"].items() if "error" in result]


def summarize_limits(document):
    """Lines that count the limits by state and list those that are not kept; and whether `--assert`
    succeeds."""
    named = [(case["name"], verdict_of(value)) for case in document["cases"] for value in case["verdicts"]]
    twins = [verdict for _, verdict in named if verdict.name == TWIN]
    floors = [verdict for _, verdict in named if verdict.name == FLOOR]
    named = [(name, verdict) for name, verdict in named if verdict.name != TWIN]
    verdicts = [verdict for _, verdict in named]
    counts = judge.count_states([verdict for verdict in verdicts if verdict.name != FLOOR])
    peers = [peer for peer in document["peers"] if peer["name"] != FLOOR and not peer["name"].startswith("bngrad")]
    unmeasured = len(document["cases"]) * len(peers) - sum(counts.values())
    lines = [f"BNGrad / each other compiler, limit {1 + judge.TIE:.2f}: {counts[judge.KEPT]} limits kept,"
             f" {counts[judge.BROKEN]} broken, {counts[judge.UNDECIDED]} not decided"
             + (f", {unmeasured} without a measurement" if unmeasured else "") + "."]
    if floors:
        counts = judge.count_states(floors)
        limits = sorted({f"{verdict.most:.2f}" for verdict in floors})
        lines.append(f"BNGrad / walked floor, limits {', '.join(limits)}: {counts[judge.KEPT]} kept,"
                     f" {counts[judge.BROKEN]} broken, {counts[judge.UNDECIDED]} not decided.")
    if twins:
        lines.append(f"The same kernel in two processes: {max(abs(twin.value - 1) for twin in twins):.3f} apart at"
                     f" most, {judge.count_states(twins)[judge.BROKEN]} of {len(twins) // 2} found to differ.")
    return lines + report.list_unkept(document, named), report.are_kept(document, verdicts, twins)


def markdown(document):
    lines = [f"# BNGrad beside other compilers: the {document['options']['pass']} pass", "",
             "How to read this: [README](../README.md#other-compilers). A cell is the time of a warm call and, over that "
             "of BNGrad, the ratio with the interval that has its median with a probability of 95 %: above 1, BNGrad is "
             "faster; **bold**, BNGrad is slower than the limit allows.", ""]
    lines += report.machine_lines(document) + [""] + _case_tables(document)
    if problems := _problem_lines(document):
        lines += ["## Not measured", "", *problems, ""]
    lines += _output_lines(document) + _compile_table(document)
    lines += ["## Limits", "", *summarize_limits(document)[0]]
    return "\n".join(lines) + "\n"


def plot(document, path):
    """The ratios of the table as bars, a panel for each element type and layout."""
    pyplot = report.import_pyplot()
    titles = {peer["name"]: peer["title"] for peer in document["peers"]}
    groups = {}
    for case in document["cases"]:
        if "warm_us" in case["results"].get("bngrad", {}):
            groups.setdefault(f"{case['type']} {'NCHW' if case['layout'] == 'nchw' else 'NHWC, 2-D'}", []).append(case)
    names = [name for name in COLORS if name in titles]
    if not groups or not names:
        return
    rows = (len(groups) + 1) // 2
    figure, axes = pyplot.subplots(rows, 2, figsize=(13, 1 + 3.2 * rows), squeeze=False)
    for axis in axes.flat[len(groups):]:
        axis.axis("off")
    for axis, (title, part) in zip(axes.flat, groups.items()):
        width = 0.85 / len(names)
        for place, name in enumerate(names):
            bars = [(row + (place - (len(names) - 1) / 2) * width, 1 / verdict.value)
                    for row, case in enumerate(part) if (verdict := _verdict_on(case, name))]
            if bars:
                axis.bar(*zip(*bars), width, color=COLORS[name], label=titles[name])
        axis.axhline(1, color="gray", linewidth=1)
        axis.set_yscale("log")
        ticks = [0.5, 1, 2, 5, 10, 20, 50]
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xticks(range(len(part)), [f"{case['sizes']}\n{_time(case['results']['bngrad']['warm_us'])}"
                                           for case in part], fontsize=7)
        axis.grid(axis="y", color="#dddddd")
        axis.set_axisbelow(True)
        axis.set_title(title)
        axis.set_ylabel("time over BNGrad's")
    handles = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    report.finish_plot(figure, handles, document, path)


def write(document, base):
    """Writes the results of the compilers."""
    report.write_files(document, base, markdown, plot)
