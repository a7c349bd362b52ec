"""The tasks of the part `frameworks` of the GPU suite, and a line of their table; frameworks.py measures them."""

# Channels and sizes of the batch norms of ResNet-50 for images of 224.
SHAPES = [(64, 112), (64, 56), (256, 56), (128, 56), (128, 28), (512, 28), (256, 28), (256, 14), (1024, 14), (512, 14),
          (512, 7), (2048, 7)]
BATCH = 128
TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
LAYOUTS = ("nchw", "nhwc")
PLAIN, OURS = "torch", "bngrad"


def make_tasks():
    """An eager step, some ops, the other steps, and all other ops, which take turns in type and layout, so that a part
    that is cut off has all kinds."""
    ops = [f"op {type} {layout} {BATCH}x{channels}x{size}x{size}" for channels, size in SHAPES
           for layout in LAYOUTS for type in TYPES]
    first = [ops[number::len(TYPES) * len(LAYOUTS) + 1] for number in range(len(TYPES) * len(LAYOUTS) + 1)]
    return ["step eager", *first[0], "step captured", "flax", "step compiled",
            *(task for group in first[1:] for task in group)]


def describe(task, result):
    """A line of a table: the task, PyTorch's or JAX's time, BNGrad's, the ratio."""
    if "ms" not in result:
        return f"| {task} | | | {result.get('error') or result.get('absent', 'not measured')} |"
    low, high = result["interval"]
    text = f"{result['ratio']:.2f} ({low:.2f} to {high:.2f})"
    if result.get("share") is not None:
        # If batch norms took no time at all.
        text += f"; share of batch norms {result['share']:.3f}, so that at most {1 / (1 - result['share']):.2f}"
    return f"| {task} | {result['ms'][PLAIN]:.3g} ms | {result['ms'][OURS]:.3g} ms | {text} |"
