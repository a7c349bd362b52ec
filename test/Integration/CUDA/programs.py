"""Programs of one gradient or one forward pass each, and their execution on the emulator; used by the other scripts in this folder."""

import dataclasses
import json
import os
import re
import subprocess


@dataclasses.dataclass
class Case:
    """One gradient, or one forward pass, and its schedule."""

    shape: tuple
    schedule: str = ""  # parameters of --schedule inside <>; empty: chosen for the
                        # chip
    features: tuple = (1,)
    chip: str = "sm_90"
    data: str = "f32"  # of grad_output and input
    parameter: str = "f32"
    results: tuple = ()  # types; empty: those of the op's operands
    used: tuple = (0, 1, 2)
    training: bool = False  # batch_norm_training, whose input is `dy`
    scale: bool = True
    inv_std: bool = False
    statistics: str = "batch"
    mask: bool = False
    producer: str = ""  # producer of grad_output: see PRODUCERS
    consumer: str = ""  # consumer of grad_input: see CONSUMERS
    dynamic: bool = False
    crops: tuple = ()  # those of dy and x that are part of a tensor larger by 2 in every dim of `cropped`
    cropped: tuple = ()
    step: int = 1  # step between the elements of such a part
    kernels: tuple = None  # expected launches, in order; None: those of the schedule's kind
    copy: str = ""  # copies of a one-pass kernel: bulk, pieces or elements

    def __str__(self):
        fields = dataclasses.fields(self)
        return ", ".join(f"{f.name}={v}" for f in fields if (v := getattr(self, f.name)) != f.default)

    def expected_kernels(self):
        """None: they are not checked here."""
        if self.kernels is not None:
            return list(self.kernels)
        kind = self.schedule.split(",")[0]
        if kind == "one_pass":
            return [kind]
        if kind not in ("", "two_pass"):
            return None
        if self.training:
            # A mean in f64, or a mean alone, is a pass of its own.
            is_apart = "f64" in (self.data, self.parameter) or self.used == (1,)
            sums = ["finish", "reduce", "finish_0", "reduce_0", "finish_1"] if is_apart else ["reduce", "finish"]
            return sums + ["apply"] * (0 in self.used)
        reads_sums = self.statistics == "batch" or 1 in self.used or 2 in self.used
        return ["reduce"] * reads_sums + ["finish"] + ["apply"] * (0 in self.used)


def one_pass(columns=1, cluster=1, threads=128, bits=128):
    return f"one_pass, block_threads = {threads}, access_bits = {bits}, block_channels = {columns}, cluster_blocks = {cluster}, fma = true"


def two_pass(threads=128, columns=32, blocks=64, bits=128):
    return f"two_pass, block_threads = {threads}, access_bits = {bits}, block_accesses = {columns}, sum_blocks = {blocks}, fma = true"


# By name: additional operands (name, type or None for that of the data, shape of the data or only its first dimension),
# and the lines that compute %dy from %dz.
PRODUCERS = {
    "residual": ([("other", None, "data")], "%dy = arith.addf %dz, %other : {t}"),
    # The mask of a ReLU, from its result.
    "relu": ([("y", None, "data")],
             "%zero = arith.constant dense<0.0> : {t}\n"
             "  %positive = arith.cmpf ogt, %y, %zero : {t}\n"
             "  %dy = arith.select %positive, %dz, %zero : {b}, {t}"),
    "cast": ([], "%dy = arith.extf %dz : {n} to {t}"),
    # A factor per sample.
    "factor": ([("factor", None, "first")],
               "%empty = tensor.empty() : {t}\n"
               "  %dy = linalg.generic {{indexing_maps = [{i}, {d}, {i}], iterator_types = [{p}]}}\n"
               "      ins(%dz, %factor : {t}, {f}) outs(%empty : {t}) {{\n"
               "  ^bb0(%a: {e}, %b: {e}, %c: {e}):\n"
               "    %product = arith.mulf %a, %b : {e}\n"
               "    linalg.yield %product : {e}\n"
               "  }} -> {t}"),
    # A weight for each place of a row, and the index of the channel, which differ among the lanes of a piece.
    "weights": ([("weights", None, "last")],
                "%empty = tensor.empty() : {t}\n"
                "  %dy = linalg.generic {{indexing_maps = [{i}, {l}, {i}], iterator_types = [{p}]}}\n"
                "      ins(%dz, %weights : {t}, {w}) outs(%empty : {t}) {{\n"
                "  ^bb0(%a: {e}, %b: {e}, %c: {e}):\n"
                "    %channel = linalg.index 1 : index\n"
                "    %integer = arith.index_cast %channel : index to i32\n"
                "    %number = arith.sitofp %integer : i32 to {e}\n"
                "    %weight = arith.addf %b, %number : {e}\n"
                "    %product = arith.mulf %a, %weight : {e}\n"
                "    linalg.yield %product : {e}\n"
                "  }} -> {t}"),
    "exp": ([], "%dy = math.exp %dz : {t}"),
    "tanh": ([], "%dy = math.tanh %dz : {t}"),
}
CONSUMERS = {
    "negate": ([], "%out = arith.negf %0#0 : {t}", None),
    "add": ([("more", None, "data")], "%out = arith.addf %0#0, %more : {t}", None),
    "truncate": ([], "%out = arith.truncf %0#0 : {t} to {n}", "f16"),
    "exp": ([], "%out = math.exp %0#0 : {t}", None),
}


class Program:
    """The IR of a case, and its arguments."""

    def __init__(self, case):
        self.case = case
        channel = tuple(case.shape[f] for f in case.features)
        self.arguments = []  # name, type, shape
        shapes = {"data": case.shape, "first": case.shape[:1], "last": case.shape[-1:]}

        def tensor(element, shape):
            return "tensor<" + "".join(("?" if case.dynamic else str(s)) + "x" for s in shape) + element + ">"

        data, parameter = tensor(case.data, case.shape), tensor(case.parameter, channel)
        narrow = tensor("f16", case.shape)
        loops = ", ".join(f"d{i}" for i in range(len(case.shape)))
        words = dict(t=data, n=narrow, b=tensor("i1", case.shape), f=tensor(case.data, case.shape[:1]), e=case.data,
                     i=f"affine_map<({loops}) -> ({loops})>", d=f"affine_map<({loops}) -> (d0)>",
                     w=tensor(case.data, case.shape[-1:]),
                     l=f"affine_map<({loops}) -> (d{len(case.shape) - 1})>",
                     p=", ".join(['"parallel"'] * len(case.shape)))

        def add(name, element, shape):
            self.arguments.append((name, tensor(element, shape), shape))

        body = ""
        larger = tuple(case.step * s + 2 if d in case.cropped else s for d, s in enumerate(case.shape))
        steps = [str(case.step if d in case.cropped else 1) for d in range(len(larger))]
        starts = [str(int(d in case.cropped)) for d in range(len(larger))]
        slice = f"[{', '.join(starts)}] [{', '.join(map(str, case.shape))}] [{', '.join(steps)}]"

        def add_data(name, element):
            if name not in case.crops:
                add(name, element, case.shape)
                return ""
            add(f"{name}_all", element, larger)
            whole = tensor(element, larger)
            return (f"  %{name} = tensor.extract_slice %{name}_all{slice} : {whole} to {tensor(element, case.shape)}\n")

        body += add_data("dz" if case.producer else "dy", "f16" if case.producer == "cast" else case.data)
        if not case.training:
            body += add_data("x", case.data)
        if case.producer:
            operands, text = PRODUCERS[case.producer]
            for name, element, shape in operands:
                add(name, element or case.data, shapes[shape])
            body += f"  {text.format(**words)}\n"
        elements = case.results or (case.data, case.parameter, case.parameter)
        results = [tensor(element, shape) for element, shape in zip(elements, [case.shape, channel, channel])]
        if case.training:
            results.append(tensor(case.parameter, channel))
            body += self.add_training(add, data, parameter, results)
        else:
            body += self.add_gradient(add, data, parameter, tensor("i1", case.shape), results)
        values = [f"%0#{i}" for i in case.used]
        types = [results[i] for i in case.used]
        if case.consumer:
            operands, text, element = CONSUMERS[case.consumer]
            for name, type, shape in operands:
                add(name, type or case.data, shapes[shape])
            body += f"  {text.format(**words)}\n"
            values[0], types[0] = "%out", tensor(element, case.shape) if element else types[0]
        arguments = ", ".join(f"%{name}: {type}" for name, type, _ in self.arguments)
        self.mlir = (f"func.func @f({arguments}) -> ({', '.join(types)}) {{\n{body}"
                     f"  return {', '.join(values)} : {', '.join(types)}\n}}\n")

    def add_training(self, add, data, parameter, results):
        """Calls `add` for each per-channel argument of the op, and returns its text."""
        case = self.case
        channel = tuple(case.shape[f] for f in case.features)
        if case.scale:
            add("scale", case.parameter, channel)
        add("offset", case.parameter, channel)
        return (
            f"  %0:4 = bngrad.batch_norm_training input(%dy : {data})"
            + (f" scale(%scale : {parameter})" if case.scale else "")
            + f" offset(%offset : {parameter})\n      {{feature_dims = array<i64: {', '.join(map(str, case.features))}>"
            f", epsilon = 1.0e-3 : f64}} : {', '.join(results)}\n")

    def add_gradient(self, add, data, parameter, mask, results):
        """As add_training."""
        case = self.case
        channel = tuple(case.shape[f] for f in case.features)
        if case.scale:
            add("scale", case.parameter, channel)
        add("mean", case.parameter, channel)
        add("statistic", case.parameter, channel)
        if case.mask:
            add("mask", "i1", case.shape)
        return (
            f"  %0:3 = bngrad.batch_norm_backward grad_output(%dy : {data}) input(%x : {data})"
            + (f" scale(%scale : {parameter})" if case.scale else "")
            + f"\n      mean(%mean : {parameter}) {'inv_std' if case.inv_std else 'variance'}(%statistic : {parameter})"
            + (f" mask(%mask : {mask})" if case.mask else "")
            + f"\n      {{feature_dims = array<i64: {', '.join(map(str, case.features))}>"
            + ("" if case.inv_std else ", epsilon = 1.0e-3 : f64")
            + f", statistics = #bngrad.statistics<{case.statistics}>}} : {', '.join(results)}\n")

    def specs(self):
        """Data with different sums for each channel, far from 0."""
        ranges = {"dy": ":-1:2", "dz": ":-1:2", "x": ":-2:1", "dy_all": ":-1:2", "x_all": ":-2:1", "scale": ":0.5:2", "statistic": ":0.5:1.5", "mask": "",
                  "y": ":-1:1"}
        for seed, (name, _, shape) in enumerate(self.arguments):
            size = "@" + "x".join(map(str, shape)) if self.case.dynamic else ""
            yield f"--arg=random:{seed + 1}{ranges.get(name, ':-1:1')}{size}"


def run(runner, case, path, *options, environment=None):
    """Writes the program of `case` to `path` and runs it; returns its output and the traffic by launch."""
    program = Program(case)
    with open(path, "w") as file:
        file.write(program.mlir)
    traffic = path + ".traffic"
    if os.path.exists(traffic):
        os.remove(traffic)
    command = [runner, path, "--target=cuda-emulator", f"--chip={case.chip}", *program.specs(), *options]
    if case.schedule:
        command.append(f"--schedule=#bngrad.schedule<{case.schedule}>")
    variables = {"PTX_EMULATOR_CHIP": case.chip, "PTX_EMULATOR_TRAFFIC": traffic, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    launches = []
    if os.path.exists(traffic):
        with open(traffic) as file:
            launches = [json.loads(line) for line in file]
    return done, launches


def get_ptx(opt, case):
    """The text of the kernels of `case`."""
    schedule = f" schedule={{#bngrad.schedule<{case.schedule}>}}" if case.schedule else ""
    done = subprocess.run([opt, f"--bngrad-cuda-pipeline=chip={case.chip}{schedule}"], input=Program(case).mlir,
                          capture_output=True, text=True, check=True)
    texts = re.findall(r'assembly = "((?:[^"\\]|\\.)*)"', done.stdout)
    assert len(texts) == 1, f"expected one module of kernels, got {len(texts)}"
    return re.sub(r"\\([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), texts[0])


def used_copy(launch):
    """The form of the copies of a one-pass kernel without fused neighbours."""
    buffers = launch["buffers"]
    if any(b["bulk_load_bytes"] for b in buffers):
        return "bulk"
    return "pieces" if any(b["load_bytes"] and b["requests_128bit"] for b in buffers) else "elements"


def check(case, done, launches):
    """Raises AssertionError unless a run with --check succeeded with the kernels that `case` expects."""
    text = done.stdout + done.stderr
    assert done.returncode == 0, text + f"exit status {done.returncode}"
    assert done.stderr == "", text
    assert done.stdout.count(" ok\n") == len(case.used), text
    kernels = [launch["kernel"] for launch in launches]
    expected = case.expected_kernels()
    assert expected is None or kernels == expected, f"expected kernels {expected}, got {kernels}"
    if case.copy:
        assert used_copy(launches[0]) == case.copy, f"expected copies in {case.copy}, got {used_copy(launches[0])}"
