//===- ParseSchedule.cpp - schedules from text ----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/ParseSchedule.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Dialect/Nesting.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::bngrad;

FailureOr<ScheduleAttr> mlir::bngrad::parseSchedule(StringRef text,
                                                    MLIRContext *context,
                                                    std::string &reason) {
  if (failed(verifyNesting(text, reason)))
    return failure();
  // The parser's diagnostics point into the option; the caller names it.
  std::string found;
  ScopedDiagnosticHandler collect(context, [&](Diagnostic &diagnostic) {
    if (found.empty())
      found = diagnostic.str();
    return success();
  });
  Attribute attr = parseAttribute(text, context);
  if (auto schedule = dyn_cast_or_null<ScheduleAttr>(attr))
    return schedule;
  reason = "expected an attribute such as #bngrad.schedule<loops>, got '" +
           text.str() + "'" + (found.empty() ? "" : ": " + found);
  return failure();
}
