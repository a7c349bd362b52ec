//===- Transforms.h - patterns for other pipelines ------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_TRANSFORMS_H
#define BNGRAD_TRANSFORMS_TRANSFORMS_H

#include "BNGrad/Transforms/Lower/Patterns.h"
#include "BNGrad/Transforms/Schedule/ParseSchedule.h"
#include "BNGrad/Transforms/ToLinalg/Patterns.h"

#endif // BNGRAD_TRANSFORMS_TRANSFORMS_H
