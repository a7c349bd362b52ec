"""A module of a client, with arguments and the client's own results, as files of a folder."""

import json
from pathlib import Path

import numpy as np

# Largest difference allowed, relative to the largest absolute value of a result: 2e-6, or a
# few roundings of a 16-bit type, which the ops around a gradient each add.
LIMITS = {"float32": 2e-6, "float64": 1e-12, "float16": 4 * 2.0**-11, "bfloat16": 4 * 2.0**-8}


def to_npy(array):
    """The array as bngrad-runner reads it: bfloat16 as its bits."""
    array = np.ascontiguousarray(array)
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def make_data(rng, shape, channel_dim=None):
    """Normal values. With a dim of channels, each channel has its own spread; means of their own
    would make the sums of a gradient ill-conditioned."""
    values = rng.standard_normal(shape)
    if channel_dim is not None:
        form = [1] * len(shape)
        form[channel_dim] = -1
        values = values * np.linspace(0.5, 2, shape[channel_dim]).reshape(form)
    return values


class Writer:
    """Writes modules to `folder`."""

    def __init__(self, folder, client):
        self.folder, self.client = Path(folder), client

    def write(self, name, text, arguments, results, limits=None):
        """`limits`: for results that the client itself computes less exactly, by number."""
        path = self.folder / f"{self.client}-{name}"
        path.mkdir(parents=True)
        (path / "module.mlir").write_text(text)
        for i, argument in enumerate(arguments):
            np.save(path / f"argument{i}.npy", to_npy(argument))
        chosen = []
        for i, result in enumerate(results):
            kind = np.asarray(result).dtype.name
            np.save(path / f"expected{i}.npy", np.asarray(result).astype(np.float64))
            chosen.append((limits or {}).get(i, LIMITS[kind]))
        (path / "module.json").write_text(json.dumps({"client": self.client, "arguments": len(arguments),
                                                      "limits": chosen}))
