"""Choice of the ways in which a program is run."""

import sys
from pathlib import Path
from typing import List

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from schedule_kinds import Kind, read_kinds  # noqa: E402, F401

CHIPS = ["sm_75", "sm_80", "sm_90", "sm_90", "sm_120"]
CPU_STAGES = ["import", "decompose", "fuse", "group"]


def make_schedule(random: np.random.Generator, kinds: List[Kind]) -> str:
    def pick(values):
        return values[int(random.integers(len(values)))]

    return pick(kinds).write(pick)


def cpu_schedule(random: np.random.Generator, kinds: List[Kind]) -> str:
    return make_schedule(random, [kind for kind in kinds if kind.target != "gpu"])


def gpu_schedule(random: np.random.Generator, kinds: List[Kind], chip: str) -> str:
    """Of chips without clusters, a kind that needs none."""
    found = [kind for kind in kinds if kind.target == "gpu"]
    if chip != "sm_90":
        found = [kind for kind in found if not any(parameter.name == "cluster_blocks" for parameter in kind.parameters)]
    return make_schedule(random, found)


def cuda_way(random: np.random.Generator, kinds: List[Kind]) -> str:
    chip = CHIPS[int(random.integers(len(CHIPS)))]
    schedule = f" schedule={gpu_schedule(random, kinds, chip)}" if random.random() < 0.4 else ""
    start = ["", "", "", " from=to-linalg", " from=fuse", " form=bytecode"][int(random.integers(6))]
    return f"cuda chip={chip}{schedule}{start}"


def round_trip(random: np.random.Generator) -> str:
    form = ["", " form=generic", " form=bytecode", " form=locations", " form=verified"][int(random.integers(5))]
    start = ["to-linalg", *CPU_STAGES][int(random.integers(5))]
    return f"cpu from={start}{form}" if random.random() < 0.8 else f"cpu{form or ' form=bytecode'}"


def ways_of(seed: int, kinds: List[Kind], everything: bool = False) -> List[str]:
    """The ways for a batch that begins with this seed; others are compared bitwise with the first."""
    random = np.random.default_rng([seed, 5])
    if everything:
        found = ["cpu threads=1", "cpu threads=2", "cpu threads=3", "cpu entry=ciface", "cpu mcpu=x86-64-v3",
                 "cpu mcpu=x86-64"]
        found += [f"cpu schedule={cpu_schedule(random, kinds)}" for _ in range(4)]
        found += [f"cpu from={start}" for start in ("to-linalg", *CPU_STAGES)]
        found += ["cpu form=generic", "cpu form=bytecode", "cpu form=verified"]
        found += [f"cuda chip={chip}" for chip in dict.fromkeys(CHIPS)] + [cuda_way(random, kinds) for _ in range(3)]
        return found + ["runner target=cpu", "runner target=cuda-emulator chip=sm_90"]
    choices = [
        lambda: ["cpu threads=2"], lambda: ["cpu threads=3"], lambda: ["cpu entry=ciface mcpu=x86-64-v3"],
        lambda: ["cpu mcpu=x86-64"],
        lambda: [f"cpu schedule={cpu_schedule(random, kinds)}"], lambda: [f"cpu schedule={cpu_schedule(random, kinds)}"],
        lambda: [round_trip(random)], lambda: [round_trip(random)],
        lambda: [cuda_way(random, kinds)], lambda: [cuda_way(random, kinds)],
    ]
    found = ["cpu threads=1"]
    for place in random.choice(len(choices), 2, replace=False):
        found += choices[int(place)]()
    return found
