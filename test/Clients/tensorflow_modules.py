"""Writes modules of TensorFlow with gradients of batch normalization, which are
stablehlo.batch_norm_grad of FusedBatchNormGradV3. The expected results are those that
TensorFlow's own compiler computes.

Usage: tensorflow_modules.py FOLDER
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from common import Writer, make_data


def gradient(dy, x, scale, mean, variance, layout):
    """grad_input, grad_scale and grad_offset; TensorFlow's CPU op takes the variance."""
    return tf.raw_ops.FusedBatchNormGradV3(y_backprop=dy, x=x, scale=scale, reserve_space_1=mean,
                                           reserve_space_2=variance, reserve_space_3=mean, epsilon=1e-5,
                                           data_format=layout, is_training=True)[:3]


def make_modules():
    """Name, function of dy, x, scale, mean and variance, layout, and type of the data."""

    def plain(layout):
        return lambda dy, x, s, m, v: gradient(dy, x, s, m, v, layout)

    def relu(dy, x, s, m, v):
        return gradient(tf.raw_ops.ReluGrad(gradients=dy, features=x), x, s, m, v, "NHWC")

    def residual(dy, x, s, m, v):
        dx, ds, do = gradient(tf.raw_ops.ReluGrad(gradients=dy, features=x), x, s, m, v, "NHWC")
        return dx + dy, ds, do

    def decay(dy, x, s, m, v):
        dx, ds, do = gradient(dy, x, s, m, v, "NCHW")
        return dx, s - 0.1 * (ds + 1e-2 * s), do * 0.5

    def tanh(dy, x, s, m, v):
        return gradient(dy * (1 - tf.tanh(x)**2), x, s, m, v, "NHWC")

    def two(dy, x, s, m, v):
        first = gradient(dy, x, s, m, v, "NHWC")
        second = gradient(first[0], x, s, m, v, "NHWC")
        return second[0], first[1] + second[1], first[2] + second[2]

    return [("nhwc", plain("NHWC"), "NHWC", "float32"), ("nchw", plain("NCHW"), "NCHW", "float32"),
            ("ndhwc", plain("NDHWC"), "NDHWC", "float32"), ("relu", relu, "NHWC", "float32"),
            ("residual", residual, "NHWC", "float32"), ("weight-decay", decay, "NCHW", "float32"),
            ("tanh", tanh, "NHWC", "float32"), ("two-gradients", two, "NHWC", "float32"),
            ("half", plain("NHWC"), "NHWC", "float16"), ("bfloat16", plain("NHWC"), "NHWC", "bfloat16"),
            ("half-nchw", plain("NCHW"), "NCHW", "float16"), ("bfloat16-relu", relu, "NHWC", "bfloat16")]


SHAPES = {"NHWC": ((8, 9, 10, 6), 3), "NCHW": ((8, 6, 9, 10), 1), "NDHWC": ((4, 5, 6, 7, 6), 4)}


def main():
    writer = Writer(sys.argv[1], "tensorflow")
    for number, (name, function, layout, kind) in enumerate(make_modules()):
        rng = np.random.default_rng(number)
        shape, dim = SHAPES[layout]
        data = [tf.constant(make_data(rng, shape, dim), kind) for _ in range(2)]
        x = tf.cast(data[1], tf.float32)
        others = [d for d in range(len(shape)) if d != dim]
        mean, variance = tf.nn.moments(x, others)
        scale = tf.constant(rng.uniform(0.5, 1.5, 6), tf.float32)
        arguments = [*data, scale, mean, variance]
        compiled = tf.function(function, jit_compile=True)
        text = compiled.experimental_get_compiler_ir(*arguments)(stage="stablehlo")
        writer.write(name, text, [a.numpy() for a in arguments], [r.numpy() for r in compiled(*arguments)])


if __name__ == "__main__":
    main()
