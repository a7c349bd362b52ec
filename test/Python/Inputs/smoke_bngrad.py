"""Smoke test of the wheel bngrad; the argument is the root of the sources."""

import pathlib
import subprocess
import sys
import time

root = sys.argv[1]

import_time = min(
    float(subprocess.run(
        [sys.executable, "-c",
         "import time; start = time.process_time(); import bngrad\n"
         "print(time.process_time() - start)"],
        check=True, capture_output=True, text=True).stdout)
    for _ in range(5))
assert import_time <= 0.05, f"expected import in 50 ms, got {import_time}"

import bngrad  # noqa: E402

assert "numpy" not in sys.modules
assert f"project(BNGrad VERSION {bngrad.__version__} " in pathlib.Path(root, "CMakeLists.txt").read_text()

import numpy as np  # noqa: E402

x = np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2) ** 1.5
dy = np.cos(x)
axes = (0, 2, 3)
mean, inv_std = x.mean(axes), 1 / x.std(axes)
got = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)


def spread(a):
    return a.astype(np.float64).reshape(1, 3, 1, 1)


centred = (x - spread(mean)) * spread(inv_std)
offset = dy.sum(axes, dtype=np.float64)
scale = (dy * centred).sum(axes)
expected = (spread(inv_std) * (dy - (spread(offset) + centred * spread(scale)) / 16), scale, offset)
for a, b in zip(got, expected):
    assert np.abs(a - b).max() <= 1e-5, (a, b)
try:
    bngrad.batch_norm_backward(dy, x, mean[:2], inv_std=inv_std)
except ValueError as error:
    assert "mean: expected dim 0" in str(error), error
else:
    raise AssertionError("expected an error")

with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
inside = sorted(path for path in paths if path.startswith(root + "/"))
assert not inside, inside
libraries = [path for path in paths if "BNGrad" in path]
assert len(libraries) == 2 and all(path.startswith(sys.prefix) for path in libraries), libraries
print(f"bngrad {bngrad.__version__}, imported in {import_time * 1000:.1f} ms")
