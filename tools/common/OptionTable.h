//===- OptionTable.h - the options of a tool --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table generated from the including tool's Options.td. Only its main file
// includes this.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TOOLS_COMMON_OPTIONTABLE_H
#define BNGRAD_TOOLS_COMMON_OPTIONTABLE_H

#include "common/Diagnostics.h"

#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Support/StringSaver.h"

namespace mlir::bngrad {

using llvm::opt::DefaultVis; // the table's name for it

enum OptionId {
  OPT_INVALID = 0,
#define OPTION(...) LLVM_MAKE_OPT_ID(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

#define OPTTABLE_STR_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_STR_TABLE_CODE

#define OPTTABLE_PREFIXES_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_PREFIXES_TABLE_CODE

static constexpr llvm::opt::OptTable::Info kOptions[] = {
#define OPTION(...) LLVM_CONSTRUCT_OPT_INFO(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

class OptionTable : public llvm::opt::GenericOptTable {
public:
  OptionTable()
      : GenericOptTable(OptionStrTable, OptionPrefixesTable, kOptions) {}

  /// Parses the command line; the result must not outlive the table.
  ///
  /// Errors: one line on standard error each, and `hasError` is set.
  llvm::opt::InputArgList parse(int argc, char **argv, bool &hasError) {
    return parseArgs(argc, argv, OPT_UNKNOWN, saver, [&](StringRef message) {
      (void)reportError(message);
      hasError = true;
      isCutOff |= message.ends_with("missing argument");
    });
  }

  /// Whether the last option lacks its value: other missing options may be due
  /// to the same error.
  bool isIncomplete() const { return isCutOff; }

private:
  bool isCutOff = false;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver{allocator};
};

/// The texts of a tool's --help.
struct ToolHelp {
  StringRef name, usage, overview;
  std::string details;
};

/// Starts a tool: parses its command line with `parse`, or prints --help or
/// --version.
///
/// Errors: one line on standard error each. Failure, and the `status` that the
///         tool ends with, after errors, --help or --version.
template <typename Options>
FailureOr<Options>
parseCommandLine(int argc, char **argv, const ToolHelp &help,
                 FailureOr<Options> (*parse)(const llvm::opt::InputArgList &),
                 int &status) {
  setToolName(help.name);
  reportOutOfMemory();
  OptionTable table;
  bool hasError = false;
  llvm::opt::InputArgList args = table.parse(argc, argv, hasError);
  if (args.hasArg(OPT_help) && !hasError) {
    table.printHelp(llvm::outs(), (help.name + " " + help.usage).str().c_str(),
                    help.overview.str().c_str());
    llvm::outs() << "\n" << help.details;
    status = 0;
    return failure();
  }
  if (args.hasArg(OPT_version) && !hasError) {
    printVersion(llvm::outs());
    status = 0;
    return failure();
  }
  status = 1;
  if (table.isIncomplete())
    return failure();
  FailureOr<Options> options = parse(args);
  if (hasError)
    return failure();
  return options;
}

} // namespace mlir::bngrad

#endif // BNGRAD_TOOLS_COMMON_OPTIONTABLE_H
