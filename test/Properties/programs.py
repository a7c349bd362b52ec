"""MLIR functions and their runs."""

import subprocess
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import numpy as np

from configuration import Configuration
from floats import Array


def tensor(kind: str, sizes: Sequence) -> str:
    return "tensor<" + "".join(f"{size}x" for size in sizes) + kind + ">"


class Value:
    """An SSA value: name and type."""

    def __init__(self, name: str, kind: str, shape: Sequence[int],
                 sizes: Sequence):
        self.name, self.kind = name, kind
        self.shape, self.sizes = tuple(shape), tuple(sizes)
        self.type = tensor(kind, sizes)

    def __str__(self) -> str:
        return f"{self.name} : {self.type}"


class Function:
    """A public function under construction. Equal arguments become one."""

    def __init__(self, name: str, configuration: Configuration):
        self.name, self.configuration = name, configuration
        self.random = np.random.RandomState(configuration.seed + len(name))
        self.arguments: List[Tuple[Value, Array]] = []
        self.lines: List[str] = []
        self.returned: List[Value] = []

    def new(self, kind: str, shape: Sequence[int]) -> Value:
        """A value of that shape, with some dynamic sizes in its type."""
        sizes = [size if self.random.random_sample()
                 >= self.configuration.dynamic else "?" for size in shape]
        number = len(self.arguments) + len(self.lines)
        return Value(f"%v{number}", kind, shape, sizes)

    def argument(self, array: Array) -> Value:
        for value, known in self.arguments:
            if known is array:
                return value
        value = self.new(array.kind, array.shape)
        self.arguments.append((value, array))
        return value

    def op(self, mnemonic: str, operands: Dict[str, object], attributes: str,
           results: List[Tuple[str, Sequence[int]]]) -> List[Value]:
        """A bngrad op; operands are Arrays or Values, None if absent."""
        clauses = []
        for name, operand in operands.items():
            if isinstance(operand, Array):
                operand = self.argument(operand)
            if operand is not None:
                clauses.append(f"{name}({operand})")
        values = [self.new(*result) for result in results]
        number = f"%r{len(self.lines)}"
        for i, value in enumerate(values):
            value.name = f"{number}#{i}"
        self.lines.append(
            f"{number}:{len(values)} = bngrad.{mnemonic} {' '.join(clauses)} "
            f"{{{attributes}}} : {', '.join(v.type for v in values)}")
        return values

    def transpose(self, value: Value, permutation: Sequence[int]) -> Value:
        shape = [value.shape[dim] for dim in permutation]
        sizes = [value.sizes[dim] for dim in permutation]
        number = len(self.lines)
        dims = []
        for to, dim in enumerate(permutation):
            if value.sizes[dim] == "?":
                dims.append(f"%d{number}_{to}")
                self.lines += [
                    f"%i{number}_{to} = arith.constant {dim} : index",
                    f"{dims[-1]} = tensor.dim {value.name}, "
                    f"%i{number}_{to} : {value.type}"]
        result = Value(f"%t{number}", value.kind, shape, sizes)
        self.lines += [
            f"%e{number} = tensor.empty({', '.join(dims)}) : {result.type}",
            f"{result.name} = linalg.transpose ins({value}) "
            f"outs(%e{number} : {result.type}) permutation = "
            f"[{', '.join(map(str, permutation))}]"]
        return result

    def text(self) -> str:
        arguments = ", ".join(str(value) for value, _ in self.arguments)
        types = ", ".join(value.type for value in self.returned)
        names = ", ".join(value.name for value in self.returned)
        return "\n  ".join([f"func.func @{self.name}({arguments}) -> ({types}) "
                            "{", *self.lines, f"return {names} : {types}"]
                           ) + "\n}\n"

    def run(self, runner: str, program: Path) -> List[Array]:
        """The results. Raises RuntimeError if the run fails."""
        directory = program.parent
        command = [runner, str(program), f"--entry={self.name}", "--check"]
        for i, (_, array) in enumerate(self.arguments):
            path = directory / f"{self.name}.argument{i}.npy"
            array.save(path)
            command.append(f"--arg={path}")
        paths = [directory / f"{self.name}.result{i}.npy"
                 for i in range(len(self.returned))]
        command += [f"--result={path}" for path in paths]
        call(command)
        results = []
        for path, value in zip(paths, self.returned):
            results.append(Array.load(path, value.kind))
            if results[-1].shape != value.shape:
                raise RuntimeError(f"expected {path.name} to have shape "
                                   f"{value.shape}, got {results[-1].shape}")
        return results


def call(command: List[str]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    bad = [line for line in run.stdout.splitlines()
           if line.startswith("result") and not line.endswith(" ok")]
    if run.returncode or bad:
        raise RuntimeError(f"{' '.join(command[:3])}: exit status "
                           f"{run.returncode}: {' '.join(bad)} "
                           f"{run.stderr.strip()}")
    return run.stdout
