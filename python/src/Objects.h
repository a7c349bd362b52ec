//===- Objects.h - Python objects that are arrays ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_OBJECTS_H
#define BNGRAD_PYTHON_SRC_OBJECTS_H

#include "Array.h"

#include "Exchange.h"

#include <nanobind/ndarray.h>

namespace bngrad::python {

/// Keeps the memory of an object's array during a call, whatever other threads
/// do to the object, unless they resize it.
struct Keeper {
  /// Of another library than numpy.
  ExportedTensor tensor;
  /// Of PyTorch, with its address when it was read.
  nb::object storage;
  uintptr_t storageStart = 0;
};

/// Whether `object` is an array of numpy.
bool isNumpy(nb::handle object);

/// The array of numpy in `object`; false if it has none. Throws if no operand
/// may have it.
bool readNumpy(nb::handle object, const char *name, Array &array,
               const Dtype *expected);

/// An array of numpy, whose type, shape and strides are those of `array`; sets
/// the data of that.
nb::object makeNumpy(Array &array);

/// The array in `object`, of numpy or with DLPack. Throws if no operand may
/// have it. Integers are errors unless the `expected` type is given, which is
/// then in texts; whether it is that type is not checked.
void read(nb::handle object, const char *name, bool isOutput, Array &array,
          Keeper &keeper, const Dtype *expected = nullptr);

/// Checks that the memory of an array is what was read. Code of Python that ran
/// since, such as the `__dlpack__` of another argument, may have resized it;
/// this runs none.
void verifyUnchanged(nb::handle object, const char *name, const Array &array,
                     const Keeper &keeper);

/// The same for an array of numpy.
void verifyNumpyUnchanged(nb::handle object, const char *name,
                          const Array &array);

/// Tells the library of an output that it was written: PyTorch then refuses to
/// compute gradients from its former values.
void markWritten(nb::handle object);

/// Memory for an array without gaps, and the object that it becomes.
class Result {
public:
  /// For an array of the library of `like`; sets the data of `array`.
  Result(Array &array, nb::handle like);
  /// The object, when the data are final.
  nb::object take();

private:
  nb::object object; // of numpy, or the owner of the memory
  nb::handle like;
  const Array *array;
};

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_OBJECTS_H
