"""A training step of JAX with bngrad.jax beside one without; the argument is the root of the sources."""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np

import bngrad.jax

root = sys.argv[1]
SHAPE = (6, 9, 7, 5)
DIMS = (0, 1, 2)
COUNT = SHAPE[0] * SHAPE[1] * SHAPE[2]
EPSILON = 1e-5


def formula(x, scale, offset):
    """JAX's derivative of this is its own gradient."""
    mean = x.mean(DIMS)
    variance = jnp.square(x - mean).mean(DIMS)
    return (x - mean) * (jax.lax.rsqrt(variance + EPSILON) * scale) + offset


def layer(x, scale, offset):
    return bngrad.jax.batch_norm(x, scale, offset, epsilon=EPSILON)[0]


def make_step(normalize):
    """A function of the gradients and of the parameters after a step of SGD."""

    def loss(parameters, weights):
        return (jax.nn.softplus(normalize(**parameters)) * weights).sum()

    def step(parameters, weights):
        gradients = jax.grad(loss)(parameters, weights)
        return gradients, jax.tree.map(lambda value, gradient: value - 0.1 * gradient, parameters, gradients)

    return jax.jit(step)


def find_bounds(x, scale, offset, weights):
    """Bounds of the difference of both gradients.

    With G the factor of docs/numerics.md, mean and inv_std, which each program computes itself, have relative
    errors of at most 13 G, and inv_std enters in the third power; so each result is within 40 G of the exact one,
    times the formula with each term replaced by its absolute value.
    """
    x, scale, offset, weights = (np.asarray(value, np.float64) for value in (x, scale, offset, weights))
    mean = x.mean(DIMS)
    inv_std = 1 / np.sqrt(x.var(DIMS) + EPSILON)
    # Errors of the mean are relative to those of the data.
    centered = abs(x - mean) + abs(x).mean(DIMS)
    d = abs(weights)
    total, product = d.sum(DIMS), (d * centered).sum(DIMS)
    terms = {"x": abs(scale) * inv_std * (d + total / COUNT + centered * inv_std**2 * product / COUNT),
             "scale": product * inv_std, "offset": total}
    growth = 4 * 2.0**-24 * (4 + math.log2(COUNT + 1))
    return {name: 2 * 40 * growth * term for name, term in terms.items()}


def is_within(first, second, bounds):
    return all((abs(np.asarray(first[name], np.float64) - second[name]) <= bound).all()
               for name, bound in bounds.items())


random = np.random.default_rng(0)
channel = np.arange(SHAPE[-1], dtype=np.float32)
parameters = {"x": random.normal(size=SHAPE).astype(np.float32) + channel, "scale": 0.3 * channel + 0.5,
              "offset": 0.1 * channel - 0.2}
weights = random.normal(size=SHAPE).astype(np.float32)
step = make_step(layer)
assert "bngrad.batch_norm_backward" in step.lower(parameters, weights).as_text()
gradients, updated = step(parameters, weights)
expected, _ = make_step(formula)(parameters, weights)
bounds = find_bounds(**parameters, weights=weights)
assert is_within(gradients, expected, bounds)
# The bounds are not idle.
for name in gradients:
    assert not is_within({**gradients, name: np.roll(gradients[name], 1, -1)}, expected, bounds), name
assert all((updated[name] != parameters[name]).any() for name in parameters)

with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
assert not [path for path in paths if path.startswith(root + "/")], paths
assert [path for path in paths if path.startswith(sys.prefix) and path.endswith("/libbngrad_jax.so")], paths
print(f"jax {jax.__version__}")
