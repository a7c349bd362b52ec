//===- ParseSchedule.h - schedules from text ------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_SCHEDULE_PARSESCHEDULE_H
#define BNGRAD_TRANSFORMS_SCHEDULE_PARSESCHEDULE_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace mlir::bngrad {
class ScheduleAttr;

/// Parses the option `schedule` of `--bngrad-group`, such as
/// `#bngrad.schedule<loops>`.
///
/// Errors: failure and a `reason`, which the caller reports with the option.
FailureOr<ScheduleAttr> parseSchedule(StringRef text, MLIRContext *context,
                                      std::string &reason);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_SCHEDULE_PARSESCHEDULE_H
