"""Choice of the ways in which a program is run."""

from typing import List

import numpy as np

CHIPS = ["sm_75", "sm_80", "sm_90", "sm_90", "sm_120"]
CPU_STAGES = ["import", "decompose", "fuse", "group"]


def cpu_schedule(random: np.random.Generator) -> str:
    def pick(values):
        return values[int(random.integers(len(values)))]

    kind = pick(["loops", "channels", "tiles", "rows", "split", "sizes"])
    if kind == "loops":
        return "#bngrad.schedule<loops>"
    return (f"#bngrad.schedule<{kind},threads={pick([1, 2, 3, 7])},vector_bits={pick([512, 512, 256, 128])},"
            f"streaming_bytes={pick([0, 1])},columns={pick([1024, 256, 64, 16])},row_blocks={pick([1, 2, 5, 16])},"
            f"fma={pick(['true', 'false'])}>")


def gpu_schedule(random: np.random.Generator, chip: str) -> str:
    def pick(values):
        return values[int(random.integers(len(values)))]

    if chip == "sm_90" and pick([True, False]):
        return (f"#bngrad.schedule<one_pass,block_threads={pick([32, 64, 128])},access_bits={pick([128, 64])},"
                f"block_channels={pick([1, 1, 2, 4])},fma=true,cluster_blocks={pick([1, 1, 2, 4])}>")
    return (f"#bngrad.schedule<two_pass,block_threads={pick([32, 64, 128, 256])},access_bits={pick([128, 64])},"
            f"block_accesses={pick([32, 8, 1])},sum_blocks={pick([1, 4, 64])},fma={pick(['true', 'false'])}>")


def cuda_way(random: np.random.Generator) -> str:
    chip = CHIPS[int(random.integers(len(CHIPS)))]
    schedule = f" schedule={gpu_schedule(random, chip)}" if random.random() < 0.4 else ""
    start = ["", "", "", " from=to-linalg", " from=fuse", " form=bytecode"][int(random.integers(6))]
    return f"cuda chip={chip}{schedule}{start}"


def round_trip(random: np.random.Generator) -> str:
    form = ["", " form=generic", " form=bytecode", " form=locations", " form=verified"][int(random.integers(5))]
    start = ["to-linalg", *CPU_STAGES][int(random.integers(5))]
    return f"cpu from={start}{form}" if random.random() < 0.8 else f"cpu{form or ' form=bytecode'}"


def ways_of(seed: int, everything: bool = False) -> List[str]:
    """The ways for a batch that begins with this seed; others are compared bitwise with the first."""
    random = np.random.default_rng([seed, 5])
    if everything:
        found = ["cpu threads=1", "cpu threads=2", "cpu threads=3", "cpu entry=ciface", "cpu mcpu=x86-64-v3",
                 "cpu mcpu=x86-64"]
        found += [f"cpu schedule={cpu_schedule(random)}" for _ in range(4)]
        found += [f"cpu from={start}" for start in ("to-linalg", *CPU_STAGES)]
        found += ["cpu form=generic", "cpu form=bytecode", "cpu form=verified"]
        found += [f"cuda chip={chip}" for chip in dict.fromkeys(CHIPS)] + [cuda_way(random) for _ in range(3)]
        return found + ["runner target=cpu", "runner target=cuda-emulator chip=sm_90"]
    choices = [
        lambda: ["cpu threads=2"], lambda: ["cpu threads=3"], lambda: ["cpu entry=ciface mcpu=x86-64-v3"],
        lambda: ["cpu mcpu=x86-64"],
        lambda: [f"cpu schedule={cpu_schedule(random)}"], lambda: [f"cpu schedule={cpu_schedule(random)}"],
        lambda: [round_trip(random)], lambda: [round_trip(random)],
        lambda: [cuda_way(random)], lambda: [cuda_way(random)],
    ]
    found = ["cpu threads=1"]
    for place in random.choice(len(choices), 2, replace=False):
        found += choices[int(place)]()
    return found
