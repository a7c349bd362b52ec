#!/usr/bin/env python3
"""Searches for accesses out of bounds that checked entries of programs let through.

  bounds.py --bin=build/bin [--seed=N] [--count=N | --seconds=N]

Each template has one op whose sizes, offsets and indices are arguments. It is compiled once, and called with random
values, of which about half are out of bounds: NAME_checked must return 0 or a status by what numpy says, and must not
change any byte around its arrays.
"""

import argparse
import ctypes
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Callable, List, NamedTuple, Sequence

import numpy as np

GUARD = 64  # elements around each array
BAD_SHAPE = 4


class Buffer:
    """An array of f32 or i64 between guard elements, and its descriptor."""

    def __init__(self, shape: Sequence[int], random: np.random.Generator, dtype=np.float32):
        count = int(np.prod(shape, dtype=int))
        self.memory = (random.random(count + 2 * GUARD) * 100).astype(dtype)
        self.array = self.memory[GUARD:GUARD + count].reshape(shape)
        self.before = self.memory.copy()
        self.descriptor = (ctypes.c_int64 * (3 + 2 * len(shape)))(self.array.ctypes.data, self.array.ctypes.data, 0,
                                                                  *shape, *[s // self.array.itemsize
                                                                            for s in self.array.strides])

    def is_guarded(self) -> bool:
        return all(np.array_equal(self.memory[part], self.before[part]) for part in (slice(GUARD), slice(-GUARD, None)))


class Case(NamedTuple):
    """Values of a template's arguments, and whether they are in bounds."""
    arguments: list
    is_valid: bool


class Template(NamedTuple):
    name: str
    text: str
    make: Callable[[np.random.Generator], Case]
    """What the arrays hold after a call that is valid; None: not compared."""
    expect: Callable[[list], List[np.ndarray]] = lambda arguments: []


def small(random) -> int:
    """Mostly small numbers, and some whose products overflow."""
    if random.random() < 0.1:
        return int(random.choice([-1, -2**62, 2**31, 2**32 + 1, 2**61, 2**62, 2**63 - 1]))
    return int(random.integers(-1, 7))


def slice_is_valid(size: int, offset: int, count: int, stride: int = 1) -> bool:
    if count < 0 or not 0 <= offset <= size:
        return False
    return count == 0 or (offset < size and 0 <= offset + (count - 1) * stride < size)


def case_materialize(random):
    source, dest = (Buffer([random.integers(0, 6)], random) for _ in range(2))
    return Case([source, dest], source.array.size == dest.array.size)


def case_parallel_insert(random):
    source, dest = Buffer([random.integers(0, 4)], random), Buffer([8], random)
    offset, count = small(random), small(random)
    return Case([source, dest, offset, count],
                count == source.array.size and slice_is_valid(8, offset, count))


def case_insert(random):
    source, dest = Buffer([random.integers(0, 4)], random), Buffer([random.integers(0, 8)], random)
    offset, count, stride = small(random), small(random), int(random.choice([1, 2, 2**62, -1]))
    return Case([source, dest, offset, count, stride],
                count == source.array.size and slice_is_valid(dest.array.size, offset, count, stride))


def case_extract_slice(random):
    source, dest = Buffer([random.integers(0, 8)], random), Buffer([3], random)
    offset, count, stride = small(random), 3 if random.random() < 0.7 else small(random), int(
        random.choice([1, 2, 2**62, -1]))
    return Case([source, dest, offset, count, stride],
                count == 3 and slice_is_valid(source.array.size, offset, count, stride))


def case_index(random):
    source, dest = Buffer([random.integers(0, 6)], random), Buffer([random.integers(0, 6)], random)
    i, k = small(random), small(random)
    return Case([source, dest, i, k], 0 <= i < source.array.size and 0 <= k < dest.array.size)


def case_reinterpret(random):
    source, dest = Buffer([random.integers(1, 5), 3], random), Buffer([], random)
    offset, count, stride, i = (small(random) for _ in range(4))
    valid = 2**56 >= count > i >= 0
    if valid:
        ends = offset, offset + (count - 1) * stride
        valid = min(ends) >= 0 and max(ends) < source.array.size
    return Case([source, dest, offset, count, stride, i], valid)


def case_view(random):
    source, dest = Buffer([random.integers(0, 40)], random, np.int8), Buffer([], random)
    shift, count, i = small(random), small(random), small(random)
    shift *= 4 if abs(shift) < 8 else 1
    valid = 0 <= i < count and shift >= 0 and shift + 4 * count <= source.array.size
    return Case([source, dest, shift, count, i], valid)


def case_vector(random):
    source, dest = Buffer([random.integers(0, 9)], random), Buffer([random.integers(0, 9)], random)
    i, k = small(random), small(random)
    return Case([source, dest, i, k], 0 <= i <= source.array.size - 4 and 0 <= k <= dest.array.size - 4)


def case_masked_vector(random):
    """A transfer that may end beyond the last element."""
    source, dest = Buffer([random.integers(0, 9)], random), Buffer([4], random)
    i = small(random)
    return Case([source, dest, i], 0 <= i <= source.array.size + 2**31 - 1)


def case_linalg_index(random):
    source, dest = Buffer([random.integers(0, 14)], random), Buffer([8], random)
    offset = small(random)
    return Case([source, dest, offset], 0 <= offset and offset + 8 <= source.array.size)


def case_size(random):
    dest = Buffer([], random)
    count = int(random.choice([-1, -2**62, 0, 1, 5]))
    return Case([dest, count], count >= 0)


def case_divide(random):
    dest = Buffer([4], random, np.int64)
    values = [0, 1, -1, 7, -2**63]
    return Case([dest, int(random.choice(values)), int(random.choice(values))], True)


def case_collapse(random):
    rows = int(random.integers(1, 4))
    source, dest = Buffer([rows, 2, 3], random), Buffer([], random)
    # Every second row: its dims are one only if there is a single row.
    halves = (rows + 1) // 2
    source.descriptor[3], source.descriptor[6] = halves, 12
    i = small(random)
    return Case([source, dest, i], halves == 1 and 0 <= i < 6)


def case_written_index(random):
    """Its index comes from memory that it does not write, beside memory that it writes."""
    source, index, dest = (Buffer([4], random), Buffer([1], random, np.int64), Buffer([1], random))
    index.array[0] = small(random)
    index.before[:] = index.memory
    return Case([source, index, dest], 0 <= index.array[0] < 4)


def case_map(random):
    """Whose least and greatest index are those of different corners."""
    loops = Buffer([int(random.integers(0, 5)), int(random.integers(0, 5))], random)
    source = Buffer([random.integers(0, 9)], random)
    (rows, columns), size = loops.array.shape, source.array.size
    return Case([source, loops], rows * columns == 0 or (columns <= 4 and rows + 2 < size))


def case_remainder(random):
    source, dest = Buffer([random.integers(1, 6)], random), Buffer([random.integers(0, 9)], random)
    indices = [3 * i % 5 for i in range(dest.array.size)]
    # Remainders of several quotients count as all.
    most = 4 if dest.array.size > 2 else max(indices, default=0)
    return Case([source, dest], dest.array.size == 0 or most < source.array.size)


def case_pad(random):
    source, dest = Buffer([random.integers(0, 4)], random), Buffer([random.integers(0, 9)], random)
    low, high = small(random), small(random)
    if random.random() < 0.4:
        low = int(random.integers(0, 4))
        high = dest.array.size - source.array.size - low
    return Case([source, dest, low, high],
                low >= 0 and high >= 0 and source.array.size + low + high == dest.array.size)


def case_reshape(random):
    """To a rank that only the call knows, of which the program expects 2."""
    source, dest = Buffer([random.integers(0, 7)], random), Buffer([], random)
    shape = Buffer([int(random.choice([1, 2, 2, 2, 3]))], random, np.int64)
    shape.array[:] = [small(random) for _ in shape.array]
    if len(shape.array) == 2 and random.random() < 0.6:
        shape.array[1] = source.array.size // max(int(shape.array[0]), 1)
    shape.before[:] = shape.memory
    i, k = int(random.integers(-1, 3)), int(random.integers(-1, 4))
    sizes = [int(size) for size in shape.array]
    valid = len(sizes) == 2 and sizes[0] * sizes[1] == source.array.size and 0 <= i < sizes[0] and 0 <= k < sizes[1]
    return Case([source, shape, dest, i, k], valid)


def case_wrapped(random):
    """The index is a product that wraps, modulo 2^64."""
    source, dest = Buffer([random.integers(1, 6)], random), Buffer([], random)
    i = small(random)
    index = (max(i, 0) * (2**61 + 1) + 2**63) % 2**64 - 2**63
    return Case([source, dest, i], 0 <= index < source.array.size)


def case_element(random):
    """An index of one array, where no array changes."""
    source, dest = Buffer([random.integers(0, 6)], random), Buffer([1], random)
    i = small(random)
    return Case([source, dest, i], 0 <= i < source.array.size)


def case_store(random):
    """An index at which 1.0 is stored."""
    dest = Buffer([random.integers(0, 6)], random)
    i = small(random)
    return Case([dest, i], 0 <= i < dest.array.size)


def case_store_in(random, size):
    dest = Buffer([size], random)
    i = small(random)
    return Case([dest, i], 0 <= i < size)


def case_store_of(random, index):
    """As case_store, at an index that the program computes."""
    dest, i = case_store(random).arguments
    return Case([dest, i], 0 <= index(i) < dest.array.size)


def store_one(arguments):
    dest, i = arguments
    expected = dest.array.copy()
    expected[i] = 1
    return [expected]


def case_broadcast(random):
    """Arrays with strides of 0, whose number of elements may wrap."""
    source, dest = Buffer([1, 1, 1], random), Buffer([1], random)
    sizes = [int(random.choice([1, 2, 3, 2**31, 2**32, 2**33, 3 * 2**32])) for _ in range(3)]
    source.descriptor[3:9] = sizes + [0, 0, 0]
    i = small(random)
    # A call that is valid has to end.
    if max(sizes) > 3:
        i = -1
    return Case([source, dest, i], 0 <= i < int(np.prod(sizes, dtype=object)))


def case_new(random):
    """New memory of two sizes, of which each element is 1.0."""
    dest = Buffer([1], random)
    sizes = [int(random.integers(0, 6)) for _ in range(2)]
    if random.random() < 0.4:
        sizes = list(((2**33, 2**31), (2**60, 2**60), (4, 2**62), (-1, 3), (5, -2**62))[random.integers(5)])
    i, k = small(random), small(random)
    return Case([dest, *sizes, i, k], max(sizes) <= 5 and 0 <= i < sizes[0] and 0 <= k < sizes[1])


TEMPLATES = [
    Template("materialize", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>) {
  %t = bufferization.to_tensor %a restrict : memref<?xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %t in restrict writable %b : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}""", case_materialize, lambda a: [a[0].array, a[0].array]),
    Template("parallel_insert", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<8xf32>, %offset: index, %count: index) {
  %d = bufferization.to_tensor %b restrict writable : memref<8xf32> to tensor<8xf32>
  %r = scf.forall (%i) in (1) shared_outs(%s = %d) -> tensor<8xf32> {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %a into %s[%offset] [%count] [1] : tensor<?xf32> into tensor<8xf32>
    }
  }
  bufferization.materialize_in_destination %r in restrict writable %b : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}""", case_parallel_insert),
    Template("insert", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<?xf32>, %offset: index, %count: index, %stride: index) {
  %d = bufferization.to_tensor %b restrict writable : memref<?xf32> to tensor<?xf32>
  %r = tensor.insert_slice %a into %d[%offset] [%count] [%stride] : tensor<?xf32> into tensor<?xf32>
  bufferization.materialize_in_destination %r in restrict writable %b : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}""", case_insert),
    Template("extract_slice", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<3xf32>, %offset: index, %count: index, %stride: index) {
  %r = tensor.extract_slice %a[%offset] [%count] [%stride] : tensor<?xf32> to tensor<?xf32>
  %s = tensor.cast %r : tensor<?xf32> to tensor<3xf32>
  bufferization.materialize_in_destination %s in restrict writable %b : (tensor<3xf32>, memref<3xf32>) -> ()
  return
}""", case_extract_slice, lambda a: [a[0].array, a[0].array[a[2]:][::a[4]][:3] if a[4] > 0 else None]),
    Template("subview", """
func.func @NAME(%a: memref<?xf32>, %b: memref<3xf32>, %offset: index, %count: index, %stride: index) {
  %r = memref.subview %a[%offset] [%count] [%stride] : memref<?xf32> to memref<?xf32, strided<[?], offset: ?>>
  %s = memref.cast %r : memref<?xf32, strided<[?], offset: ?>> to memref<3xf32, strided<[?], offset: ?>>
  memref.copy %s, %b : memref<3xf32, strided<[?], offset: ?>> to memref<3xf32>
  return
}""", case_extract_slice),
    Template("elements", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>, %i: index, %k: index) {
  %x = memref.load %a[%i] : memref<?xf32>
  memref.store %x, %b[%k] : memref<?xf32>
  return
}""", case_index),
    Template("affine", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>, %i: index, %k: index) {
  %x = affine.load %a[%i] : memref<?xf32>
  affine.store %x, %b[%k] : memref<?xf32>
  return
}""", case_index),
    Template("tensor_elements", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<?xf32>, %i: index, %k: index) {
  %x = tensor.extract %a[%i] : tensor<?xf32>
  %d = bufferization.to_tensor %b restrict writable : memref<?xf32> to tensor<?xf32>
  %r = tensor.insert %x into %d[%k] : tensor<?xf32>
  bufferization.materialize_in_destination %r in restrict writable %b : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}""", case_index),
    Template("reinterpret", """
func.func @NAME(%a: memref<?x3xf32>, %b: memref<f32>, %offset: index, %count: index, %stride: index, %i: index) {
  %r = memref.reinterpret_cast %a to offset: [%offset], sizes: [%count], strides: [%stride]
      : memref<?x3xf32> to memref<?xf32, strided<[?], offset: ?>>
  %x = memref.load %r[%i] : memref<?xf32, strided<[?], offset: ?>>
  memref.store %x, %b[] : memref<f32>
  return
}""", case_reinterpret),
    Template("view", """
func.func @NAME(%a: memref<?xi8>, %b: memref<f32>, %shift: index, %count: index, %i: index) {
  %r = memref.view %a[%shift][%count] : memref<?xi8> to memref<?xf32>
  %x = memref.load %r[%i] : memref<?xf32>
  memref.store %x, %b[] : memref<f32>
  return
}""", case_view),
    Template("vector", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>, %i: index, %k: index) {
  %x = vector.load %a[%i] : memref<?xf32>, vector<4xf32>
  vector.store %x, %b[%k] : memref<?xf32>, vector<4xf32>
  return
}""", case_vector),
    Template("transfer", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>, %i: index, %k: index) {
  %zero = arith.constant 0.0 : f32
  %x = vector.transfer_read %a[%i], %zero {in_bounds = [true]} : memref<?xf32>, vector<4xf32>
  vector.transfer_write %x, %b[%k] {in_bounds = [true]} : vector<4xf32>, memref<?xf32>
  return
}""", case_vector),
    Template("guarded_transfer", """
func.func @NAME(%a: memref<?xf32>, %b: memref<4xf32>, %i: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %x = vector.transfer_read %a[%i], %zero : memref<?xf32>, vector<4xf32>
  vector.transfer_write %x, %b[%c0] {in_bounds = [true]} : vector<4xf32>, memref<4xf32>
  return
}""", case_masked_vector),
    Template("linalg_index", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<8xf32>, %offset: index) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%b : memref<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %k = arith.addi %i, %offset : index
    %x = tensor.extract %a[%k] : tensor<?xf32>
    linalg.yield %x : f32
  }
  return
}""", case_linalg_index, lambda a: [a[0].array, a[0].array[a[2]:a[2] + 8]]),
    Template("size", """
func.func @NAME(%b: memref<f32>, %count: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%count) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%f : tensor<?xf32>) outs(%i : tensor<f32>) {
  ^bb0(%x: f32, %sum: f32):
    %next = arith.addf %x, %sum : f32
    linalg.yield %next : f32
  } -> tensor<f32>
  bufferization.materialize_in_destination %r in restrict writable %b : (tensor<f32>, memref<f32>) -> ()
  return
}""", case_size),
    Template("divide", """
func.func @NAME(%b: memref<4xi64>, %x: i64, %y: i64) {
  %0 = arith.divsi %x, %y : i64
  %1 = arith.remsi %x, %y : i64
  %2 = arith.divui %x, %y : i64
  %3 = arith.remui %x, %y : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  memref.store %0, %b[%c0] : memref<4xi64>
  memref.store %1, %b[%c1] : memref<4xi64>
  memref.store %2, %b[%c2] : memref<4xi64>
  memref.store %3, %b[%c3] : memref<4xi64>
  return
}""", case_divide, lambda a: [np.array(divisions(a[1], a[2]))]),
    Template("collapse", """
!s = memref<?x2x3xf32, strided<[?, ?, ?], offset: ?>>
func.func @NAME(%a: !s, %b: memref<f32>, %i: index) {
  %c = memref.collapse_shape %a [[0, 1, 2]] : !s into memref<?xf32, strided<[?], offset: ?>>
  %x = memref.load %c[%i] : memref<?xf32, strided<[?], offset: ?>>
  memref.store %x, %b[] : memref<f32>
  return
}""", case_collapse),
    Template("map", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i - k + 3)>, affine_map<(i, k) -> (i, k)>],
                  iterator_types = ["parallel", "parallel"]} ins(%a : memref<?xf32>) outs(%b : memref<?x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  }
  return
}""", case_map, lambda a: [a[0].array, np.array([[a[0].array[i - k + 3] for k in range(a[1].array.shape[1])]
                                                 for i in range(a[1].array.shape[0])]).reshape(a[1].array.shape)]),
    Template("wrapping_map", """
func.func @NAME(%a: memref<?xf32>, %b: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> ((i * 3) mod 5)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]} ins(%a : memref<?xf32>) outs(%b : memref<?xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  }
  return
}""", case_remainder, lambda a: [a[0].array, np.array([a[0].array[3 * i % 5] for i in range(a[1].array.size)])]),
    Template("pad", """
func.func @NAME(%a: tensor<?xf32>, %b: memref<?xf32>, %low: index, %high: index) {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %a low[%low] high[%high] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %p in restrict writable %b : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}""", case_pad, lambda a: [a[0].array, np.pad(a[0].array, (a[2], a[3]))]),
    Template("reshape", """
func.func @NAME(%a: memref<?xf32>, %shape: memref<?xi64>, %b: memref<f32>, %i: index, %k: index) {
  %r = memref.reshape %a(%shape) : (memref<?xf32>, memref<?xi64>) -> memref<*xf32>
  %c = memref.cast %r : memref<*xf32> to memref<?x?xf32>
  %x = memref.load %c[%i, %k] : memref<?x?xf32>
  memref.store %x, %b[] : memref<f32>
  return
}""", case_reshape, lambda a: [a[0].array, a[1].array, a[0].array.reshape(a[1].array)[a[3], a[4]]]),
    Template("wrapped", """
func.func @NAME(%a: memref<?xf32>, %b: memref<f32>, %i: index) {
  %zero = arith.constant 0 : index
  %0 = arith.maxsi %i, %zero : index
  %1 = affine.apply affine_map<()[s] -> (s * 2305843009213693953)>()[%0]
  %x = memref.load %a[%1] : memref<?xf32>
  memref.store %x, %b[] : memref<f32>
  return
}""", case_wrapped),
    Template("loaded_index", """
func.func @NAME(%a: memref<4xf32>, %index: memref<1xi64>, %b: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %i64 = memref.load %index[%c0] : memref<1xi64>
  %i = arith.index_cast %i64 : i64 to index
  %x = memref.load %a[%i] : memref<4xf32>
  memref.store %x, %b[%c0] : memref<1xf32>
  return
}""", case_written_index),
    Template("cloned", """
func.func @NAME(%a: memref<?xf32>, %b: memref<1xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %q = bufferization.clone %a : memref<?xf32> to memref<?xf32>
  memref.store %one, %q[%i] : memref<?xf32>
  %x = memref.load %q[%i] : memref<?xf32>
  memref.store %x, %b[%c0] : memref<1xf32>
  return
}""", case_element, lambda a: [a[0].array, np.ones(1)]),
    Template("yielded_atomic", """
func.func @NAME(%a: memref<?xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %r = scf.parallel (%k) = (%c0) to (%c1) step (%c1) init (%one) -> f32 {
    %x = memref.atomic_rmw assign %one, %a[%i] : (f32, memref<?xf32>) -> f32
    scf.reduce(%x : f32) {
    ^bb0(%y: f32, %z: f32):
      scf.reduce.return %y : f32
    }
  }
  return
}""", case_store, store_one),
    Template("tensor_atomic", """
func.func @NAME(%a: memref<?xf32>, %i: index) {
  %one = arith.constant 1.0 : f32
  %m = memref.alloc() : memref<1xf32>
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]} outs(%e : tensor<1xf32>) {
  ^bb0(%z: f32):
    %x = memref.atomic_rmw assign %one, %a[%i] : (f32, memref<?xf32>) -> f32
    linalg.yield %x : f32
  } -> tensor<1xf32>
  bufferization.materialize_in_destination %r in restrict writable %m : (tensor<1xf32>, memref<1xf32>) -> ()
  return
}""", case_store, store_one),
    Template("call", """
func.func private @store_NAME(%a: memref<?xf32>, %i: index) attributes {no_inline, passthrough = ["willreturn"]} {
  %one = arith.constant 1.0 : f32
  memref.store %one, %a[%i] : memref<?xf32>
  return
}
func.func @NAME(%a: memref<?xf32> {llvm.readonly}, %i: index {llvm.range = #llvm.constant_range<i64, 0, 2>}) {
  func.call @store_NAME(%a, %i) : (memref<?xf32>, index) -> ()
  return
}""", case_store, store_one),
    Template("call_of_blocks", """
func.func private @branch_NAME(%a: memref<?xf32>, %i: index) {
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %c = arith.cmpi slt, %i, %c3 : index
  cf.cond_br %c, ^less, ^more
^less:
  memref.store %one, %a[%i] : memref<?xf32>
  return
^more:
  memref.store %one, %a[%i] : memref<?xf32>
  return
}
func.func @NAME(%a: memref<?xf32>, %i: index) {
  scf.execute_region {
    func.call @branch_NAME(%a, %i) : (memref<?xf32>, index) -> ()
    scf.yield
  }
  return
}""", case_store, store_one),
    Template("lanes", """
func.func @NAME(%a: memref<?xf32>, %i: index) {
  %one = arith.constant 1.0 : f32
  %p = ub.poison : vector<2xindex>
  %v = vector.insert %i, %p[0] : index into vector<2xindex>
  %w = vector.shuffle %v, %p [-1, 3] : vector<2xindex>, vector<2xindex>
  %k = vector.extract %w[0] : index from vector<2xindex>
  memref.store %one, %a[%k] : memref<?xf32>
  return
}""", case_store, store_one),
    Template("positions", """
func.func @NAME(%b: memref<4xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %v = vector.load %b[%c0] : memref<4xf32>, vector<4xf32>
  %w = vector.insert %one, %v[%i] : f32 into vector<4xf32>
  vector.store %w, %b[%c0] : memref<4xf32>, vector<4xf32>
  return
}""", lambda random: case_store_in(random, 4), store_one),
    Template("unranked", """
func.func @NAME(%a: memref<?xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %u = memref.cast %a : memref<?xf32> to memref<*xf32>
  %r = memref.reinterpret_cast %u to offset: [%i], sizes: [1], strides: [1]
      : memref<*xf32> to memref<1xf32, strided<[1], offset: ?>>
  memref.store %one, %r[%c0] : memref<1xf32, strided<[1], offset: ?>>
  return
}""", case_store, store_one),
    Template("broadcast", """
!broadcast = memref<?x?x?xf32, strided<[?, ?, ?]>>
func.func @NAME(%a: !broadcast, %b: memref<1xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %a restrict : !broadcast to tensor<?x?x?xf32>
  %s = arith.addf %t, %t : tensor<?x?x?xf32>
  %f = tensor.collapse_shape %s [[0, 1, 2]] : tensor<?x?x?xf32> into tensor<?xf32>
  %x = tensor.extract %f[%i] : tensor<?xf32>
  memref.store %x, %b[%c0] : memref<1xf32>
  return
}""", case_broadcast, lambda a: [None, 2 * a[0].array.reshape(1)]),
    Template("allocated", """
func.func @NAME(%b: memref<1xf32>, %n: index, %m: index, %i: index, %k: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %e = memref.alloca(%n, %m) : memref<?x?xf32>
  memref.store %one, %e[%i, %k] : memref<?x?xf32>
  %x = memref.load %e[%i, %k] : memref<?x?xf32>
  memref.store %x, %b[%c0] : memref<1xf32>
  return
}""", case_new, lambda a: [np.ones(1)]),
    Template("composed", """
func.func @NAME(%a: memref<?xf32>, %i: index) {
  %one = arith.constant 1.0 : f32
  %x = affine.linearize_index disjoint [%i, %i] by (8, 8) : index
  %y:2 = affine.delinearize_index %x into (8, 8) : index, index
  affine.store %one, %a[%y#1] : memref<?xf32>
  return
}""", lambda random: case_store_of(random, lambda i: i % 8), lambda a: store_one([a[0], a[1] % 8])),
]


def divisions(x: int, y: int) -> List[int]:
    """Quotients and remainders as StableHLO defines them, signed and unsigned."""
    wrap = lambda value: (value + 2**63) % 2**64 - 2**63
    quotient = -1 if y == 0 else wrap(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))
    remainder = x if y == 0 else wrap(x - quotient * y)
    a, b = x % 2**64, y % 2**64
    return [quotient, remainder, wrap(2**64 - 1 if b == 0 else a // b), wrap(a if b == 0 else a % b)]


def call(library: ctypes.CDLL, name: str, case: Case):
    """Calls NAME_checked; its status and the text of NAME_diagnose."""
    arguments = [ctypes.byref(argument.descriptor) if isinstance(argument, Buffer) else ctypes.c_int64(argument)
                 for argument in case.arguments]
    # The size is that for valid sizes; so a workspace that is too small is none of these programs' errors.
    workspace = ctypes.create_string_buffer(1 << 16)
    more = [workspace, ctypes.c_size_t(1 << 16), None]
    status = getattr(library, f"{name}_checked")(*arguments, *more)
    text = ctypes.create_string_buffer(512)
    getattr(library, f"{name}_diagnose")(*arguments, *more, text, ctypes.c_size_t(len(text)))
    return status, text.value.decode()


def check(library: ctypes.CDLL, template: Template, case: Case) -> str:
    """The fault of a call; empty: none."""
    before = [argument.array.copy() if isinstance(argument, Buffer) else None for argument in case.arguments]
    status, text = call(library, template.name, case)
    buffers = [argument for argument in case.arguments if isinstance(argument, Buffer)]
    if not all(buffer.is_guarded() for buffer in buffers):
        return "a write out of bounds"
    if case.is_valid != (status == 0):
        return f"expected {'status 0' if case.is_valid else 'an error'}, got {status}: {text}"
    if not case.is_valid:
        if status != BAD_SHAPE or not text:
            return f"expected status {BAD_SHAPE} and a text, got {status}: {text!r}"
        if any(not np.array_equal(old, argument.array) for old, argument in zip(before, case.arguments)
               if old is not None):
            return "a write before an error"
        return ""
    for expected, buffer in zip(template.expect(case.arguments), buffers):
        if expected is not None and not np.array_equal(expected, buffer.array):
            return f"expected {expected}, got {buffer.array}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000, help="calls of each template")
    parser.add_argument("--seconds", type=float, help="in total, instead of a count")
    options = parser.parse_args()
    faults = calls = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder, "bounds.mlir"), pathlib.Path(folder, "bounds.so")
        source.write_text("\n".join(template.text.replace("NAME", template.name) for template in TEMPLATES))
        subprocess.run([options.bin / "bngrad-compile", source, "-o", output, "--threads=2"], check=True)
        library = ctypes.CDLL(str(output))
        for number, template in enumerate(TEMPLATES):
            random = np.random.default_rng([options.seed, number])
            end = time.monotonic() + (options.seconds or 0) / len(TEMPLATES)
            for place in itertools.count():
                if time.monotonic() > end if options.seconds else place == options.count:
                    break
                case = template.make(random)
                fault = check(library, template, case)
                calls += 1
                refused += not case.is_valid
                if fault:
                    faults += 1
                    values = [argument.array.shape if isinstance(argument, Buffer) else argument
                              for argument in case.arguments]
                    print(f"FAULT {template.name} --seed={options.seed}, call {place}, {values}: {fault}", flush=True)
                    break
    print(f"bounds: {len(TEMPLATES)} templates, {calls} calls, {refused} of them out of bounds, {faults} faults")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
