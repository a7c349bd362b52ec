//===- ShardingParser.h - parses texts of shardings ----------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGPARSER_H
#define BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGPARSER_H

#include "Shardings.h"

namespace mlir::bngrad {

/// What the parsers of Shardy's attributes and of XLA's shardings have in
/// common.
class ShardingParser {
protected:
  /// Errors call the sharding `shown`.
  ShardingParser(std::string shown, StringRef text, EmitError emitError)
      : rest(text), emitError(emitError), shown(std::move(shown)) {}

  /// Skips `token` if it follows.
  bool consume(StringRef token) {
    skipSpace();
    return rest.consume_front(token);
  }
  bool startsWith(StringRef token) {
    skipSpace();
    return rest.starts_with(token);
  }
  LogicalResult expect(StringRef token) {
    return consume(token) ? success() : fail("'" + token + "'");
  }
  LogicalResult expectEnd() {
    skipSpace();
    return rest.empty() ? success() : fail("the end");
  }
  LogicalResult fail(const Twine &expected);
  LogicalResult failOver(const Twine &devices) {
    return emitError() << "expected a module for one device, got sharding "
                       << shown << " over " << devices;
  }
  LogicalResult verifyDevices(int64_t count) {
    return count == 1 ? success() : failOver(Twine(count) + " devices");
  }

  /// A name without quotes; empty if none follows.
  StringRef parseWord();
  /// The content of a string, in which '\' begins an escape of MLIR.
  FailureOr<std::string> parseString(char quote);
  FailureOr<int64_t> parseInteger(int64_t least);
  /// Elements with commas between them, up to `close`.
  LogicalResult parseList(StringRef close,
                          function_ref<LogicalResult()> parseElement);
  FailureOr<SmallVector<int64_t>> parseIntegers(StringRef close, int64_t least);

  /// `=2` after the name of an axis, which is added to `mesh`.
  LogicalResult parseAxisSize(StringRef name, Mesh &mesh);
  /// What follows the name of an axis: nothing, or `:(2)4` for a part of it.
  /// Fails if the axis or its part has several devices and `splits` a value.
  LogicalResult parseAxisPart(StringRef name, const Mesh *mesh, bool splits);

  /// Multiplies numbers of devices. The largest integer stands for larger ones.
  static int64_t multiply(ArrayRef<int64_t> counts);
  /// Escapes what cannot be printed, such as serialized shardings of XLA.
  static std::string escape(StringRef text);

  StringRef rest;
  EmitError emitError;

private:
  /// Skips spaces and comments such as `/*index=5*/`.
  void skipSpace() {
    rest = rest.ltrim();
    while (rest.starts_with("/*"))
      rest = rest.split("*/").second.ltrim();
  }

  std::string shown;
};

} // namespace mlir::bngrad

#endif // BNGRAD_LIB_TRANSFORMS_TOLINALG_SHARDINGPARSER_H
