"""synchronized.py RUNNER DIR: torch's synchronized forward pass, for parts of a batch with different sizes.

numpy computes the statistics of the parts and of the whole batch in float64. The program joins the former, rounded to
f32, and normalizes. With G of docs/numerics.md for the number of parts, and 8 roundings for 1/invstd^2 - eps and
1/sqrt, a mean may be off by G times the mean of |mean|, and an inverse standard deviation by (G + 8u) of itself.
"""

import os
import subprocess
import sys

import numpy as np

PROGRAM = """
func.func @main(%x: tensor<NxCxf32>, %means: tensor<PxCxf32>, %stds: tensor<PxCxf32>, %counts: tensor<Pxf32>)
    -> (tensor<Cxf32>, tensor<Cxf32>, tensor<NxCxf32>) {
  %none = "torch.constant.none"() : () -> !torch.none
  %momentum = "torch.constant.float"() <{value = 0.3 : f64}> : () -> !torch.float
  %eps = "torch.constant.float"() <{value = 0.5 : f64}> : () -> !torch.float
  %0:2 = "torch.operator"(%x, %means, %stds, %none, %none, %momentum, %eps, %counts)
      <{name = "torch.aten.batch_norm_gather_stats_with_counts"}>
      : (tensor<NxCxf32>, tensor<PxCxf32>, tensor<PxCxf32>, !torch.none, !torch.none, !torch.float, !torch.float,
         tensor<Pxf32>) -> (tensor<Cxf32>, tensor<Cxf32>)
  %1 = "torch.operator"(%x, %none, %none, %0#0, %0#1, %eps) <{name = "torch.aten.batch_norm_elemt"}>
      : (tensor<NxCxf32>, !torch.none, !torch.none, tensor<Cxf32>, tensor<Cxf32>, !torch.float) -> tensor<NxCxf32>
  return %0#0, %0#1, %1 : tensor<Cxf32>, tensor<Cxf32>, tensor<NxCxf32>
}
"""
U = 2.0**-24
EPSILON = 0.5


def main():
    runner, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(20261128)
    for counts in ([7], [3, 40], [1, 5, 300, 12, 64]):
        channels = 5
        x = random.normal(np.linspace(-3, 3, channels), np.linspace(0.5, 2, channels), (sum(counts), channels))
        x = x.astype(np.float32)
        whole = x.astype(np.float64)
        parts = np.split(whole, np.cumsum(counts)[:-1])
        means = np.array([p.mean(0) for p in parts], np.float32)
        stds = np.array([1 / np.sqrt(p.var(0) + EPSILON) for p in parts], np.float32)
        for name, value in zip("xmrn", (x, means, stds, np.array(counts, np.float32))):
            np.save(os.path.join(directory, name), value)
        text = PROGRAM.replace("N", str(len(x))).replace("Px", f"{len(counts)}x").replace("Cx", f"{channels}x")
        program = os.path.join(directory, "program.mlir")
        with open(program, "w") as file:
            file.write(text)
        results = [os.path.join(directory, f"result{i}.npy") for i in range(3)]
        subprocess.run([runner, program, *(f"--arg={directory}/{name}.npy" for name in "xmrn"),
                        *(f"--result={path}" for path in results)], check=True)
        mean, inv_std, y = (np.load(path).astype(np.float64) for path in results)
        g = 4 * U * (4 + np.log2(len(counts) + 1))
        expected, r = whole.mean(0), 1 / np.sqrt(whole.var(0) + EPSILON)
        of_mean = g * abs(means).max(0)
        assert (abs(mean - expected) <= of_mean).all(), (mean, expected)
        assert (abs(inv_std - r) <= (g + 8 * U) * r).all(), (inv_std, r)
        bound = r * (abs(whole - expected) * (g + 16 * U) + of_mean)
        assert (abs(y - (whole - expected) * r) <= bound).all()
    print("3 batches agree")


if __name__ == "__main__":
    main()
