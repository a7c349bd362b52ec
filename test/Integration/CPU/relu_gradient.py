"""relu_gradient.py RUNNER DIR: the gradient of a batch norm followed by ReLU, in one function with the forward pass, has
the bits of one whose grad_output is 0 where the output of the forward pass is not positive. The condition is computed
again from the input. Prints `N programs, 0 differ`.
"""

import itertools
import os
import subprocess
import sys

import numpy as np

TRAINING = """
  %y, %mean, %variance, %inv_std = bngrad.batch_norm_training input(%x : {data}) scale(%scale : {vector}) offset(%offset : {vector})
      {{{attributes}}} : {data}, {vector}, {vector}, {vector}
  %zero = arith.constant dense<0.0> : {data}
  %relu = arith.maximumf %y, %zero : {data}"""
GRADIENT = """
  %0:3 = bngrad.batch_norm_backward grad_output({grad_output} : {data}) input(%x : {data}) scale(%scale : {vector})
      mean(%mean : {vector}) inv_std(%inv_std : {vector}){mask} {{{feature}}} : {data}, {vector}, {vector}"""
ARGUMENTS = "%dy: {data}, %x: {data}, %scale: {vector}"
# The gradient of ReLU as a selection of elements and as a mask, and as JAX and PyTorch write its condition.
FORMS = {
    "select": "\n  %k = arith.cmpf ogt, %y, %zero : {data}\n  %d = arith.select %k, %dy, %zero : {mask}, {data}",
    "mask": "\n  %k = arith.cmpf ogt, %relu, %zero : {data}",
    "not": "\n  %k = arith.cmpf ole, %relu, %zero : {data}\n  %d = arith.select %k, %zero, %dy : {mask}, {data}",
}


def make_fused(form, types):
    operands = {"grad_output": "%dy", "mask": " mask(%k : {mask})"} if form == "mask" else {"grad_output": "%d", "mask": ""}
    gradient = GRADIENT.replace("{grad_output}", operands["grad_output"]).replace("{mask}", operands["mask"])
    text = ("func.func @f(" + ARGUMENTS + ", %offset: {vector}) -> ({data}, {vector}, {vector}, {data}, {vector}, {vector}) {{" +
            TRAINING + FORMS[form] + gradient + """
  return %relu, %mean, %inv_std, %0#0, %0#1, %0#2 : {data}, {vector}, {vector}, {data}, {vector}, {vector}
}}
""")
    return text.format(**types)


def make_plain(types):
    gradient = GRADIENT.replace("{grad_output}", "%dy").replace("{mask}", "")
    text = ("func.func @f(" + ARGUMENTS + ", %mean: {vector}, %inv_std: {vector}) -> ({data}, {vector}, {vector}) {{" + gradient + """
  return %0#0, %0#1, %0#2 : {data}, {vector}, {vector}
}}
""")
    return text.format(**types)


def run(runner, directory, name, text, arrays, num_results, options):
    program = os.path.join(directory, f"{name}.mlir")
    with open(program, "w") as file:
        file.write(text)
    command = [runner, program, *options]
    for number, array in enumerate(arrays):
        path = os.path.join(directory, f"{name}{number}.npy")
        np.save(path, array)
        command.append(f"--arg={path}")
    results = [os.path.join(directory, f"{name}.result{number}.npy") for number in range(num_results)]
    subprocess.run([*command, *(f"--result={path}" for path in results)], check=True)
    return [np.load(path) for path in results]


def main():
    runner, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(1)
    programs = differ = 0
    cases = itertools.product(FORMS, ("f32", "f16"), (("channels", 1), ("rows", 3), ("split", 1), ("tiles", 1), ("emulator", 1)))
    for form, type, (schedule, feature) in cases:
        sizes = [6, 5, 5, 5] if feature == 3 else [6, 5, 7, 9]
        data = "tensor<" + "x".join(map(str, sizes)) + f"x{type}>"
        types = {"data": data, "mask": data.replace(type, "i1"), "vector": "tensor<5xf32>",
                 "feature": f"feature_dims = array<i64: {feature}>"}
        types["attributes"] = types["feature"] + ", epsilon = 1.0e-5 : f64"
        dtype = {"f32": np.float32, "f16": np.float16}[type]
        dy, x = (random.uniform(-1, 1, sizes).astype(dtype) for _ in range(2))
        # The output of a channel of equal elements is the offset: 0, and no part of the gradient.
        np.moveaxis(x, feature, 0)[2] = 0.5
        scale, offset = random.uniform(0.5, 2, 5).astype(np.float32), random.uniform(-0.5, 0.5, 5).astype(np.float32)
        offset[2] = 0
        options = ["--target=cuda-emulator"] if schedule == "emulator" else [f"--schedule=#bngrad.schedule<{schedule}>"]
        relu, mean, inv_std, *fused = run(runner, directory, "fused", make_fused(form, types), (dy, x, scale, offset), 6, options)
        zeros = np.where(relu > 0, dy, dtype(0))
        plain = run(runner, directory, "plain", make_plain(types), (zeros, x, scale, mean, inv_std), 3, options)
        programs += 1
        assert 0.2 < (relu > 0).mean() < 0.8 and not np.moveaxis(relu, feature, 0)[2].any()
        if any(one.tobytes() != other.tobytes() for one, other in zip(fused, plain)):
            differ += 1
            print(f"differs: {form}, {type}, {schedule}")
    print(f"{programs} programs, {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
