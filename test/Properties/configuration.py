"""A random configuration: shape, types, operands, values."""

from typing import List, Optional, Tuple

import numpy as np

from floats import FLOATS, PRECISION, Array, accumulator, real
from gradients import Problem

MAX_ELEMENTS = 6000
SIZES = {1: [1, 5, 17, 64, 257], 2: [1, 3, 8, 31, 64, 67, 1031],
         3: [1, 2, 5, 9, 16, 23, 97], 4: [1, 2, 3, 5, 7, 8], 5: [1, 2, 3, 5, 7]}
RESULTS = ["grad_input", "grad_scale", "grad_offset"]


def pick_features(random: np.random.RandomState, rank: int) -> Tuple[int, ...]:
    """NCHW, NHWC, a middle dim, several, all but 0, or all."""
    several = sorted(random.permutation(rank)[:random.randint(1, rank + 1)])
    choices = [(1,), (rank - 1,), (rank // 2,), tuple(map(int, several)),
               tuple(range(1, rank)), tuple(range(rank))]
    # `all` and `several` are rare: their sums have few elements.
    features = choices[random.choice(6, p=[.25, .25, .15, .2, .1, .05])]
    return features if features and features[-1] < rank else (0,)


class Configuration:
    """The configuration of `seed`; equal seeds give equal configurations.

    `dy` is on a grid on which the sum of two multiples of it by +-1 or +-2
    (`combined_dy`) is exact. It grows with `input`, so that no sum is small
    relative to its terms by chance.
    """

    def __init__(self, seed: int):
        self.seed = seed
        random = self.random = np.random.RandomState(seed)

        def maybe(probability: float) -> bool:
            return bool(random.random_sample() < probability)

        # With rank 1 a sum has one element.
        self.rank = random.choice(5, p=[.05, .25, .25, .25, .2]) + 1
        self.features = pick_features(random, self.rank)
        while True:
            sizes = random.choice(SIZES[self.rank], self.rank)
            if np.prod(sizes) <= MAX_ELEMENTS:
                break
        if maybe(0.06):
            sizes[random.randint(self.rank)] = 0
        self.shape = tuple(map(int, sizes))
        self.reduced = tuple(dim for dim in range(self.rank)
                             if dim not in self.features)
        self.channels = tuple(self.shape[dim] for dim in self.features)
        # Share of the sizes that are dynamic: none, all, or some.
        self.dynamic = random.choice([0.0, 1.0, 0.5])

        self.data = random.choice(FLOATS)
        self.parameter = self.data if maybe(0.3) else random.choice(FLOATS)
        self.accumulator = accumulator(self.data, self.parameter)
        self.kinds = [self.data, self.parameter, self.parameter] if maybe(
            0.4) else list(random.choice(FLOATS, 3))
        self.is_batch = maybe(0.7)
        self.has_inv_std, self.has_scale = maybe(0.4), maybe(0.7)
        self.has_mask = maybe(0.35)
        # For batch statistics; global ones are never true.
        self.is_true = self.is_batch and maybe(0.75)
        self.make_data()

    def __str__(self) -> str:
        return (f"{self.data} {'x'.join(map(str, self.shape))} feature_dims "
                f"{self.features}, parameters {self.parameter}, results "
                f"{' '.join(self.kinds)}, "
                f"{'batch' if self.is_batch else 'global'}")

    def keep(self, values: np.ndarray) -> np.ndarray:
        return values.reshape([size if dim in self.features else 1
                               for dim, size in enumerate(self.shape)])

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Values in (-1, 1), with two bits less than the data type."""
        steps = real(2) ** (PRECISION[self.data] - 2)
        return np.clip(np.rint(values * steps), 1 - steps, steps - 1) / steps

    def make_data(self) -> None:
        random, shape = self.random, self.shape
        # All channels differ.
        location = random.uniform(0.25, 2, self.channels) * random.choice(
            [-1, 1], self.channels)
        if self.data in ("f32", "f64") and random.random_sample() < 0.2:
            location = location * 100
        spread = random.uniform(0.5, 1.5, self.channels)
        noise = random.standard_normal(shape)
        self.x = Array.rounded(self.data, self.keep(location)
                               + self.keep(spread) * noise)
        lean = self.keep(random.uniform(0.1, 0.3, self.channels))
        self.magnitude = real(2) ** random.randint(-3, 4)
        grids = [self.on_grid(lean * (1 + noise)
                              + 0.2 * random.standard_normal(shape))
                 for _ in range(2)]
        self.factors = random.choice([-2, -1, 1, 2], 2)
        dys = [*grids, self.factors[0] * grids[0] + self.factors[1] * grids[1]]
        arrays = [Array.rounded(self.data, dy * self.magnitude) for dy in dys]
        assert (arrays[2].values == dys[2] * self.magnitude).all()
        self.dy, self.other_dy, self.combined_dy = arrays
        self.mask = Array.rounded("i1", random.random_sample(
            shape) < 0.7) if self.has_mask else None

        self.scale = Array.rounded(self.parameter, random.uniform(
            0.5, 2, self.channels) * random.choice(
                [-1, 1], self.channels)) if self.has_scale else None
        self.make_statistics(location, spread)

    def make_statistics(self, location, spread) -> None:
        random = self.random
        mean, variance = Problem(
            self.dy.values, self.x.values, None, location, spread,
            self.features, True).statistics
        if not self.is_true:
            mean = location + random.uniform(0.05, 0.2, self.channels)
            variance = spread ** 2 * random.uniform(0.7, 1.4, self.channels)
        self.mean = Array.rounded(self.parameter, mean)
        self.variance = Array.rounded(self.parameter, variance)
        # Epsilon of the forward pass; a variance of 0 needs one.
        self.epsilon = random.choice([0.0, 1e-3, 0.5])
        if (self.variance.values < 0.01).any():
            self.epsilon = 0.5
        self.inv_std = Array.rounded(
            self.parameter, 1 / np.sqrt(variance.astype(real) + self.epsilon))
        # The other statistic for the same problem.
        if self.has_inv_std:
            self.variance = Array.rounded(
                self.parameter, 1 / self.inv_std.values ** 2)
        else:
            self.inv_std = Array.rounded(self.parameter, self.true_inv_std(
                False))

    def true_inv_std(self, has_inv_std: bool) -> np.ndarray:
        """r, computed from the given operand."""
        if has_inv_std:
            return self.inv_std.values
        epsilon = 0.0 if self.has_inv_std else self.epsilon
        return 1 / np.sqrt(self.variance.values + real(epsilon))

    def problem(self, dy: Optional[Array] = None) -> Problem:
        values = (dy or self.dy).values
        if self.has_mask:
            values = np.where(self.mask.values, values, real(0))
        return Problem(values, self.x.values,
                       self.scale.values if self.has_scale else None,
                       self.mean.values, self.true_inv_std(self.has_inv_std),
                       self.features, self.is_batch)

    def result_shapes(self) -> List[Tuple[int, ...]]:
        return [self.shape, self.channels, self.channels]
