//===- Measure.h - times of gradients and of memory -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_MEASURE_H
#define BNGRAD_PYTHON_SRC_MEASURE_H

#include <nanobind/nanobind.h>

namespace bngrad::python {

/// Adds the classes of bngrad.explain and bngrad.bench to the module.
void addMeasurements(nanobind::module_ &module);

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_MEASURE_H
