"""The kinds of #bngrad.schedule and their parameters, as `bngrad-opt --print-schedules=json` prints them."""

import json
import subprocess
from pathlib import Path
from typing import Callable, NamedTuple, Sequence


class Parameter(NamedTuple):
    """An integer parameter, whose values are all from `least` to `most`, or the powers of 2 or multiples among them."""

    name: str
    default: int
    least: int
    most: int
    form: str

    def list_values(self) -> list[int]:
        """Some legal values, the default twice; most of them are small, so that small programs have several pieces."""
        if self.form == "powers_of_2":
            values = [1 << i for i in range(self.least.bit_length() - 1, self.most.bit_length())]
        elif self.form == "multiples":
            values = [self.least * factor for factor in (1, 2, 4, 8)]
        else:
            # More channels of a block would not fit into the shared memory of a GPU.
            values = [self.least, 1, 2, 3, 7, 16]
        return [self.default, *(value for value in values if self.least <= value <= self.most)]


class Kind(NamedTuple):
    """target: "cpu", "gpu", or "any" for `loops`. loops: a value of ScheduleLoops, such as "rows_of_channels". `parameters`
    are the integer parameters; kinds that have any also have `fma`."""

    name: str
    target: str
    loops: str
    parameters: Sequence[Parameter]

    def takes(self, layout: str) -> bool:
        """Whether it is one for [N, C, S], or `layout` "nhwc" for [N, C]."""
        return self.loops == "any" or (self.loops == "rows_of_channels") == (layout == "nhwc")

    def write(self, pick: Callable[[list], object]) -> str:
        """An attribute of this kind with the values that `pick` picks of lists."""
        fields = [f"{parameter.name}={pick(parameter.list_values())}" for parameter in self.parameters]
        fields += [f"fma={pick(['true', 'false'])}"] * bool(fields)
        return f"#bngrad.schedule<{','.join([self.name, *fields])}>"


def read_kinds(bngrad_opt: str | Path) -> list[Kind]:
    """All kinds, in the order of their declarations."""
    done = subprocess.run([bngrad_opt, "--print-schedules=json"], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    parameters = {target: {fields["name"]: Parameter(*(fields[name] for name in Parameter._fields))
                           for fields in found[f"{target}_parameters"]} for target in ("cpu", "gpu")}
    parameters["any"] = {}
    return [Kind(kind["name"], kind["target"], kind["loops"],
                 [parameters[kind["target"]][name] for name in kind["parameters"] if name != "fma"])
            for kind in found["kinds"]]


def check_names(kinds: list[Kind], target: str, names: Sequence[str], where: str) -> None:
    """Raises ValueError unless each kind of a target begins one of `names`, which `where` has."""
    for kind in kinds:
        if kind.target == target and not any(name.split(",")[0].split(" ")[0] == kind.name for name in names):
            raise ValueError(f"expected a schedule of kind '{kind.name}' in {where}, got none")
