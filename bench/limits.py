"""The limits of `--assert`. Ratios are warm medians; see README.md."""

import cases

FLOOR3_LONG_ROWS = 1.45
FLOOR3_SHORT_ROWS = 1.75
LONG_ROW = 784
FLOOR5 = 1.15
FEW_CHANNELS = 8
HALF = 1.7
NOISE = 0.03
CLOSE = 0.05
FUSED_BYTES = 1.1
CALL_US = 1.0
COMPILE_MS = 100
PASSES_MS = 30
# The hand-written kernel is a limit if its ratio to its floor is at most this.
HAND_FLOOR3 = 1.5
HAND_FLOOR5 = 1.15

PEERS = ("torch", "onednn", "onednn-debian")


def floor_limit(case):
    """The limit over a floor: its number of tensors (3 or 5) and the factor."""
    if case.type != "f32":
        return case.floor_tensors, HALF
    if case.layout == "nhwc" or case.channels < FEW_CHANNELS:
        return 5, FLOOR5
    if case.row >= LONG_ROW:
        return 3, FLOOR3_LONG_ROWS
    return 3, FLOOR3_SHORT_ROWS


def hand_counts(case, hand):
    """Whether the hand-written kernel is close enough to its floor to be a limit.

    In cache no floor applies, so it always is, except for the smallest shape,
    which is limited by the time of a call.
    """
    if not case.is_large:
        return case.sizes != cases.TINY
    if case.layout == "nhwc":
        return hand["warm_over_floor5"] <= HAND_FLOOR5
    return hand["warm_over_floor3"] <= HAND_FLOOR3


def is_at_floor(case, peer):
    """Whether a peer is at the floor, within noise."""
    tensors = case.floor_tensors
    return peer["warm_over_floor%d" % tensors] <= 1 + CLOSE


def judge(case, results, ratios):
    """One line per limit that `case` exceeds.

    `results` maps contenders to their summaries, `ratios` maps (first, second)
    to the ratio of their times.
    """
    failures = []
    own = results.get("bngrad", {})
    for name, result in results.items():
        if name.startswith("bngrad") and "warm_us" not in result:
            reason = result.get("error") or result.get("absent") or "not measured"
            failures.append(f"{name}: {reason}")
    if "warm_us" not in own:
        return failures
    if case.is_large:
        tensors, limit = floor_limit(case)
        value = own[f"warm_over_floor{tensors}"]
        if value > limit:
            failures.append(f"{value:.2f} of the {tensors}-pass floor, limit {limit}")
    for peer in PEERS:
        value = ratios.get((peer, "bngrad"))
        if value is None:
            continue
        noise = NOISE if is_at_floor(case, results[peer]) else 0
        if value < 1 - noise:
            failures.append(f"{peer} is {1 / value:.2f} times faster")
    value = ratios.get(("bngrad", "hand"))
    if value and value > 1 + CLOSE and hand_counts(case, results["hand"]):
        failures.append(f"{value:.2f} of the time of the kernel by hand")
    for first, second in (
        ("bngrad-dynamic", "bngrad"),
        ("bngrad-strided", "bngrad-dynamic"),
    ):
        value = ratios.get((first, second))
        if value and value > 1 + CLOSE:
            failures.append(f"{first} takes {value:.2f} of the time of {second}")
    return failures


def added_passes(case, variant):
    """Tensors of the case's type that a fused neighbour adds to the base's passes:
    3 in nchw, 5 in nhwc, where grad_output is read twice."""
    reads = 2 if case.layout == "nhwc" else 1
    return {"relu": reads, "residual": reads, "cast": -0.5 * reads, "consumer": 1}[
        variant
    ]


def fused_limit(case, variant):
    """The limit of a fused kernel's time over that of the base: an added byte
    may cost 1.1 times a byte of the base; fewer bytes must not cost time."""
    base = 5 if case.layout == "nhwc" else 3
    added = added_passes(case, variant)
    return 1 + FUSED_BYTES * added / base if added > 0 else 1 + NOISE


def judge_fused(case, results, ratios):
    """As `judge`, for fused neighbours."""
    failures = []
    for name, result in results.items():
        if name == "bngrad":
            continue
        if "warm_us" not in result:
            reason = result.get("error") or result.get("absent") or "not measured"
            failures.append(f"{name}: {reason}")
            continue
        value = ratios.get((name, "bngrad"))
        limit = fused_limit(case, name.removeprefix("bngrad-"))
        if value and value > limit:
            failures.append(
                f"{name} takes {value:.2f} of the time without, limit {limit:.2f}"
            )
    return failures


def judge_latency(latency):
    """As `judge`, for compilation."""
    if "error" in latency:
        return [latency["error"]]
    failures = []
    if latency["compile_ms"] > COMPILE_MS:
        failures.append(f"compiling takes {latency['compile_ms']:.0f} ms, limit {COMPILE_MS}")
    if latency["passes_ms"] > PASSES_MS:
        failures.append(f"passes take {latency['passes_ms']:.0f} ms, limit {PASSES_MS}")
    return failures
