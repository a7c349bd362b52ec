//===- Schedules.h - prints the declarations of schedules -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_BNGRAD_OPT_SCHEDULES_H
#define BNGRAD_TOOLS_BNGRAD_OPT_SCHEDULES_H

#include "llvm/Support/raw_ostream.h"

namespace mlir::bngrad {

enum class SchedulesFormat {
  None,
  Json,    // for scripts
  Markdown // the tables of docs/schedules.md
};

/// Prints all kinds of `#bngrad.schedule` and their parameters.
void printSchedules(llvm::raw_ostream &os, SchedulesFormat format);

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_BNGRAD_OPT_SCHEDULES_H
