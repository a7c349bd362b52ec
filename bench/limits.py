"""The limits of `--assert`; README.md explains them."""

import cases
from judge import TIE, Limit

# Over the floor: the larger one of the walked floor and of the time of the kernel's own loops in a cache. Those of a
# fused neighbour are over the walked floor, which reads the neighbour's data, too.
FLOOR = {"f32": 1.10, "bf16": 1.15, "f16": 1.15}
# The forward pass over its walked floor, beside other compilers, by element type and layout.
FORWARD_FLOOR = {("f32", "nchw"): 1.15, ("f32", "nhwc"): 1.35, ("bf16", "nchw"): 1.4, ("bf16", "nhwc"): 1.4}
# Over the hand-written kernel with the same promises: each case, and the mean of those above 20 MB.
HAND = 1.07
HAND_MEAN = Limit("hand, geometric mean", "bngrad", "hand", 1.0)
# Dynamic shapes over static ones, and strided data over dynamic shapes.
CLOSE = 1.05
NOISE = 0.03
CALL_US = 1.0
COMPILE_MS = 75
PASSES_MS = 30

PEERS = ("torch", "onednn", "onednn-debian")
# The same kernel once more: neither must be found to be slower.
TWINS = [Limit("twin", "bngrad-twin", "bngrad", 1 + TIE), Limit("twin", "bngrad", "bngrad-twin", 1 + TIE)]


def find(case):
    """The limits of the ratios of an ordinary case."""
    found = [Limit(peer, "bngrad", peer, 1 + TIE) for peer in PEERS]
    if case.is_large:
        found.append(Limit("floor", "bngrad", "floor", FLOOR[case.type]))
    # The smallest shape is limited by the time of a call.
    if case.sizes != cases.TINY:
        found += [
            Limit("hand", "bngrad", "hand", HAND),
            Limit("dynamic over static", "bngrad-dynamic", "bngrad", CLOSE),
            Limit("strided over dynamic", "bngrad-strided", "bngrad-dynamic", CLOSE),
        ]
    return found


def find_fused(case):
    """The limits of fused neighbours, by the neighbour. An extended bf16 grad_output has
    fewer bytes, and must not cost time."""
    most = FLOOR[case.type]
    return [
        Limit("relu", "bngrad-relu", "walk-sums", most),
        Limit("residual", "bngrad-residual", "walk-sums", most),
        Limit("consumer", "bngrad-consumer", "walk-elements", most),
        Limit("cast", "bngrad-cast", "bngrad", 1 + NOISE),
    ]


def find_failures(case, results):
    """One line per contender of BNGrad that could not be measured, and one if a call
    takes too long."""
    failures = []
    for name, result in results.items():
        if name.startswith("bngrad") and "warm_us" not in result:
            reason = result.get("error") or result.get("absent") or "not measured"
            failures.append(f"{name}: {reason}")
    time = results.get("bngrad", {}).get("warm_us", 0)
    if case.sizes == cases.TINY and time > CALL_US:
        failures.append(f"a call takes {time:.2f} us, limit {CALL_US}")
    return failures


def judge_latency(latency):
    """One line for each limit that compilation exceeds."""
    if "error" in latency:
        return [latency["error"]]
    failures = []
    if latency["compile_ms"] > COMPILE_MS:
        failures.append(f"compiling takes {latency['compile_ms']:.0f} ms, limit {COMPILE_MS}")
    if latency["passes_ms"] > PASSES_MS:
        failures.append(f"passes take {latency['passes_ms']:.0f} ms, limit {PASSES_MS}")
    return failures
