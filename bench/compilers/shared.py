"""Arrays in files that all processes map: the inputs, and the results to check."""

import json
import pathlib

import numpy

INDEX = "index.json"


class Folder:
    """As the harness of data.Store: allocates arrays in files."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.count = 0

    def allocate(self, count, dtype):
        self.count += 1
        path = self.folder / str(self.count)
        return numpy.memmap(path, dtype, "w+", shape=(count,))


def save(store, folder):
    """Writes down which file has which array of a data.Store."""
    index = [[key if isinstance(key, str) else list(key), pathlib.Path(array.filename).name, array.dtype.str]
             for key, array in store.data.items()]
    (pathlib.Path(folder) / INDEX).write_text(json.dumps(index))


def load(folder):
    """The arrays as data.Store has them, by name or by name and element type."""
    folder = pathlib.Path(folder)
    return {
        key if isinstance(key, str) else tuple(key): numpy.memmap(folder / name, numpy.dtype(dtype), "r+")
        for key, name, dtype in json.loads((folder / INDEX).read_text())
    }
