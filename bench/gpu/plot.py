"""The plot of the GPU suite as SVG, without a library: times over the 3-pass time, with a
panel for each type and layout, a row for each shape, and a colour for each implementation."""

import html
import math

import items

COLORS = {
    "bngrad": "#d62728",
    "torch": "#ee8a1d",
    "cudnn": "#1f77b4",
    "cudnn_graph": "#17a2b8",
    "compile": "#7f7f7f",
    "apex": "#2ca02c",
    "flag_gems": "#8c564b",
    "quack": "#9467bd",
    "triton": "#e377c2",
}
# Of BNGrad, over the 3-pass time.
LIMITS = {"one_pass": items.LIMITS["one_pass"], "two_pass": items.LIMITS["two_pass"] * 5 / 3}
MOST = 20
LEAST = 0.8
LEFT, WIDTH, STEP, TOP, BOTTOM = 130, 420, 18, 64, 44
TICKS = ((1, "1"), (5 / 3, "5 passes"), (3, "3"), (5, "5"), (10, "10"), (20, "20"))


def _x(value):
    value = min(max(value, LEAST), MOST)
    return WIDTH * math.log(value / LEAST) / math.log(MOST / LEAST)


def _text(x, y, text, anchor="start", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(text)}</text>'


def _points(case):
    """Times over the 3-pass time, by implementation."""
    over = case["ratios"].get("over3")
    if over is None:
        return {}
    found = {"bngrad": over}
    for name in COLORS:
        if name in case["ratios"]:
            found[name] = over * case["ratios"][name]
    return found


def _diamond(x, y, color):
    return f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" fill="{color}"/>'


def _panel(title, cases, left, top):
    height = STEP * len(cases)
    out = [_text(left + WIDTH / 2, top - 24, title, "middle", 13)]
    for value, label in TICKS:
        x = left + _x(value)
        color = "#999999" if value < 2 else "#dddddd"
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{top + height}" stroke="{color}"/>'
        )
        out.append(_text(x, top - 8, label, "middle", 10))
    for row, case in enumerate(cases):
        y = top + STEP * (row + 0.5)
        out.append(_text(left - 8, y + 4, case["name"].split()[0], "end"))
        points = _points(case)
        limit = LIMITS["one_pass" if case["schedule"].startswith("one_pass") else "two_pass"]
        if case.get("inputs") == 1:
            # Of 2 and 3 passes instead of 3 and 5.
            limit *= 2 / 3 if case["schedule"].startswith("one_pass") else 3 / 5
        limit = left + _x(limit)
        out.append(
            f'<line x1="{limit:.1f}" x2="{limit:.1f}" y1="{y - 7}" y2="{y + 7}"'
            ' stroke="#17becf" stroke-width="3"/>'
        )
        for name in reversed(list(COLORS)):
            if name not in points:
                continue
            x = left + _x(points[name])
            if name == "bngrad":
                out.append(_diamond(x, y, COLORS[name]))
            else:
                out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[name]}"/>')
    return out, height


def draw(document, titles, large_bytes):
    """The text of the SVG."""
    groups = {}
    for case in document["benchmark"]:
        if case["tensor_bytes"] >= large_bytes and _points(case):
            groups.setdefault((case["type"], case["layout"]), []).append(case)
    total_width = 2 * (LEFT + WIDTH) + 40
    out, y = [], TOP + 10
    keys = [(t, l) for t in ("f32", "bf16", "f16") for l in ("nchw", "nhwc") if (t, l) in groups]
    for first in range(0, len(keys), 2):
        heights = []
        for column, key in enumerate(keys[first : first + 2]):
            name = {"nchw": "NCHW, NCL", "nhwc": "NHWC, 2-D"}[key[1]]
            left = LEFT + column * (LEFT + WIDTH + 10)
            panel, height = _panel(f"{key[0]}, {name}", groups[key], left, y)
            out += panel
            heights.append(height)
        y += max(heights) + TOP
    if not keys:
        out.append(_text(LEFT, y, "not measured"))
        y += TOP
    head, x = [], 10
    for name, color in COLORS.items():
        shape = _diamond(x, 14, color)
        if name != "bngrad":
            shape = f'<circle cx="{x}" cy="14" r="4" fill="{color}"/>'
        head += [shape, _text(x + 9, 18, titles[name])]
        x += 125
    machine = document["machine"]
    foot = (
        "time over that of 3 tensors at copy bandwidth, bar: limit of BNGrad;"
        f" {machine['gpu']}, {machine['date']}, commit {machine['commit']}"
    )
    size = f'width="{total_width}" height="{y}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">',
            f'<rect {size} fill="white"/>',
            *head,
            *out,
            _text(LEFT, y - 14, foot),
            "</svg>\n",
        ]
    )
