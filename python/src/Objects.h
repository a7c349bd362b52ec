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

/// Keeps the memory of an object's array alive during a call, whatever other
/// threads do to the object, except resizing it.
struct Keeper {
  /// A tensor of a library other than numpy.
  ExportedTensor tensor;
  /// A PyTorch storage, with its address when it was read.
  nb::object storage;
  uintptr_t storageStart = 0;
};

/// Whether `object` is a numpy array.
bool isNumpy(nb::handle object);

/// Reads the numpy array in `object`; false if it is not one. Throws if no
/// operand may be like this.
bool readNumpy(nb::handle object, const char *name, Array &array,
               const Dtype *expected);

/// Makes a numpy array with the type, shape and strides of `array`, and sets
/// the data of `array`.
nb::object makeNumpy(Array &array);

/// Reads the array in `object`, from numpy or by DLPack. Throws if no operand
/// may be like this. Integers are errors unless the `expected` type is given;
/// errors then mention that type, but this does not check for it.
void read(nb::handle object, const char *name, bool isOutput, Array &array,
          Keeper &keeper, const Dtype *expected = nullptr);

/// Checks that the memory of an array has not changed. Python code that ran
/// since it was read, such as the `__dlpack__` of another argument, may have
/// resized it; this function runs no Python code.
void verifyUnchanged(nb::handle object, const char *name, const Array &array,
                     const Keeper &keeper);

/// The same for a numpy array.
void verifyNumpyUnchanged(nb::handle object, const char *name,
                          const Array &array);

/// Tells the library of an output that it was written: PyTorch then refuses to
/// compute gradients from its former values.
void markWritten(nb::handle object);

/// Memory for a dense array, and the object that it becomes.
class Result {
public:
  /// Allocates an array of the library of `like`; sets the data of `array`.
  Result(Array &array, nb::handle like);
  /// Returns the object once the data are final.
  nb::object take();

private:
  nb::object object; // a numpy array, or the owner of the memory
  nb::handle like;
  const Array *array;
};

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_OBJECTS_H
