"""The items of the GPU suite: shapes, types, variants, schedules."""

import dataclasses
import re

import cases

# u, the unit roundoff of docs/numerics.md, and the bytes of an element.
UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
EPSILON = 1e-3
# The most time of large tensors over that of the passes over them at the bandwidth of a copy, by kind of schedule:
# measured on a GPU, and calculated by model.py.
LIMITS = {"one_pass": 1.30, "two_pass": 1.15}

# Sizes that the model has in both layouts and in every type.
HALF = [(32, 64, 56, 56), (32, 512, 28, 28), (32, 2048, 7, 7)]

SMALL = [
    (1, 1, 1, 1),
    (2, 3, 4, 4),
    (5, 3, 7, 2),
    (7, 13, 17, 19),
    (3, 16, 8, 8),
    (4, 64, 7, 7),
    (9, 8, 1, 33),
    (2, 1, 63, 65),
    (16, 256, 3, 3),
    (8, 130, 4, 4),
    (16, 33, 14, 14),
    # Blocks of clusters of 16 have 3 rows or 2.
    (33, 4, 8, 8),
]
SMALL_CHANNEL_MAJOR = [(3, 4, 1025), (1, 7, 300), (8, 32, 128)]
SMALL_ROW_MAJOR = [(33, 5), (17, 32), (300, 8), (64, 1024), (1000, 3)]
SCHEDULES = {
    "": "",
    "two_pass": "two_pass, block_threads = 256, access_bits = 128, block_accesses = 32, sum_blocks = 64",
    "two_pass narrow": "two_pass, block_threads = 64, access_bits = 64, block_accesses = 3, sum_blocks = 5, fma = true",
    "one_pass": "one_pass, block_threads = 128, access_bits = 128, block_channels = 1, fma = true",
    "one_pass wide": "one_pass, block_threads = 256, access_bits = 128, block_channels = 16, fma = true",
    "one_pass of 2": "one_pass, block_threads = 64, access_bits = 128, block_channels = 4, cluster_blocks = 2",
    "one_pass of 4": "one_pass, block_threads = 512, access_bits = 64, block_channels = 1, cluster_blocks = 4",
    "one_pass of 8": "one_pass, block_threads = 96, access_bits = 128, block_channels = 8, cluster_blocks = 8",
    "one_pass of 16": "one_pass, block_threads = 128, access_bits = 128, block_channels = 1, cluster_blocks = 16",
    "one_pass wide of 16": "one_pass, block_threads = 128, access_bits = 128, block_channels = 8, cluster_blocks = 16",
}
# Other schedules of measured items, which derive_schedule makes from the chosen one.
ALTERNATIVES = ["cluster of 4", "two passes"]
# Largest shared memory of a forced schedule: that of sm_90.
SHARED_BYTES = 220 << 10
FEW_SCHEDULES = ["", "two_pass narrow", "one_pass of 2", "one_pass of 16"]
VARIANTS = ["plain", "mask", "frozen", "dynamic", "training"]
# Schedules, by layout and shape, whose blocks are in clusters and copy their tile in several steps, as those of almost all
# large shapes do: rows of bulk copies, strided rows of asynchronous copies, flat rows.
STAGED = {
    ("nchw", (32, 2, 32, 32)): ("", "one_pass of 4", "one_pass of 16"),
    ("nhwc", (64, 16, 8, 8)): ("", "one_pass of 2", "one_pass of 8", "one_pass wide of 16"),
    ("nchw", (256, 8, 7, 7)): ("", "one_pass of 2"),
}
# Most elements of an item that stands for its kind where each kind is run once.
QUICK_ELEMENTS = 1 << 14
# The items of the tests: all kernels, few elements.
FEW = [
    (2, 3, 4, 4),
    (5, 3, 7, 2),
    (3, 16, 8, 8),
    (9, 8, 1, 33),
    (16, 256, 3, 3),
    (33, 5),
    (300, 8),
    (33, 4, 8, 8),
]


@dataclasses.dataclass(frozen=True)
class Item:
    """One function that is compiled to one object.

    `sizes`, `layout` and `type` are as in cases.Case; `variant` is plain,
    mask (a mask, the inverse standard deviation given, no scale), frozen
    (global statistics), dynamic (sizes known at run time only), all of a gradient, or training (the forward pass);
    `schedule`
    is a key of SCHEDULES or one of ALTERNATIVES; `format` is that of bngrad-compile.
    """

    sizes: tuple
    layout: str
    type: str
    variant: str = "plain"
    schedule: str = ""
    format: str = "isa"

    @property
    def case(self):
        return cases.Case(self.sizes, self.layout, self.type)

    @property
    def name(self):
        extras = [self.variant if self.variant != "plain" else "", self.schedule]
        extras += [self.format if self.format != "isa" else ""]
        return " ".join([self.case.name] + [extra for extra in extras if extra])

    @property
    def is_small(self):
        return self.case.elements <= 1 << 17

    @property
    def is_staged(self):
        """Whether it stands for kernels of STAGED."""
        return (self.variant == "plain" and self.type in ("f32", "bf16")
                and self.schedule in STAGED.get((self.layout, self.sizes), ()))

    @property
    def fits(self):
        """Whether a forced schedule takes the shape: its tiles fit in shared memory, channels into tiles, and blocks
        of a cluster have rows to share."""
        text = SCHEDULES[self.schedule]
        if not text.startswith("one_pass"):
            return True
        values = dict(re.findall(r"(\w+) = (\d+)", text))
        channels, cluster = int(values["block_channels"]), int(values.get("cluster_blocks", 1))
        per_channel = self.case.elements // self.case.channels
        rows = self.sizes[0] if self.layout == "nchw" else per_channel
        if self.layout == "nchw" and self.case.channels % channels != 0:
            return False
        if channels > self.case.channels or (cluster > 1 and rows == 1):
            return False
        return 2 * channels * -(-per_channel // cluster) * BYTES[self.type] <= SHARED_BYTES

    @property
    def is_training(self):
        return self.variant == "training"

    @property
    def inputs(self):
        """The number of tensors that are read."""
        return 1 if self.is_training else 2

    @property
    def parameter_type(self):
        return "f64" if self.type == "f64" else "f32"

    @property
    def arguments(self):
        """(name, element type, per channel?) in the order of the function."""
        data, parameter = (self.type, False), (self.parameter_type, True)
        if self.is_training:
            return [("input", *data), ("scale", *parameter), ("offset", *parameter)]
        found = [("grad_output", *data), ("input", *data)]
        if self.variant == "mask":
            return found + [
                ("mean", *parameter),
                ("inv_std", *parameter),
                ("mask", "i1", False),
            ]
        names = ("scale", "mean", "variance")
        return found + [(name, *parameter) for name in names]

    @property
    def results(self):
        if self.is_training:
            return [("output", self.type, False)] + [
                (name, self.parameter_type, True) for name in ("mean", "variance", "inv_std")
            ]
        return [
            ("grad_input", self.type, False),
            ("grad_scale", self.parameter_type, True),
            ("grad_offset", self.parameter_type, True),
        ]

    @property
    def folded(self):
        """Sizes of memory as (N, C, S), and which of them are reduced."""
        n, c = self.sizes[0], self.case.channels
        s = self.case.row
        return ((n, c, s), (0, 2)) if self.layout == "nchw" else ((n * s, 1, c), (0, 1))


def _tensor(item, element_type, is_parameter):
    sizes = (item.case.channels,) if is_parameter else item.case.memory_sizes
    texts = ["?" if item.variant == "dynamic" else str(size) for size in sizes]
    return f"tensor<{'x'.join(texts)}x{element_type}>"


def kernel(schedule):
    """The kernel of the text of a schedule."""
    name = schedule.split(",")[0] or "two_pass"
    return f"{name} in clusters" if "cluster_blocks" in schedule else name


def derive_schedule(alternative, chosen, without_clusters):
    """The text of a schedule of ALTERNATIVES, from the chosen one and from that which is chosen for a chip that has no
    clusters and 108 multiprocessors, not 132. None: it would be the chosen one."""
    if alternative == "two passes":
        blocks = re.search(r"sum_blocks = (\d+)", without_clusters)
        if blocks and int(blocks[1]) % 108 == 0:
            more = f"sum_blocks = {int(blocks[1]) // 108 * 132}"
            without_clusters = without_clusters.replace(blocks[0], more)
        return None if chosen.startswith("two_pass") else without_clusters
    if not chosen.startswith("one_pass") or "cluster_blocks = 4" in chosen:
        return None
    kept = [part for part in chosen.split(", ") if not part.startswith("cluster_blocks")]
    return ", ".join([*kept, "cluster_blocks = 4"])


def make_ir(item, name="gradient"):
    """The function `name` of `item`."""
    types = {name: _tensor(item, *rest) for name, *rest in item.arguments}
    results = ", ".join(_tensor(item, *rest) for _, *rest in item.results)
    parameters = ", ".join(f"%{name}: {text}" for name, text in types.items())
    operands = " ".join(f"{name}(%{name} : {text})" for name, text in types.items())
    statistics = ", statistics = #bngrad.statistics<global>" if item.variant == "frozen" else ""
    op = "batch_norm_training" if item.is_training else "batch_norm_backward"
    epsilon = "" if "inv_std" in types else f"epsilon = {EPSILON:e} : f64, "
    return f"""func.func @{name}({parameters}) -> ({results}) {{
  %0:{len(item.results)} = bngrad.{op} {operands}
      {{{epsilon}feature_dims = array<i64: {item.case.feature_dim}>{statistics}}}
      : {results}
  return {", ".join(f"%0#{i}" for i in range(len(item.results)))} : {results}
}}
"""


def measured():
    """The items of the benchmark: gradients, then forward passes. Small batches come first, as the time may not suffice
    for all."""
    return [
        Item(shape, layout, element_type, variant)
        for variant in ("plain", "training")
        for shape in cases.GPU_SUITE
        for layout in ("nchw", "nhwc")
        for element_type in ("f32", "bf16")
    ]


def large():
    """The items of the model."""
    found = []
    for element_type in ("f32", "bf16"):
        shapes = cases.RESNET + cases.RESNET_256 + cases.BOTH_LAYOUTS[len(cases.RESNET) :]
        for layout, more in (("nchw", cases.CHANNEL_MAJOR), ("nhwc", cases.ROW_MAJOR)):
            found += [Item(shape, layout, element_type) for shape in shapes + more]
    found += [Item(shape, layout, "f16") for shape in HALF for layout in ("nchw", "nhwc")]
    return found + [dataclasses.replace(item, variant="training") for item in found if item.type != "f16"]


def small(few=False):
    """The items of the correctness tests: odd sizes, every type, forced schedules."""
    found = []
    both = SMALL if not few else [shape for shape in FEW if len(shape) == 4]
    for layout, more in (("nchw", SMALL_CHANNEL_MAJOR), ("nhwc", SMALL_ROW_MAJOR)):
        shapes = both + (more if not few else [s for s in more if s in FEW])
        for number, shape in enumerate(shapes):
            for element_type in ("f32", "bf16", "f16", "f64"):
                all_schedules = element_type in ("f32", "bf16")
                schedules = list(SCHEDULES) if all_schedules else FEW_SCHEDULES
                if few:
                    # Every schedule, distributed over the shapes.
                    schedules = schedules[number % 2 :: 2]
                    if element_type != ("f32", "bf16", "f16", "f64")[number % 4]:
                        schedules = schedules[:1]
                found += [
                    Item(shape, layout, element_type, schedule=schedule)
                    for schedule in schedules
                ]
            for variant in VARIANTS[1:]:
                found.append(Item(shape, layout, ("f32", "bf16")[number % 2], variant))
    if not few:
        found += [Item(shape, layout, element_type, schedule=schedule) for (layout, shape), schedules in STAGED.items()
                  for schedule in schedules for element_type in ("f32", "bf16")]
    # The other formats of kernels, if ptxas and fatbinary are installed.
    for format in ("bin", "fatbin"):
        found.append(Item((16, 33, 14, 14), "nchw", "f32", format=format))
    return [item for item in dict.fromkeys(found) if item.fits]


def representatives(found, key):
    """One of `found` for each value of `key`, which gives None for those that stand for nothing: the largest that is
    quick. Also one for each kernel of STAGED with that value."""
    chosen = {}
    for item in found:
        kind = key(item)
        if kind is None or (item.case.elements > QUICK_ELEMENTS and not item.is_staged):
            continue
        kind = (*kind, item.sizes if item.is_staged else None)
        if kind not in chosen or item.case.elements > chosen[kind].case.elements:
            chosen[kind] = item
    return list(chosen.values())


def kind_and_type(item):
    return item.schedule, item.variant, item.layout, item.format, item.type


def kind(item):
    """Of f32 and bf16, which have every schedule."""
    if item.type not in ("f32", "bf16") or item.format != "isa":
        return None
    return item.schedule, item.variant, item.layout
