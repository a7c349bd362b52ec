"""Training steps of torchvision's networks with PyTorch, with and without bngrad.torch.

    PYTHONPATH=<folder of bngrad> python bench/torch_steps.py [--isa=NAME] [--output=FILE.md] [--rounds=N] [--threads=N]

Needs torch and torchvision. The result goes to bench/results/torch-steps-<instruction set>.md: the time of a step, the
share of it that batch norms take, and by how much a step could be faster at most, with batch norms that take no time.

A step is the forward pass, the loss, the backward pass, and SGD. The contenders are three networks with the same
parameters that take steps in turns: PyTorch's, bngrad's, and PyTorch's once more, which shows the noise.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import statistics
import sys
import textwrap
import time

import instruction_sets
import torch_process

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Images of a batch, and their height and width.
BATCH, SIZE = 32, 64
NETWORKS = {"ResNet-18": "resnet18", "MobileNetV3-small": "mobilenet_v3_small"}
# Ops of PyTorch's batch norms; bngrad replaces what these names call.
OPS = ("aten::native_batch_norm", "aten::native_batch_norm_backward")
CONTENDERS = ("PyTorch", "bngrad", "twin")


@dataclasses.dataclass
class Row:
    """Seconds of a step by contender, and shares of batch norms in a step, by contender."""

    network: str
    type: str
    layout: str
    seconds: dict
    shares: dict

    @property
    def ratio(self):
        return self.seconds["PyTorch"] / self.seconds["bngrad"]

    @property
    def bound(self):
        """What `ratio` would be if batch norms took no time."""
        return 1 / (1 - self.shares["PyTorch"])

    @property
    def noise(self):
        return self.seconds["PyTorch"] / self.seconds["twin"]


class Trainer:
    """A network in training."""

    def __init__(self, network, type, is_last, is_enabled):
        import torch
        import torchvision

        torch.manual_seed(0)
        self.memory_format = torch.channels_last if is_last else torch.contiguous_format
        self.network = torchvision.models.get_model(network, num_classes=10).to(memory_format=self.memory_format)
        self.optimizer = torch.optim.SGD(self.network.parameters(), 0.01, momentum=0.9)
        self.type, self.is_enabled = type, is_enabled
        self.seconds, self.shares = [], []

    def step(self, images, labels):
        import torch

        import bngrad.torch

        self.optimizer.zero_grad()
        with bngrad.torch.enabled() if self.is_enabled else contextlib.nullcontext():
            with torch.autocast("cpu", torch.bfloat16, enabled=self.type == "bf16"):
                logits = self.network(images.to(memory_format=self.memory_format))
            torch.nn.functional.cross_entropy(logits.float(), labels).backward()
        self.optimizer.step()

    def measure(self, batch):
        start = time.perf_counter()
        self.step(*batch)
        self.seconds.append(time.perf_counter() - start)

    def measure_share(self, batch):
        """Profiles a step. The profiler takes time itself, so both times are of this step."""
        from torch import profiler

        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as profile:
            start = time.perf_counter()
            self.step(*batch)
            seconds = time.perf_counter() - start
        self.shares.append(sum(event.cpu_time_total for event in profile.key_averages() if event.key in OPS) / 1e6 / seconds)


def measure(title, type, is_last, rounds):
    import torch

    batch = torch.randn(BATCH, 3, SIZE, SIZE), torch.arange(BATCH) % 10
    trainers = {name: Trainer(NETWORKS[title], type, is_last, name == "bngrad") for name in CONTENDERS}
    for trainer in trainers.values():
        # Allocates memory, and compiles what oneDNN and bngrad compile.
        trainer.step(*batch)
    for index in range(rounds):
        for trainer in trainers.values():
            trainer.measure(batch)
            if index % 4 == 0:
                trainer.measure_share(batch)
    row = Row(title, type, "channels last" if is_last else "channels first",
              {name: statistics.median(trainer.seconds) for name, trainer in trainers.items()},
              {name: statistics.median(trainer.shares) for name, trainer in trainers.items()})
    print(f"{title} {type} {row.layout}: {row.ratio:.3f} of at most {row.bound:.3f}, twin {row.noise:.3f}", flush=True)
    return row


def list_types():
    """The types for which PyTorch's convolutions have kernels on this CPU; others would take nearly all of a step."""
    import torch

    return ("f32", "bf16") if torch.ops.mkldnn._is_mkldnn_bf16_supported() else ("f32",)


def report(described, version, threads, rounds, rows):
    types = {row.type for row in rows}
    bf16 = "bf16 by autocast" if "bf16" in types else "bf16 is not measured, as oneDNN has no convolutions of bf16 for this CPU"
    lines = [
        "# Training steps with bngrad.torch",
        "",
        *textwrap.wrap(
            f"`bench/torch_steps.py`: PyTorch {version}, {described['cpu']}, {instruction_sets.to_text(described)}, {threads} "
            f"threads, commit `{described['commit']}`, {described['date']}. Batches of {BATCH} images of {SIZE}x{SIZE}; "
            f"{bf16}. Medians of {rounds} steps in which the contenders take turns. The share is the time of batch norms, forward "
            "and backward, in a step. The bound is what PyTorch / bngrad would be if batch norms took no time: 1 / (1 - share). "
            "The twin is PyTorch once more.", 115),
        "",
        "| network | type | layout | PyTorch, ms | bngrad, ms | share in PyTorch | share with bngrad | PyTorch / bngrad | bound | twin |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(f"| {row.network} | {row.type} | {row.layout} | {row.seconds['PyTorch'] * 1e3:.0f} "
                     f"| {row.seconds['bngrad'] * 1e3:.0f} | {row.shares['PyTorch']:.1%} | {row.shares['bngrad']:.1%} "
                     f"| {row.ratio:.3f} | {row.bound:.3f} | {row.noise:.3f} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    torch_process.add_isa_option(parser)
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/torch-steps-<instruction set>.md")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch_process.restart(arguments.isa, arguments.threads)
    import torch

    described = torch_process.describe(ROOT, arguments.threads)
    torch.set_num_threads(arguments.threads)
    rows = [measure(title, type, is_last, arguments.rounds)
            for title in NETWORKS for type in list_types() for is_last in (False, True)]
    lines = report(described, torch.__version__, arguments.threads, arguments.rounds, rows)
    output = arguments.output or ROOT / "bench" / "results" / f"torch-steps-{instruction_sets.find(described['isa']).stem}.md"
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
