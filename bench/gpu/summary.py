"""The summary at the end of a call of the GPU suite: what to look at first, in at most MOST_LINES lines, as those who
lend a device may return no more of the output."""

import math
import re

import framework_tasks
import results

MOST_LINES, MOST_WIDTH, MOST_WRONG_WIDTH = 100, 105, 150
# Most lines of each section.
MOST = {"machine": 4, "slots": 7, "checks": 9, "notes": 4, "cases": 49, "limits": 5, "counters": 8, "frameworks": 80, "wrong": 13}
# Columns of ratios by their key.
SHORT = {"model": "model", "passes": "pass", "torch": "torch", "cudnn": "cudnn", "cudnn_graph": "graph",
         "compile": "compl", "apex": "apex", "flag_gems": "gems", "triton": "tritn", "quack": "quack", "cluster of 4": "of4",
         "two passes": "two"}


def _case_lines(document):
    """A table of the measured cases: kernel and time, this over that of the model and of the passes, and the other
    times over BNGrad's."""
    rows = []
    for case in document["benchmark"]:
        own, ratios = case["results"].get("bngrad", {}), dict(case["ratios"])
        if "us" not in own:
            continue
        ratios["passes"] = ratios.get(results.over_passes(case), math.nan)
        cluster = re.search(r"cluster_blocks = (\d+)", case["schedule"])
        kernel = case["schedule"].split("_")[0] + (f"/{cluster[1]}" if cluster else "")
        rows.append((f"{case['name']:24}{kernel:6}{results.time_text(own):>9}", ratios, results.nearest_mark(case)))
    columns = [key for key in SHORT if any(key in ratios for _, ratios, _ in rows)]
    head = f"{'case':24}{'kernel':6}{'time':>9}" + "".join(f"{SHORT[key]:>6}" for key in columns)
    lines = []
    for text, ratios, mark in rows:
        texts = [results.ratio_text(ratios, key) or "-" for key in columns]
        texts = [mark + each if key == "model" and key in ratios else each for key, each in zip(columns, texts)]
        lines.append(text + "".join(f"{each:>6}" for each in texts))
    return [head, *lines] if lines else []


def _goal_lines(document):
    best = results.compare_best(document)
    if not best:
        return []
    mean = math.exp(sum(math.log(ratio) for ratio, _ in best.values()) / len(best))
    least = min(best, key=best.get)
    titles = ", ".join(results.TITLES[peer] for peer in results.MAIN_PEERS)
    complete = sum(count == len(results.MAIN_PEERS) for _, count in best.values())
    return [f"best of {titles} over BNGrad, {len(best)} cases, {complete} of them with all {len(results.MAIN_PEERS)}:",
            f"  geometric mean {mean:.2f}, least {best[least][0]:.2f} ({least})"]


def _counter_lines(document):
    lines = []
    for name, result in document["tasks"].get("counters", {}).items():
        if "read" in result:
            moved = (result["read"] + result["written"]) / result["tensor_bytes"]
            lines.append(f"{name}: {moved:.2f} tensors moved")
        else:
            lines.append(f"{name}: {result.get('absent') or result.get('error')}")
    return lines


def make(document, parts, base):
    """The lines for a call with these parts. Those of a section that has more than its share end with their number."""
    has_times = "benchmark" in parts
    wrong = [f"WRONG: {part}: {name}: {why}" for part, name, why in results.wrong_items(document, parts)]
    failed = [f"FAILED: {part}: {why}" for part, why in results.failed_parts(document, parts)]
    sections = {
        "machine": results.machine_lines(document),
        "slots": results.slot_lines(document) if has_times else [],
        "checks": results.check_lines(document) + results.sanitizer_lines(document),
        "notes": document["notes"] + [f"absent: {part}: {why}" for part, why in document["absent"].items()],
        "cases": _case_lines(document) if has_times else [],
        "limits": _goal_lines(document) + results.limit_lines(document["benchmark"])[:1] if has_times else [],
        "counters": _counter_lines(document),
        "frameworks": [framework_tasks.describe(*each) for each in document["tasks"].get("frameworks", {}).items()]
        if "frameworks" in parts else [],
        "wrong": failed + wrong,
    }
    lines = []
    for name, found in sections.items():
        most = MOST[name]
        if len(found) > most:
            found = found[: most - 1] + [f"... and {len(found) - most + 1} more"]
        width = MOST_WRONG_WIDTH if name == "wrong" else MOST_WIDTH
        lines += [line.removeprefix("* ")[:width] for line in found]
    return [*lines, f"written: {base}.md, .json, .svg"]
