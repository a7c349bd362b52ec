"""Tensors of a library that only has __dlpack__: made by hand, right and wrong ones.

RUN: %python -m pytest -q %s
"""

import ctypes
import gc
import weakref

import bngrad
import numpy as np
import pytest

PyCapsule_New = ctypes.pythonapi.PyCapsule_New
PyCapsule_New.restype = ctypes.py_object
PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
PyCapsule_IsValid = ctypes.pythonapi.PyCapsule_IsValid
PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Exporter:
    """Exports an array as DLPack of `major`; 0: without a version."""

    def __init__(self, array, major=1, flags=0, data=None, strides=None, shape=None):
        self.array, self.major, self.num_deleted = array, major, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*(shape or array.shape))
        self.strides = (ctypes.c_int64 * array.ndim)(*(strides or [s // array.itemsize for s in array.strides]))
        tensor = Tensor(array.ctypes.data if data is None else data, 1, 0, array.ndim, 2, array.itemsize * 8, 1,
                        ctypes.addressof(self.shape), ctypes.addressof(self.strides), 0)
        deleter = DELETER(self.delete)
        self.managed = Versioned(major, 0, None, deleter, flags, tensor) if major else Unversioned(tensor, None, deleter)
        name = b"dltensor_versioned" if major else b"dltensor"
        self.capsule = PyCapsule_New(ctypes.addressof(self.managed), name, None)

    def delete(self, _address):
        self.num_deleted += 1

    def __dlpack__(self, **options):
        if not self.major and options:
            raise TypeError("unexpected keyword")
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


DY, X = (np.random.default_rng(i).random((4, 3, 5), np.float32) for i in (1, 2))
C = np.full(3, 0.5, np.float32)
EXPECTED = bngrad.batch_norm_backward(DY, X, C, inv_std=C)


def call(x, **options):
    return bngrad.batch_norm_backward(DY, x, C, inv_std=C, **options)


@pytest.mark.parametrize("major", [0, 1])
def test_a_capsule_is_consumed(major):
    exporter = Exporter(X, major)
    results = call(exporter)
    assert all(np.array_equal(a, b) for a, b in zip(results, EXPECTED))
    assert exporter.num_deleted == 1
    assert PyCapsule_IsValid(exporter.capsule, b"used_dltensor_versioned" if major else b"used_dltensor")
    with pytest.raises(bngrad.DtypeError, match="input: expected an object whose __dlpack__ exports a tensor"):
        call(exporter)
    assert exporter.num_deleted == 1


def test_a_version_of_the_future():
    exporter = Exporter(X, major=2)
    with pytest.raises(bngrad.DtypeError, match="input: expected a tensor of DLPack 1, got one of DLPack 2"):
        call(exporter)
    assert exporter.num_deleted == 0
    assert PyCapsule_IsValid(exporter.capsule, b"dltensor_versioned")


@pytest.mark.parametrize("strides", [[15, 5, 1], [15, 5, -1], [-15, -5, -1], [30, 5, 1]])
def test_null_data(strides):
    exporter = Exporter(X, data=0, strides=strides)
    with pytest.raises(ValueError, match="input: expected data, got null") as error:
        call(exporter)
    assert error.value.status == "BNGRAD_NULL_POINTER"
    assert exporter.num_deleted == 1


def test_null_data_of_an_empty_tensor():
    empty = np.zeros((0, 3, 5), np.float32)
    results = bngrad.batch_norm_backward(empty, Exporter(empty, data=0), C, inv_std=C)
    assert results[0].size == 0 and not results[1].any()


def test_negative_sizes():
    with pytest.raises(bngrad.ShapeError, match="input: expected size of dim 1 to be at least 0, got -3"):
        call(Exporter(X, shape=[4, -3, 5]))


def test_read_only():
    out = np.zeros_like(X)
    assert np.array_equal(call(Exporter(X, flags=1))[0], EXPECTED[0])
    with pytest.raises(bngrad.ParameterError, match="grad_input: expected memory to write to, got a read-only array"):
        call(X, out=(Exporter(out, flags=1), None, None))
    call(X, out=(Exporter(out), None, None))
    assert np.array_equal(out, EXPECTED[0])


def test_errors_of_the_library():
    class Broken:
        def __dlpack__(self, **options):
            raise KeyboardInterrupt

    class Meta(type):

        def __getattr__(cls, name):
            raise KeyboardInterrupt

    class Interrupted(metaclass=Meta):
        pass

    with pytest.raises(KeyboardInterrupt):
        bngrad.batch_norm_backward(Interrupted(), Interrupted(), Interrupted(), variance=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        call(Broken())


def test_types_are_not_kept():
    """Of a type that is gone, nothing is known any more."""
    def use():
        kind = type("Array", (Exporter,), {})
        assert np.array_equal(call(kind(X))[0], EXPECTED[0])
        return weakref.ref(kind)

    references = [use() for _ in range(20)]
    gc.collect()
    assert not any(reference() for reference in references)


@pytest.mark.parametrize("changes, error, text", [
    ({"ndim": -1}, bngrad.ShapeError, "input: expected at least 0 dims, got -1"),
    ({"shape": None}, bngrad.ShapeError, "input: expected a shape, got null"),
])
def test_impossible_fields(changes, error, text):
    exporter = Exporter(X)
    for name, value in changes.items():
        setattr(exporter.managed.tensor, name, value)
    with pytest.raises(error, match=text):
        call(exporter)


@pytest.mark.parametrize("options, error, text", [
    ({"shape": [4, -3, 5]}, bngrad.ShapeError, "input: expected size of dim 1 to be at least 0, got -3"),
    ({"strides": [15, 1 << 62, 1]}, bngrad.StridesError,
     "input: expected stride of dim 1 in bytes to fit into 64 bits, got 4611686018427387904 elements"),
])
def test_impossible_sizes(options, error, text):
    with pytest.raises(error, match=text):
        call(Exporter(X, **options))
