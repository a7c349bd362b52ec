"""python -m bngrad.bench: its table, its plot and its errors.

RUN: %python -m pytest -q %s
"""

import argparse
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from bngrad import _plot, bench

SVG = "{http://www.w3.org/2000/svg}"


def run(*options, prologue="", status=0):
    program = f"import sys, bngrad._explain as e; e._TRAFFIC_BYTES = 1 << 20\n{prologue}\n" \
              "from bngrad import bench; sys.exit(bench.main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, *options], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def has_module(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("part", bench.PARTS)
def test_all_libraries(tmp_path, part):
    dtypes = "f32,float64" + (",bf16" if has_module("ml_dtypes") else "")
    done = run("--part=" + part, "--shapes=2x3x4x5,2x3x4x5:last,8x16,2x3x2x4x2:last", "--dtype=" + dtypes, "--rounds=2", "--threads=2",
               f"--output={tmp_path}/new")
    lines = done.stdout.splitlines()
    libraries = ["bngrad", *(name for name in ("torch", "jax") if has_module(name))]
    header = next(i for i, line in enumerate(lines) if line.startswith("shape"))
    assert re.fullmatch(r".+, 2 threads, memory \S+ GB/s, medians of 2 rounds", lines[0])
    for name in libraries:
        assert f"{name}, ms" in lines[header]
    rows = [line.split() for line in lines[header + 1:-1]]
    kinds = ["float32", "float64", "bfloat16"][:dtypes.count(",") + 1]
    assert [row[:3] for row in rows] == [
        [shape, layout, kind] for kind in kinds
        for shape, layout in (("2x3x4x5", "first"), ("2x3x4x5", "last"), ("8x16", "-"), ("2x3x2x4x2", "last"))]
    for row in rows:
        memory, *times = map(float, row[3:])
        assert memory > 0 and len(times) == 2 * len(libraries) - 1 and min(times) > 0
        for time, ratio in zip(times[1:], times[len(libraries):]):
            assert abs(time / times[0] - ratio) <= 0.02 * ratio + 0.02
    assert lines[-1] == f"plot: {tmp_path}/new/bngrad-bench.svg"
    assert done.stderr == "" or "[" not in done.stderr
    root = ElementTree.parse(tmp_path / "new/bngrad-bench.svg").getroot()
    boxes = root.findall(f"{SVG}rect")
    # The ground, the legend and a bar for each time.
    assert len(boxes) == 1 + len(libraries) * (1 + len(rows))
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert bench.PARTS[part][0] in texts
    assert "time of a call, ms (logarithmic)" in texts and "time that memory allows" in texts
    assert "2x3x4x5 channels last float32" in texts and "8x16 float64" in texts
    assert set(libraries) <= set(texts)


def test_missing_libraries(tmp_path):
    done = run("--shapes=2x3x4", "--rounds=1", f"--output={tmp_path}",
               prologue="sys.modules['torch'] = sys.modules['jax'] = None")
    assert "not installed: torch, jax" in done.stdout
    done = run("--shapes=2x3x4", "--rounds=1", f"--output={tmp_path}", prologue="sys.modules['numpy'] = None", status=1)
    assert done.stderr == "bngrad: error: expected numpy, got none: pip install numpy\n"


@pytest.mark.parametrize("option, text", [
    ("--shapes=2x0x4", "argument --shapes: expected sizes of at least 1 such as 32x64x56x56 or 32x64x56x56:last, got "
                       "'2x0x4'"),
    ("--shapes=7", "argument --shapes: expected sizes of at least 1 such as 32x64x56x56 or 32x64x56x56:last, got '7'"),
    ("--shapes=2x3x4:first", "argument --shapes: expected sizes of at least 1 such as 32x64x56x56 or "
                             "32x64x56x56:last, got '2x3x4:first'"),
    ("--shapes=", "argument --shapes: expected sizes of at least 1 such as 32x64x56x56 or 32x64x56x56:last, got ''"),
    ("--dtype=int8", "argument --dtype: expected float16, bfloat16, float32 or float64, got int8"),
    ("--threads=0", "argument --threads: expected 1 to 1024, got '0'"),
    ("--rounds=many", "argument --rounds: expected 1 to 100000, got 'many'"),
])
def test_wrong_options(option, text):
    done = run(option, status=2)
    assert done.stderr.splitlines()[-1] == f"python -m bngrad.bench: error: {text}"


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("--shapes=2x3", "--rounds=1", f"--output={tmp_path}/file", status=1)
    assert re.fullmatch(r"bngrad: error: .*file.*\n", done.stderr)


@pytest.mark.parametrize("part", bench.PARTS)
def test_wrong_results_are_an_error(part):
    case = bench.Case((2, 3, 4), False, "float32")
    data = bench.Data(case)
    expected = [array.copy() for array in bench.make_bngrad(data, part)()]
    names = bench.PARTS[part][1]
    assert len(names) == len(expected)
    bench.check("other", case, expected, expected, names)
    for index, name in enumerate(names):
        results = [array.copy() for array in expected]
        results[index].flat[1] += 0.1 * np.abs(results[index]).max()
        with pytest.raises(RuntimeError, match="2x3x4 channels first float32: expected other and bngrad to differ by at "
                                               f"most .* in {name}, got"):
            bench.check("other", case, results, expected, names)
        results[index].flat[1] = np.nan
        with pytest.raises(RuntimeError):
            bench.check("other", case, results, expected, names)


def test_data_are_in_the_order_of_memory():
    data = bench.Data(bench.Case((2, 3, 4, 5), True, "float32"))
    assert data.input.shape == (2, 3, 4, 5) and data.input.strides[1] == 4
    np.testing.assert_allclose(data.mean, data.input.mean((0, 2, 3)), rtol=1e-5, atol=1e-6)


def test_progress():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    progress = bench.Progress(2, stream)
    progress.step("first")
    progress.step("second")
    progress.end()
    shown = [line.rstrip() for line in stream.getvalue().split("\r")[1:]]
    assert shown == [f"[{'.' * 30}] 0/2 first", f"[{'#' * 15}{'.' * 15}] 1/2 second", f"[{'#' * 30}] 2/2"]
    quiet = io.StringIO()
    progress = bench.Progress(1, quiet)
    progress.step("text")
    progress.end()
    assert quiet.getvalue() == ""


@pytest.mark.parametrize("low, high, expected", [
    (0.3, 4, [0.2, 0.5, 1, 2, 5]),
    (1, 1, [1, 2]),
    (0.002, 90, [0.001, 0.01, 0.1, 1, 10, 100]),
    (2, 20, [2, 5, 10, 20]),
    (1e-7, 2e-7, [1e-7, 2e-7]),
])
def test_ticks(low, high, expected):
    ticks = _plot.ticks(low, high)
    assert ticks == pytest.approx(expected) and ticks[0] <= low and ticks[-1] >= high


def test_plot():
    text = _plot.draw("a < b", "&", "ms", ["one", "two"],
                      [_plot.Group("x", [1.0, 100.0], 10.0), _plot.Group("y", [None, 10.0])], "mark")
    root = ElementTree.fromstring(text)
    bars = [box for box in root.findall(f"{SVG}rect") if box.find(f"{SVG}title") is not None][2:]
    assert [bar.find(f"{SVG}title").text for bar in bars] == ["one: 1", "two: 100", "two: 10"]
    first, second, third = (float(bar.get("width")) for bar in bars)
    # Each factor of 10 has the same length.
    assert second - third == pytest.approx(third - first, abs=0.2) and first > 0
    width = float(root.get("width"))
    assert all(0 <= float(text.get("x")) <= width for text in root.findall(f"{SVG}text"))
    for groups, names in (([], ["a"]), ([_plot.Group("x", [1.0] * 5)], list("abcde"))):
        with pytest.raises(ValueError, match="expected bars of 1 to 4 series"):
            _plot.draw("", "", "", names, groups)


@pytest.mark.parametrize("value, text", [(0.000123, "0.000123"), (12.34, "12.3"), (1234.5, "1234"), (1e-5, "0.00001")])
def test_numbers(value, text):
    assert _plot.number(value) == text


def test_parsers():
    assert bench.parse_shapes("2x3:last,4x5x6:last") == [((2, 3), False), ((4, 5, 6), True)]
    assert len(bench.parse([]).shapes) >= 10
    with pytest.raises(argparse.ArgumentTypeError):
        bench.parse_count("1025", 1024)
