"""Writes modules of JAX with batch normalization and its gradients.

JAX has no op for either: primitives whose lowerings are stablehlo.batch_norm_grad and
batch_norm_training take their places in a custom_vjp. The expected results are those of the same
functions in float64, with both as formulas.

Usage: jax_modules.py FOLDER
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.interpreters.mlir import ir
from jaxlib.mlir import passmanager
from jaxlib.mlir.dialects import stablehlo

from common import Writer, make_data

EPSILON = 1e-5
use_formula = False

batch_norm_grad = Primitive("batch_norm_grad")
batch_norm_grad.multiple_results = True


@batch_norm_grad.def_abstract_eval
def _(x, scale, mean, variance, dy, *, feature):
    return x, scale, scale


def lower(context, x, scale, mean, variance, dy, *, feature):
    return stablehlo.BatchNormGradOp(x, scale, mean, variance, dy, ir.FloatAttr.get(ir.F32Type.get(), EPSILON),
                               ir.IntegerAttr.get(ir.IntegerType.get_signless(64), feature)).results


mlir.register_lowering(batch_norm_grad, lower)

batch_norm_training = Primitive("batch_norm_training")
batch_norm_training.multiple_results = True


@batch_norm_training.def_abstract_eval
def _(x, scale, offset, *, feature):
    return x, scale, scale


def lower_training(context, x, scale, offset, *, feature):
    return stablehlo.BatchNormTrainingOp(x, scale, offset, ir.FloatAttr.get(ir.F32Type.get(), EPSILON),
                                         ir.IntegerAttr.get(ir.IntegerType.get_signless(64), feature)).results


mlir.register_lowering(batch_norm_training, lower_training)


def formula(x, scale, mean, variance, dy, feature):
    others = tuple(d for d in range(x.ndim) if d != feature)
    count = x.size // x.shape[feature]
    form = [1] * x.ndim
    form[feature] = -1
    inv_std = 1 / jnp.sqrt(variance + EPSILON)
    centered = x - mean.reshape(form)
    offset_grad = dy.sum(others)
    product = (dy * centered).sum(others)
    x_grad = (scale * inv_std).reshape(form) * (dy - offset_grad.reshape(form) / count - centered *
                                                (inv_std**2 * product).reshape(form) / count)
    return x_grad, product * inv_std, offset_grad


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def batch_norm(x, scale, offset, feature):
    return forward(x, scale, offset, feature)[0]


def forward(x, scale, offset, feature):
    feature %= x.ndim
    others = tuple(d for d in range(x.ndim) if d != feature)
    form = [1] * x.ndim
    form[feature] = -1
    mean, variance = x.mean(others), x.var(others)
    inv_std = 1 / jnp.sqrt(variance + EPSILON)
    y = (x - mean.reshape(form)) * (scale * inv_std).reshape(form) + offset.reshape(form)
    return y, (x, scale, mean, variance)


def backward(feature, saved, dy):
    x, scale, mean, variance = saved
    feature %= x.ndim
    if use_formula:
        return formula(x, scale, mean, variance, dy, feature)
    return batch_norm_grad.bind(x, scale, mean, variance, dy, feature=feature)


batch_norm.defvjp(forward, backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def batch_norm_op(x, scale, offset, feature):
    return forward_op(x, scale, offset, feature)[0]


def forward_op(x, scale, offset, feature):
    """As batch_norm, with the op of the forward pass; the statistics are results as well."""
    feature %= x.ndim
    if use_formula:
        y, saved = forward(x, scale, offset, feature)
        return (y, *saved[2:]), saved
    y, mean, variance = batch_norm_training.bind(x, scale, offset, feature=feature)
    return (y, mean, variance), (x, scale, mean, variance)


batch_norm_op.defvjp(forward_op, lambda feature, saved, dy: backward(feature, saved, dy[0]))


def step(feature, activation=lambda y: y):
    """The output, the running statistics as in flax, and the gradients."""

    def run(x, scale, offset, running_mean, running_var, dy):
        def apply(*arguments):
            y, mean, variance = batch_norm_op(*arguments, feature)
            return activation(y), (0.9 * running_mean + 0.1 * mean, 0.9 * running_var + 0.1 * variance)

        y, pull, running = jax.vjp(apply, x, scale, offset, has_aux=True)
        return y, *running, *pull(dy)

    return run


def conv(x, w, stride=1, layout=("NCHW", "OIHW", "NCHW"), groups=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=layout,
                                    feature_group_count=groups)


def nhwc_conv(x, w):
    return conv(x, w, layout=("NHWC", "HWIO", "NHWC"))


def average_pool(x):
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4


def log_softmax(x):
    shifted = x - lax.stop_gradient(x.max(-1, keepdims=True))
    return shifted - jnp.log(jnp.exp(shifted).sum(-1, keepdims=True))


def layer_norm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean)**2).mean(-1, keepdims=True) + EPSILON)


def gate(x, w1, w2):
    pooled = x.mean((2, 3))
    return x * jax.nn.sigmoid(jax.nn.relu(pooled @ w1) @ w2)[:, :, None, None]


def gradients(loss):
    """The gradients of `loss` with respect to all its arguments."""
    return lambda *arguments: jax.grad(loss, tuple(range(len(arguments))))(*arguments)


def pull(function):
    """The gradients of all arguments but the last, which is the gradient of the result."""

    def run(*arguments):
        return jax.vjp(function, *arguments[:-1])[1](arguments[-1])

    return run


def sgd(loss, clip=None, momentum=None, decay=0.0):
    """One step: new parameters, which are the arguments after the first (and new momenta)."""

    def step(x, *rest):
        count = len(rest) // 2 if momentum else len(rest)
        parameters, velocities = rest[:count], rest[count:]
        grads = jax.grad(loss, tuple(range(1, count + 1)))(x, *parameters)
        grads = [g + decay * p for g, p in zip(grads, parameters)]
        if clip:
            norm = jnp.sqrt(sum((g * g).sum() for g in grads))
            grads = [g * jnp.minimum(1, clip / norm) for g in grads]
        if momentum:
            velocities = [momentum * v + g for v, g in zip(velocities, grads)]
            return [p - 0.1 * v for p, v in zip(parameters, velocities)] + velocities
        return [p - 0.1 * g for p, g in zip(parameters, grads)]

    return step


def adam(loss):
    def step(x, scale, offset, m, v):
        grad = jax.grad(loss, 1)(x, scale, offset)
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad * grad
        return scale - 0.01 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8), m, v

    return step


def make_modules():
    """Name, function, shapes of arguments with the dim of channels or None, and data types."""
    nchw, nhwc = ((8, 6, 10, 12), 1), ((8, 10, 12, 6), 3)
    c6, flat = ((6,), None), ((32, 24), 1)
    c24 = ((24,), None)
    norm = lambda feature: lambda x, s, o: batch_norm(x, s, o, feature)
    relu = jax.nn.relu
    labels = np.eye(24)[np.arange(32) * 7 % 24]

    def dense(x, w, s, o):
        return relu(batch_norm(x @ w, s, o, 1))

    def cross_entropy(x, s, o):
        return -(log_softmax(batch_norm(x, s, o, 1)) * labels.astype(x.dtype)).sum() / 32

    square = lambda y: (y * y).sum() / y.shape[0]
    modules = [
        ("plain-nchw", pull(norm(1)), [nchw, c6, c6, nchw]),
        ("plain-nhwc", pull(norm(-1)), [nhwc, c6, c6, nhwc]),
        ("plain-2d", pull(norm(1)), [flat, c24, c24, flat]),
        ("plain-3d", pull(norm(1)), [((4, 6, 5, 6, 7), 1), c6, c6, ((4, 6, 5, 6, 7), 1)]),
        ("plain-ndhwc", pull(norm(-1)), [((4, 5, 6, 7, 6), 4), c6, c6, ((4, 5, 6, 7, 6), 4)]),
        ("sequence", pull(norm(-1)), [((4, 50, 6), 2), c6, c6, ((4, 50, 6), 2)]),
        ("one-channel", pull(norm(1)), [((4, 1, 9, 9), 1), ((1,), None), ((1,), None), ((4, 1, 9, 9), 1)]),
        ("relu-nchw", pull(lambda x, s, o: relu(batch_norm(x, s, o, 1))), [nchw, c6, c6, nchw]),
        ("relu-nhwc", pull(lambda x, s, o: relu(batch_norm(x, s, o, 3))), [nhwc, c6, c6, nhwc]),
        ("relu6", pull(lambda x, s, o: jnp.clip(batch_norm(x, s, o, 1), 0, 6)), [nchw, c6, c6, nchw]),
        ("residual", pull(lambda x, s, o, k: relu(batch_norm(x, s, o, 1) + k)), [nchw, c6, c6, nchw, nchw]),
        ("residual-nhwc", pull(lambda x, s, o, k: relu(batch_norm(x, s, o, 3) + k)), [nhwc, c6, c6, nhwc, nhwc]),
        ("pre-activation", pull(lambda x, s, o, w: conv(relu(batch_norm(x, s, o, 1)), w) + x),
         [nchw, c6, c6, ((6, 6, 3, 3), None), nchw]),
        ("two-branches", pull(lambda x, s, o, z, t, p: relu(batch_norm(x, s, o, 1) + batch_norm(z, t, p, 1))),
         [nchw, c6, c6, nchw, c6, c6, nchw]),
        ("convolution", pull(lambda x, w, s, o: relu(batch_norm(conv(x, w), s, o, 1))),
         [((4, 3, 10, 10), 1), ((6, 3, 3, 3), None), c6, c6, ((4, 6, 10, 10), 1)]),
        ("convolution-nhwc", pull(lambda x, w, s, o: relu(batch_norm(nhwc_conv(x, w), s, o, 3))),
         [((4, 10, 10, 3), 3), ((3, 3, 3, 6), None), c6, c6, ((4, 10, 10, 6), 3)]),
        ("strided-convolution", pull(lambda x, w, s, o: batch_norm(conv(x, w, 2), s, o, 1)),
         [((4, 3, 10, 10), 1), ((6, 3, 3, 3), None), c6, c6, ((4, 6, 5, 5), 1)]),
        ("average-pool", pull(lambda x, s, o: average_pool(relu(batch_norm(x, s, o, 1)))),
         [nchw, c6, c6, ((8, 6, 5, 6), 1)]),
        ("global-pool", pull(lambda x, s, o: batch_norm(x, s, o, 1).mean((2, 3))), [nchw, c6, c6, ((8, 6), 1)]),
        ("dense", pull(dense), [((32, 16), 1), ((16, 24), None), c24, c24, flat]),
        ("two-layers", pull(lambda x, w, s, o, v, t, p: dense(dense(x, w, s, o), v, t, p)),
         [((32, 16), 1), ((16, 24), None), c24, c24, ((24, 24), None), c24, c24, flat]),
        ("softmax", pull(lambda x, s, o: jax.nn.softmax(batch_norm(x, s, o, 1))), [flat, c24, c24, flat]),
        ("cross-entropy", gradients(cross_entropy), [flat, c24, c24]),
        ("label-smoothing", gradients(lambda x, s, o: -(log_softmax(batch_norm(x, s, o, 1)) *
                                                         (0.9 * labels + 0.1 / 24).astype(x.dtype)).mean()),
         [flat, c24, c24]),
        ("squeeze-excite", pull(lambda x, s, o, w, v: gate(batch_norm(x, s, o, 1), w, v)),
         [nchw, c6, c6, ((6, 3), None), ((3, 6), None), nchw]),
        ("layer-norm", pull(lambda x, s, o: layer_norm(batch_norm(x, s, o, 1))), [flat, c24, c24, flat]),
        ("layer-norm-nhwc", pull(lambda x, s, o: layer_norm(batch_norm(x, s, o, 3))), [nhwc, c6, c6, nhwc]),
        ("swish", pull(lambda x, s, o: jax.nn.silu(batch_norm(x, s, o, 1))), [nchw, c6, c6, nchw]),
        ("tanh", pull(lambda x, s, o: jnp.tanh(batch_norm(x, s, o, 3))), [nhwc, c6, c6, nhwc]),
        ("gelu", pull(lambda x, s, o: jax.nn.gelu(batch_norm(x, s, o, 1))), [nchw, c6, c6, nchw]),
        ("dropout", pull(lambda x, s, o: batch_norm(x, s, o, 1) * (np.arange(32 * 24).reshape(32, 24) % 3 > 0) * 1.5),
         [flat, c24, c24, flat]),
        ("huber", gradients(lambda x, s, o, t: jnp.where(
            abs(batch_norm(x, s, o, 1) - t) < 1, (batch_norm(x, s, o, 1) - t)**2 / 2,
            abs(batch_norm(x, s, o, 1) - t) - 0.5).mean()), [flat, c24, c24, flat]),
        ("step-nchw", step(1), [nchw, c6, c6, c6, c6, nchw]),
        ("step-nhwc", step(-1), [nhwc, c6, c6, c6, c6, nhwc]),
        ("step-relu", step(1, relu), [nchw, c6, c6, c6, c6, nchw]),
        ("step-2d", step(1, jnp.tanh), [flat, c24, c24, c24, c24, flat]),
        ("sgd", sgd(lambda x, s, o: square(relu(batch_norm(x, s, o, 1)))), [nchw, c6, c6]),
        ("sgd-clipping", sgd(lambda x, w, s, o: square(dense(x, w, s, o)), clip=1.0),
         [((32, 16), 1), ((16, 24), None), c24, c24]),
        ("momentum", sgd(lambda x, s, o: square(relu(batch_norm(x, s, o, 1))), momentum=0.9, decay=1e-2),
         [nchw, c6, c6, c6, c6]),
        ("adam", adam(lambda x, s, o: square(jnp.tanh(batch_norm(x, s, o, 1)))), [nchw, c6, c6, c6, c6]),
        ("gradient-norm", lambda x, s, o: [jnp.sqrt(sum((g * g).sum() for g in gradients(cross_entropy)(x, s, o)))],
         [flat, c24, c24]),
    ]
    return [(name, function, shapes, ("float32",) * len(shapes)) for name, function, shapes in modules] + [
        (f"{kind}-{name}", function, shapes, (kind,) + ("float32",) * (len(shapes) - 2) + (kind,))
        for kind in ("bfloat16", "float16") for name, function, shapes in [
            ("relu", pull(lambda x, s, o: relu(batch_norm(x.astype(s.dtype), s, o, 3)).astype(x.dtype)),
             [nhwc, c6, c6, nhwc])]]


def make_networks():
    """Like make_modules: other layers before and after a batch norm, whole networks, and sums as long as those
    over images."""
    nchw, nhwc, flat, c6, c24 = ((8, 6, 10, 12), 1), ((8, 10, 12, 6), 3), ((32, 24), 1), ((6,), None), ((24,), None)
    relu, softmax, sigmoid = jax.nn.relu, jax.nn.softmax, jax.nn.sigmoid

    def convolve(x, w, rank, **options):
        spatial = "DHW"[3 - rank:]
        return lax.conv_general_dilated(x, w, (1,) * rank, options.pop("padding", "SAME"), dimension_numbers=(
            "NC" + spatial, "OI" + spatial, "NC" + spatial), **options)

    def after(layer):
        return pull(lambda x, s, o: layer(batch_norm(x, s, o, 1)))

    def before(rank, **options):
        return pull(lambda x, w, s, o: relu(batch_norm(convolve(x, w, rank, **options), s, o, 1)))

    def attention(y):
        return softmax(jnp.einsum("nci,ncj->nij", y, y) / 5, -1) @ y.transpose(0, 2, 1)

    def group_norm(y):
        z = y.reshape(8, 2, 3, 10, 12)
        z = z - z.mean((2, 3, 4), keepdims=True)
        return (z / jnp.sqrt((z * z).mean((2, 3, 4), keepdims=True) + EPSILON)).reshape(y.shape)

    def contrastive(x, s, o):
        y = batch_norm(x, s, o, 1)
        y = y / jnp.sqrt((y * y).sum(1, keepdims=True) + 1e-6)
        return -(log_softmax(y @ y.T * 3) * np.eye(32)[::-1].astype(x.dtype)).sum() / 32

    def network(x, w, s, o):
        for i in range(w.shape[0]):
            x = relu(batch_norm(convolve(x, w[i] / 10, 2), s[i], o[i], 1)) + x
        return -(log_softmax(x.mean((2, 3))) * np.eye(8)[:4].astype(x.dtype)).sum()

    def images(x, s, o):
        x = x + 1
        return x.mean((0, 2, 3)), x.var((0, 2, 3)), *gradients(lambda *a: (batch_norm(*a, 1)**2).sum())(x, s, o)[1:]

    modules = [
        ("max-pool", after(lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")),
         [nchw, c6, c6, ((8, 6, 5, 6), 1)]),
        ("attention", after(attention), [((3, 6, 9), 1), c6, c6, ((3, 9, 6), 2)]),
        ("group-norm", after(group_norm), [nchw, c6, c6, nchw]),
        ("rms-norm", after(lambda y: y / jnp.sqrt((y * y).mean(1, keepdims=True) + 1e-6)), [flat, c24, c24, flat]),
        ("gated-halves", after(lambda y: y[:, :3] * sigmoid(y[:, 3:])), [nchw, c6, c6, ((8, 3, 10, 12), 1)]),
        ("channel-shuffle", after(lambda y: y.reshape(8, 2, 3, 10, 12).transpose(0, 2, 1, 3, 4).reshape(y.shape)),
         [nchw, c6, c6, nchw]),
        ("upsample", after(lambda y: jnp.repeat(jnp.repeat(y, 2, 2), 2, 3)), [nchw, c6, c6, ((8, 6, 20, 24), 1)]),
        ("reflect-pad", after(lambda y: jnp.pad(y, ((0, 0), (0, 0), (1, 2), (2, 1)), mode="reflect")),
         [nchw, c6, c6, ((8, 6, 13, 15), 1)]),
        ("reversed", after(lambda y: y[:, :, ::-1, ::2]), [nchw, c6, c6, ((8, 6, 10, 6), 1)]),
        ("channel-attention", after(lambda y: y * softmax(y.mean((2, 3)), 1)[:, :, None, None] *
                                    sigmoid(y.max(1, keepdims=True))), [nchw, c6, c6, nchw]),
        ("prelu", pull(lambda x, s, o, a: (lambda y: jnp.where(y > 0, y, y * a[:, None, None]))(
            batch_norm(x, s, o, 1))), [nchw, c6, c6, c6, nchw]),
        ("depthwise", before(2, feature_group_count=6), [nchw, ((6, 1, 3, 3), None), c6, c6, nchw]),
        ("grouped", before(2, feature_group_count=2), [nchw, ((6, 3, 3, 3), None), c6, c6, nchw]),
        ("dilated", before(2, rhs_dilation=(2, 2)), [nchw, ((6, 6, 3, 3), None), c6, c6, nchw]),
        ("transposed", before(2, lhs_dilation=(2, 2), padding=[(1, 2), (1, 2)]),
         [((4, 3, 5, 6), 1), ((6, 3, 3, 3), None), c6, c6, ((4, 6, 10, 12), 1)]),
        ("convolution-1d", before(1), [((4, 3, 20), 1), ((6, 3, 3), None), c6, c6, ((4, 6, 20), 1)]),
        ("convolution-3d", before(3), [((2, 3, 5, 6, 7), 1), ((6, 3, 3, 3, 3), None), c6, c6, ((2, 6, 5, 6, 7), 1)]),
        ("contrastive", gradients(contrastive), [flat, c24, c24]),
        ("two-inputs", gradients(lambda x, z, s, o: ((batch_norm(x, s, o, 1) - 2 * batch_norm(z, s, o, 1))**2).sum()),
         [flat, flat, c24, c24]),
        ("three-convolutions", gradients(network),
         [((4, 8, 12, 12), 1), ((3, 8, 8, 3, 3), None), ((3, 8), 1), ((3, 8), 1)]),
        ("images", images, [((16, 8, 112, 112), 1), ((8,), None), ((8,), None)]),
        ("images-nhwc", pull(lambda x, s, o: batch_norm(x, s, o, 3)),
         [((16, 112, 112, 8), 3), ((8,), None), ((8,), None), ((16, 112, 112, 8), 3)]),
    ]
    return [(name, function, shapes, ("float32",) * len(shapes)) for name, function, shapes in modules]


def print_module(function, arguments):
    """The StableHLO of `function`. JAX also uses ops of CHLO, which only its own MLIR can lower."""
    module = jax.jit(function, keep_unused=True).lower(*arguments).compiler_ir("stablehlo")
    with module.context:
        passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
    return str(module)


def evaluate(function, arguments):
    """The results in float64, of the values of `arguments`."""
    global use_formula
    use_formula = True
    with jax.enable_x64(True):
        results = jax.jit(function)(*[jnp.asarray(np.asarray(a).astype(np.float64)) for a in arguments])
        results = [np.asarray(result) for result in results]
    use_formula = False
    return results


def main():
    stablehlo.register_stablehlo_passes()
    writer = Writer(sys.argv[1], "jax")
    for number, (name, function, shapes, kinds) in enumerate(make_modules() + make_networks()):
        rng = np.random.default_rng(number)
        # Parameters and momenta are positive, so that none is close to 0.
        arguments = [jnp.asarray(make_data(rng, shape, dim) if dim is not None or len(shape) > 1 else
                                 rng.uniform(0.5, 1.5, shape)).astype(kind)
                     for (shape, dim), kind in zip(shapes, kinds)]
        expected = evaluate(function, arguments)
        shapes = jax.eval_shape(function, *arguments)
        writer.write(name, print_module(function, arguments), arguments,
                     [result.astype(shape.dtype) for result, shape in zip(expected, shapes)])


if __name__ == "__main__":
    main()
