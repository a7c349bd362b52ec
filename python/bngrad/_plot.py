"""Bars on a logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

# Distinguishable with any colour vision.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")
_BAR, _GAP, _LEFT, _WIDTH, _RIGHT, _TOP, _BOTTOM = 13, 14, 250, 560, 80, 92, 52


class Group:
    """Bars with a common label, one for each series, None: no bar; and a mark,
    None: none."""

    def __init__(self, label: str, values: Sequence[float | None], mark: float | None = None):
        self.label, self.values, self.mark = label, values, mark


def ticks(low: float, high: float) -> list[float]:
    """Ends of an axis and the ticks on it: 1, 2 and 5 times powers of 10, or
    for long axes powers alone."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1
    steps = (1, 2, 5) if last - first <= 4 else (1,)
    every = [round(step * 10.0**power, 12 - power) for power in range(first, last + 1) for step in steps]
    begin = max((tick for tick in every if tick <= low), default=every[0])
    end = min(tick for tick in every if tick >= high and tick > begin)
    return [tick for tick in every if begin <= tick <= end]


def number(value: float) -> str:
    """Three digits, without an exponent."""
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e+" in text else f"{value:.6f}".rstrip("0") if "e" in text else text


class _Writer:
    """Collects elements."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: str, **attributes: Any) -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{_format(attributes)}>{escape(text)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> None:
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{_format(attributes)}/>')

    def box(self, x: float, y: float, width: float, height: float, title: str, **attributes: Any) -> None:
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
                          f"{_format(attributes)}><title>{escape(title)}</title></rect>")


def _format(attributes: dict[str, Any]) -> str:
    return "".join(f' {name.rstrip("_").replace("_", "-")}="{value}"' for name, value in attributes.items())


def _write_legend(writer: _Writer, names: Sequence[str], mark: str) -> None:
    x = float(_LEFT)
    for name, color in zip(names, _COLORS):
        writer.box(x, 60, 12, 12, name, fill=color)
        writer.text(x + 17, 70, name)
        x += 40 + 7 * len(name)
    if mark:
        writer.line(x + 6, 58, x + 6, 74, stroke="black", stroke_width=2)
        writer.text(x + 14, 70, mark)


def draw(title: str, subtitle: str, axis: str, names: Sequence[str], groups: Sequence[Group], mark: str = "") -> str:
    """The document: a bar for each of `names` in each group, all above 0."""
    drawn = [value for group in groups for value in (*group.values, group.mark) if value]
    if not drawn or len(names) > len(_COLORS):
        raise ValueError(f"expected bars of 1 to {len(_COLORS)} series, got {len(drawn)} of {len(names)}")
    # Even the shortest bar has a length.
    marks = ticks(min(drawn) / 1.3, max(drawn))
    low, high = math.log10(marks[0]), math.log10(marks[-1])

    def place(value: float) -> float:
        return _LEFT + _WIDTH * (math.log10(value) - low) / (high - low)

    height = len(names) * _BAR + _GAP
    bottom = _TOP + len(groups) * height
    writer = _Writer()
    writer.text(_LEFT, 24, title, font_size=16, font_weight="bold")
    writer.text(_LEFT, 44, subtitle, fill="#555555")
    _write_legend(writer, names, mark)
    for tick in marks:
        writer.line(place(tick), _TOP, place(tick), bottom, stroke="#dddddd")
        writer.text(place(tick), bottom + 17, number(tick), text_anchor="middle")
    writer.text(_LEFT + _WIDTH / 2, bottom + 38, axis, text_anchor="middle")
    for row, group in enumerate(groups):
        top = _TOP + row * height + _GAP / 2
        writer.text(_LEFT - 10, top + len(names) * _BAR / 2 + 4, group.label, text_anchor="end")
        for index, value in enumerate(group.values):
            if value:
                y = top + index * _BAR
                writer.box(_LEFT, y, place(value) - _LEFT, _BAR - 2, f"{names[index]}: {number(value)}",
                           fill=_COLORS[index])
        if group.mark:
            writer.line(place(group.mark), top - 3, place(group.mark), top + len(names) * _BAR + 1, stroke="black",
                        stroke_width=2)
        # A white seam separates the text from the marks below it.
        for index, value in enumerate(group.values):
            if value:
                writer.text(place(value) + 4, top + index * _BAR + _BAR - 3, number(value), font_size=10,
                            fill="#333333", stroke="white", stroke_width=3, paint_order="stroke")
    writer.line(_LEFT, _TOP, _LEFT, bottom, stroke="black")
    width, all_height = _LEFT + _WIDTH + _RIGHT, bottom + _BOTTOM
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{all_height}" '
            f'viewBox="0 0 {width} {all_height}" font-family="sans-serif" font-size="12">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(writer.parts) + "\n</svg>\n")
