"""Calls the handlers of bngrad.jax for CUDA as XLA does, over the memory of the emulator.

The structs are those of xla/ffi/api/c_api.h.
"""

import collections
import contextlib
import ctypes
import functools
import os
import pathlib
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

import jax
import ml_dtypes
import numpy as np
import pytest
from bngrad.jax import _calls, _prepare

os.environ["BNGRAD_CUDA_EMULATOR"] = "1"
# The C library finds it by its name.
emulator = ctypes.CDLL(str(pathlib.Path(os.environ["BNGRAD_BUILD"]) / "lib/libBNGradCudaEmulator.so"))
emulator.mgpuMemAlloc.restype = emulator.mgpuStreamCreate.restype = c_void_p

DATA_TYPES = {np.dtype(type): code for type, code in (
    (bool, 1), (np.int32, 4), (np.int64, 5), (np.float16, 10), (np.float32, 11), (np.float64, 12),
    (ml_dtypes.bfloat16, 16))}
INITIALIZE, EXECUTE = 2, 3
METADATA_EXTENSION = 1


def _struct(name, *fields):
    """A struct whose first fields are its size and its extensions."""
    fields = [("struct_size", c_size_t), ("extension_start", c_void_p), *fields]
    return type(name, (Structure,), {"_fields_": fields})


class _Span(Structure):
    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


class _Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class _Array(Structure):
    _fields_ = [("dtype", c_int), ("size", c_size_t), ("data", c_void_p)]


_FUNCTIONS = ("Error_Create", "Error_GetMessage", "Error_Destroy", "Handler_Register", "Stream_Get", "Type_Register",
              "ExecutionContext_Get", "State_Set", "State_Get", "DeviceMemory_Allocate", "DeviceMemory_Free",
              "ThreadPool_Schedule", "ThreadPool_NumThreads", "Future_Create", "Future_SetAvailable",
              "Future_SetError", "RunId_Get", "DeviceOrdinal_Get")
_Version = _struct("_Version", ("major_version", c_int), ("minor_version", c_int))
_Api = _struct("_Api", ("version", _Version), ("internal_api", c_void_p), *[(name, c_void_p) for name in _FUNCTIONS])
_Buffer = _struct("_Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))
_List = _struct("_List", ("size", c_int64), ("types", POINTER(c_int)), ("values", POINTER(c_void_p)))
_Attributes = _struct("_Attributes", ("size", c_int64), ("types", POINTER(c_int)), ("names", POINTER(c_void_p)),
                      ("values", POINTER(c_void_p)))
_Frame = _struct("_Frame", ("api", POINTER(_Api)), ("context", c_void_p), ("stage", c_int), ("arguments", _List),
                 ("results", _List), ("attributes", _Attributes), ("future", c_void_p))
_ErrorCreate = _struct("_ErrorCreate", ("message", c_char_p), ("code", c_int))
_ErrorMessage = _struct("_ErrorMessage", ("error", c_void_p), ("message", c_char_p))
_ErrorDestroy = _struct("_ErrorDestroy", ("error", c_void_p))
_Stream = _struct("_Stream", ("context", c_void_p), ("stream", c_void_p))
_Allocate = _struct("_Allocate", ("context", c_void_p), ("size", c_size_t), ("alignment", c_size_t),
                    ("data", c_void_p))
_Free = _struct("_Free", ("context", c_void_p), ("size", c_size_t), ("data", c_void_p))
_Ordinal = _struct("_Ordinal", ("context", c_void_p), ("ordinal", c_int32))


# The size that XLA writes, without the result.
_FRAME_SIZE = _Frame.future.offset


class _Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", ctypes.c_uint32), ("state_type", c_int64)]


class _MetadataExtension(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(_Metadata))]


class XlaError(Exception):
    """An error that a handler returned; `code` is an XLA_FFI_Error_Code."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class DeviceArray:
    """A copy of an array in the memory of the emulator."""

    _start = None

    def __init__(self, array, offset=0):
        array = np.array(array, order="C")
        self.shape, self.dtype = array.shape, array.dtype
        # XLA gives no address to arrays without elements.
        self.address = None
        if array.size:
            self.address = emulator.mgpuMemAlloc(ctypes.c_uint64(array.nbytes + offset), None, 0) + offset
            emulator.mgpuMemcpy(c_void_p(self.address), c_void_p(array.ctypes.data), ctypes.c_uint64(array.nbytes), None)
        self._start = self.address - offset if self.address else None

    def __del__(self):
        # At the end of the process there is no emulator any more.
        if self._start and emulator:
            emulator.mgpuMemFree(c_void_p(self._start), None)

    def read(self):
        array = np.empty(self.shape, self.dtype)
        if self.address:
            emulator.mgpuMemcpy(c_void_p(array.ctypes.data), c_void_p(self.address), ctypes.c_uint64(array.nbytes), None)
            emulator.mgpuStreamSynchronize(None)
        return array


class Xla:
    """The part of XLA that calls handlers; records what they ask for.

    stream, device: what handlers get; None: asking for it is an error.
    has_memory: whether scratch memory can be allocated.
    """

    def __init__(self, library, stream=None, device=0, has_memory=True):
        self.library, self.stream, self.device, self.has_memory = library, stream, device, has_memory
        self.scratch, self.num_freed, self.asked = [], 0, []
        self._errors, self._messages = {}, []
        self._api = _Api(struct_size=ctypes.sizeof(_Api))
        self._api.version = _Version(ctypes.sizeof(_Version), None, 0, 1)
        self._kept = []
        for name, (struct, has_result, function) in {
                "Error_Create": (_ErrorCreate, True, self._create_error),
                "Error_GetMessage": (_ErrorMessage, False, self._get_message),
                "Error_Destroy": (_ErrorDestroy, False, lambda call: self._errors.pop(call.error)),
                "Stream_Get": (_Stream, True, self._get_stream),
                "DeviceMemory_Allocate": (_Allocate, True, self._allocate),
                "DeviceMemory_Free": (_Free, True, self._free),
                "DeviceOrdinal_Get": (_Ordinal, True, self._get_ordinal)}.items():
            wrapped = ctypes.CFUNCTYPE(c_void_p if has_result else None, POINTER(struct))(
                lambda pointer, function=function: function(pointer.contents))
            self._kept.append(wrapped)
            setattr(self._api, name, ctypes.cast(wrapped, c_void_p))

    def _make_error(self, code, message):
        key = len(self._messages) + 1
        self._messages.append(message)
        self._errors[key] = code, message
        return key

    def _create_error(self, call):
        return self._make_error(call.code, call.message)

    def _get_message(self, call):
        call.message = self._errors[call.error][1]

    def _get_stream(self, call):
        self.asked.append("stream")
        call.stream = self.stream

    def _get_ordinal(self, call):
        self.asked.append("device")
        call.ordinal = self.device

    def _allocate(self, call):
        self.asked.append("memory")
        if not self.has_memory:
            return self._make_error(8, b"no memory")
        call.data = emulator.mgpuMemAlloc(ctypes.c_uint64(call.size), None, 0)
        self.scratch.append(call.size)

    def _free(self, call):
        emulator.mgpuMemFree(c_void_p(call.data), None)
        self.num_freed += 1

    def _list(self, arrays, kept):
        buffers = []
        for array in arrays:
            dims = (c_int64 * len(array.shape))(*array.shape)
            buffers.append(_Buffer(ctypes.sizeof(_Buffer), None, DATA_TYPES[array.dtype], array.address,
                                   len(array.shape), dims))
            kept.append(dims)
        count = len(buffers)
        types, pointers = (c_int * count)(*[1] * count), (c_void_p * count)(*map(ctypes.addressof, buffers))
        kept += [buffers, types, pointers]
        return _List(ctypes.sizeof(_List), None, count, types, pointers)

    def _attributes(self, attributes, kept):
        values, types, names = [], [], []
        for name, value in sorted(attributes.items()):
            names.append(_Span(name.encode(), len(name)))
            if isinstance(value, str):
                types.append(4)
                values.append(_Span(value.encode(), len(value)))
                continue
            array = np.array(value)
            kept.append(array)
            code = DATA_TYPES[array.dtype]
            types.append(1 if array.ndim else 3)
            values.append(_Array(code, array.size, array.ctypes.data) if array.ndim else
                          _Scalar(code, array.ctypes.data))
        count = len(names)
        arrays = [(c_int * count)(*types), *[(c_void_p * count)(*map(ctypes.addressof, each))
                                             for each in (names, values)]]
        kept += [names, values, arrays]
        return _Attributes(ctypes.sizeof(_Attributes), None, count, *arrays)

    def call(self, symbol, operands, results, attributes, stage=EXECUTE):
        """Calls a handler with device arrays."""
        kept = []
        frame = _Frame(_FRAME_SIZE, None, ctypes.pointer(self._api), None, stage,
                       self._list(operands, kept), self._list(results, kept), self._attributes(attributes, kept))
        self._check(symbol, frame)

    def read_metadata(self, symbol):
        """The version of the FFI and the traits of a handler."""
        metadata = _Metadata(struct_size=ctypes.sizeof(_Metadata))
        metadata.version.struct_size = ctypes.sizeof(_Version)
        extension = _MetadataExtension(ctypes.sizeof(_MetadataExtension), METADATA_EXTENSION, None,
                                       ctypes.pointer(metadata))
        frame = _Frame(_FRAME_SIZE, ctypes.addressof(extension), ctypes.pointer(self._api))
        self._check(symbol, frame)
        return (metadata.version.major_version, metadata.version.minor_version), metadata.traits

    def _check(self, symbol, frame):
        handler = getattr(self.library, symbol)
        handler.restype = c_void_p
        error = handler(ctypes.byref(frame))
        if error:
            code, message = self._errors.pop(error)
            raise XlaError(code, message.decode())
        assert not self._errors, self._errors


def call_target(target, arrays, results, attributes):
    """Calls the handlers of a custom call as an execution does; arrays and results are numpy's."""
    symbol = _calls._OPS[target.removeprefix("bngrad.")][0] + "Cuda"
    stream = emulator.mgpuStreamCreate()
    xla = Xla(_prepare.load(), stream)
    operands = [DeviceArray(array) for array in arrays]
    outputs = [DeviceArray(np.zeros(result.shape, result.dtype)) for result in results]
    xla.call(symbol + "Initialize", operands, outputs, attributes, INITIALIZE)
    xla.call(symbol, operands, outputs, attributes)
    emulator.mgpuStreamSynchronize(c_void_p(stream))
    emulator.mgpuStreamDestroy(c_void_p(stream))
    assert xla.num_freed == len(xla.scratch)
    return [output.read() for output in outputs]


def _ffi_call(calls, target, results, *, vmap_method):
    """As jax.ffi.ffi_call, but in a program for a CPU, which calls the handlers for CUDA."""
    def run(attributes, *operands):
        calls[target] += 1
        arrays = [np.asarray(operand) for operand in operands]
        batch_rank = arrays[0].ndim - attributes["rank"]  # grad_output or input
        # An operand that the problems of a batch share has size 1.
        batch = tuple(max(array.shape[dim] for array in arrays) for dim in range(batch_rank))
        described = [jax.ShapeDtypeStruct((*batch, *result.shape), result.dtype) for result in results]
        return call_target(target, arrays, described, attributes)

    def call(*operands, **attributes):
        return jax.pure_callback(
            functools.partial(run, attributes), results, *operands, vmap_method=vmap_method)
    return call


@contextlib.contextmanager
def emulation():
    """Programs for a CPU compute what programs for CUDA compute, on the emulator.

    Yields the number of calls of each target.
    """
    calls = collections.Counter()
    checked = _calls._checked
    kernel, has_kernel = checked._kernel, checked._has_kernel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.ffi, "ffi_call", functools.partial(_ffi_call, calls))
        patch.setattr(checked, "_kernel", lambda platform, *call: kernel("cuda", *call))
        patch.setattr(checked, "_has_kernel", lambda platform, *call: has_kernel("cuda", *call))
        jax.clear_caches()
        yield calls
    jax.clear_caches()
