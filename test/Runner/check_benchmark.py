"""check_benchmark.py < LINE: checks that the values of a benchmark line are consistent."""

import math
import sys

values = dict(field.split("=") for field in sys.stdin.readline().split())
seconds = float(values["median_us"]) * 1e-6
size, bandwidth = float(values["bytes"]), float(values["bandwidth_gbps"])


def close(name, expected):
    assert math.isclose(float(values[name]), expected, rel_tol=0.005), (name, expected, values)


close("gbps", size / seconds * 1e-9)
close("ratio", seconds * bandwidth * 1e9 / size)
assert 0 < float(values["min_us"]) <= float(values["median_us"]), values
assert 0.1 < bandwidth < 10000 and float(values["compile_ms"]) > 1, values
