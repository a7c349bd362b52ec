"""The benchmark cases: shapes, layouts, element types."""

import dataclasses
import re

import passes

# Element types with their size in bytes and their number in native/Peer.h.
TYPES = {"f32": (4, 0), "bf16": (2, 1), "f16": (2, 2)}


@dataclasses.dataclass(frozen=True)
class Case:
    """One pass over one shape in one layout and element type.

    `sizes` are logical, (N, C, spatial...); `layout` is nchw (channel-major
    memory) or nhwc (channels innermost; a 2-D shape counts as nhwc).
    """

    sizes: tuple
    layout: str
    type: str
    pass_name: str = passes.BACKWARD.name

    @property
    def norm_pass(self):
        return passes.PASSES[self.pass_name]

    @property
    def name(self):
        return "%s %s %s" % ("x".join(map(str, self.sizes)), self.layout, self.type)

    @property
    def channels(self):
        return self.sizes[1]

    @property
    def row(self):
        """Elements of a contiguous row of one channel in nchw."""
        row = 1
        for size in self.sizes[2:]:
            row *= size
        return row

    @property
    def elements(self):
        return self.sizes[0] * self.channels * self.row

    @property
    def tensor_bytes(self):
        return self.elements * TYPES[self.type][0]

    @property
    def is_large(self):
        """Whether the three tensors exceed the caches."""
        return 3 * self.tensor_bytes >= 20e6

    @property
    def memory_sizes(self):
        """Sizes in the order of memory, outermost first."""
        if self.layout == "nhwc":
            return (self.sizes[0],) + self.sizes[2:] + (self.channels,)
        return self.sizes

    @property
    def feature_dim(self):
        """The channel's dim among `memory_sizes`."""
        return len(self.sizes) - 1 if self.layout == "nhwc" else 1

    @property
    def floor_tensors(self):
        """Number of tensors in the floor: 3 or 5."""
        return 5 if self.layout == "nhwc" else 3


RESNET = [
    (32, 64, 112, 112),
    (32, 64, 56, 56),
    (32, 256, 56, 56),
    (32, 128, 28, 28),
    (32, 512, 28, 28),
    (32, 1024, 14, 14),
    (32, 2048, 7, 7),
]
BOTH_LAYOUTS = RESNET + [
    (32, 1, 224, 224),
    (32, 3, 224, 224),
    (7, 13, 17, 19),
    (2, 3, 4, 4),
]
CHANNEL_MAJOR = [(64, 512, 1024)]
ROW_MAJOR = [(8192, 1024), (1048576, 32), (4096, 256), (32, 13, 112, 112)]

# The shapes of the GPU suite, which measures them in f32 and bf16 and both layouts: the batch norms of ResNet-50 for
# batches of 32 and 256 with large tensors in bf16. Memory bounds their time, and almost all of the time that a training
# step spends in batch norms is theirs.
GPU_LARGE_BYTES = 12e6
RESNET_256 = [(256,) + shape[1:] for shape in RESNET]
GPU_SUITE = [shape for shape in RESNET + RESNET_256 if Case(shape, "nchw", "bf16").tensor_bytes >= GPU_LARGE_BYTES]

TINY = (2, 3, 4, 4)
# The shapes for measurements of fused neighbours, f32 in both layouts.
FUSED = [(32, 64, 112, 112), (32, 512, 28, 28)]
# The shape for measurements of compile time, f32 in both layouts.
COMPILED = (32, 64, 56, 56)

# Shapes beside other compilers, f32 and bf16, in both layouts.
COMPILERS = [
    (32, 64, 112, 112),
    (32, 64, 56, 56),
    (32, 512, 28, 28),
    (32, 256, 14, 14),
    (32, 2048, 7, 7),
    (8192, 1024),
    TINY,
]
QUICK_COMPILERS = r"^(32x64x56x56 nchw f32|32x256x14x14 nhwc bf16)$"

QUICK = r"^(32x64x56x56 .* f32|32x2048x7x7 nchw f32|32x3x224x224 nhwc f32|2x3x4x4 nchw f32|32x128x28x28 nhwc bf16)$"


def select(pattern):
    """All cases with a match of `pattern` in their name."""
    found = []
    for element_type in TYPES:
        for layout, shapes in (
            ("nchw", BOTH_LAYOUTS + CHANNEL_MAJOR),
            ("nhwc", BOTH_LAYOUTS + ROW_MAJOR),
        ):
            found += [Case(shape, layout, element_type) for shape in shapes]
    return [case for case in found if re.search(pattern, case.name)]


def select_for_compilers(pattern, work=passes.BACKWARD):
    """The cases of `--compilers` with a match of `pattern` in their name."""
    found = [
        Case(shape, layout, element_type, work.name)
        for element_type in ("f32", "bf16")
        for layout in ("nchw", "nhwc")
        for shape in COMPILERS
        if len(shape) == 4 or layout == "nhwc"
    ]
    return [case for case in found if re.search(pattern, case.name)]
