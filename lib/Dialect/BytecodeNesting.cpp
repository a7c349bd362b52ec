//===- BytecodeNesting.cpp - how deep bytecode is nested ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir/Bytecode/Encoding.h declares the numbers of the encoding, and MLIR's
// document "MLIR Bytecode Format" describes it.
//
//===----------------------------------------------------------------------===//

#include "BytecodeNesting.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Bytecode/Encoding.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <memory>

using namespace mlir;
using namespace mlir::bngrad;
namespace Section = bytecode::Section;
namespace OpEncodingMask = bytecode::OpEncodingMask;

namespace {
/// The unread rest of a part of the bytecode. Reads past its end return 0.
class Bytes {
public:
  Bytes() = default;
  explicit Bytes(StringRef all) : all(all) {}

  bool isEmpty() const { return at == all.size(); }
  /// Whether reads went past the end.
  bool isExceeded() const { return exceeded; }

  uint8_t readByte() {
    StringRef bytes = readBytes(1);
    return bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
  }

  StringRef readBytes(uint64_t size) {
    if (size > all.size() - at) {
      exceeded = true;
      at = all.size();
      return {};
    }
    StringRef bytes = all.substr(at, size);
    at += size;
    return bytes;
  }

  StringRef readUntilNull() {
    StringRef bytes = all.substr(at).take_until([](char c) { return c == 0; });
    (void)readBytes(bytes.size() + 1);
    return bytes;
  }

  /// Reads a number. The trailing zeros of its first byte are the number of
  /// bytes that follow.
  uint64_t readNumber() {
    uint64_t first = readByte();
    if (first == 0)
      return readLittleEndian(readBytes(8));
    unsigned numBytes = llvm::countr_zero(first);
    uint64_t rest = readLittleEndian(readBytes(numBytes));
    return (first | rest << 8) >> (numBytes + 1);
  }

  void skipNumbers(uint64_t count) {
    for (; count > 0 && !exceeded; --count)
      (void)readNumber();
  }

  /// A number and a flag.
  std::pair<uint64_t, bool> readFlagged() {
    uint64_t number = readNumber();
    return {number >> 1, number & 1};
  }

  /// Reads the kind of a section and its bytes.
  std::pair<uint8_t, StringRef> readSection() {
    uint8_t kind = readByte();
    uint64_t size = readNumber();
    if (kind & 0x80) {
      uint64_t alignment = readNumber();
      if (!llvm::isPowerOf2_64(alignment) || alignment > UINT32_MAX)
        exceeded = true;
      else
        (void)readBytes(llvm::alignTo(at, alignment) - at);
    }
    return {kind & 0x7f, readBytes(size)};
  }

private:
  static uint64_t readLittleEndian(StringRef bytes) {
    std::array<char, 8> padded = {};
    llvm::copy(bytes, padded.begin());
    return llvm::support::endian::read64le(padded.data());
  }

  StringRef all;
  size_t at = 0;
  bool exceeded = false;
};

/// The version of bytecode, and its sections.
struct Sections {
  uint64_t version = 0;
  std::array<StringRef, Section::kNumSections> bytes;
};

/// Finds the depth of regions.
class RegionScanner {
public:
  RegionScanner(Bytes bytes, uint64_t version) : version(version) {
    stack.push_back({bytes});
    stack.back().numBlocks = 1;
  }

  bool isDeeperThan(unsigned mostNesting);

private:
  /// The regions of an operation.
  struct Regions {
    Bytes bytes;
    /// What is left to read; numOps is for the current block.
    uint64_t numRegions = 0, numBlocks = 0, numOps = 0;
    /// Whether they have a separate section.
    bool hasSection = false;
  };

  void readBlock(Regions &regions);
  /// Reads an operation and begins its regions.
  void readOp(Regions &regions);
  void skipUseListOrders(Bytes &bytes, uint64_t numValues);

  uint64_t version;
  SmallVector<Regions> stack;
};
} // namespace

static Sections readSections(StringRef bytecode) {
  Bytes bytes(bytecode);
  Sections sections;
  (void)bytes.readBytes(4);
  sections.version = bytes.readNumber();
  (void)bytes.readUntilNull();
  while (!bytes.isEmpty()) {
    auto [kind, section] = bytes.readSection();
    if (bytes.isExceeded() || kind >= Section::kNumSections)
      break;
    sections.bytes[kind] = section;
  }
  return sections;
}

void RegionScanner::skipUseListOrders(Bytes &bytes, uint64_t numValues) {
  uint64_t count = numValues > 1 ? bytes.readNumber() : 1;
  for (; count > 0 && !bytes.isExceeded(); --count) {
    if (numValues > 1)
      (void)bytes.readNumber();
    bytes.skipNumbers(bytes.readFlagged().first);
  }
}

void RegionScanner::readBlock(Regions &regions) {
  --regions.numBlocks;
  Bytes &bytes = regions.bytes;
  bool hasArguments;
  std::tie(regions.numOps, hasArguments) = bytes.readFlagged();
  if (!hasArguments)
    return;
  uint64_t numArguments = bytes.readNumber();
  for (uint64_t i = 0; i < numArguments && !bytes.isExceeded(); ++i) {
    bool hasLocation = true;
    if (version >= bytecode::kElideUnknownBlockArgLocation)
      hasLocation = bytes.readFlagged().second;
    else
      (void)bytes.readNumber();
    bytes.skipNumbers(hasLocation);
  }
  if (version >= bytecode::kUseListOrdering && bytes.readByte() != 0)
    skipUseListOrders(bytes, numArguments);
}

void RegionScanner::readOp(Regions &regions) {
  --regions.numOps;
  Bytes &bytes = regions.bytes;
  (void)bytes.readNumber(); // The name.
  uint8_t mask = bytes.readByte();
  (void)bytes.readNumber(); // The location.
  bytes.skipNumbers((mask & OpEncodingMask::kHasAttrs) != 0);
  bytes.skipNumbers((mask & OpEncodingMask::kHasProperties) != 0);
  uint64_t numResults =
      mask & OpEncodingMask::kHasResults ? bytes.readNumber() : 0;
  bytes.skipNumbers(numResults);
  if (mask & OpEncodingMask::kHasOperands)
    bytes.skipNumbers(bytes.readNumber());
  if (mask & OpEncodingMask::kHasSuccessors)
    bytes.skipNumbers(bytes.readNumber());
  if (mask & OpEncodingMask::kHasUseListOrders &&
      version >= bytecode::kUseListOrdering)
    skipUseListOrders(bytes, numResults);
  if (!(mask & OpEncodingMask::kHasInlineRegions))
    return;
  auto [numRegions, isIsolated] = bytes.readFlagged();
  if (numRegions == 0)
    return;
  bool hasSection = isIsolated && version >= bytecode::kLazyLoading;
  Bytes inner = hasSection ? Bytes(bytes.readSection().second) : bytes;
  if (!bytes.isExceeded())
    stack.push_back({inner, numRegions, 0, 0, hasSection});
}

bool RegionScanner::isDeeperThan(unsigned mostNesting) {
  readBlock(stack.back());
  while (!stack.empty() && stack.size() <= size_t(mostNesting) + 1) {
    Regions &regions = stack.back();
    if (regions.bytes.isExceeded())
      return false;
    if (regions.numOps > 0) {
      readOp(regions);
    } else if (regions.numBlocks > 0) {
      readBlock(regions);
    } else if (regions.numRegions > 0) {
      --regions.numRegions;
      regions.numBlocks = regions.bytes.readNumber();
      if (regions.numBlocks > 0)
        (void)regions.bytes.readNumber(); // The number of values.
    } else {
      Regions inner = stack.pop_back_val();
      if (!inner.hasSection && !stack.empty())
        stack.back().bytes = inner.bytes;
    }
  }
  return !stack.empty();
}

bool mlir::bngrad::hasDeepRegions(StringRef bytecode, unsigned mostNesting) {
  Sections sections = readSections(bytecode);
  return RegionScanner(Bytes(sections.bytes[Section::kIR]), sections.version)
      .isDeeperThan(mostNesting);
}

bool mlir::bngrad::hasExcessEntries(StringRef bytecode) {
  Bytes sizes(readSections(bytecode).bytes[Section::kAttrTypeOffset]);
  std::array<uint64_t, 2> declared; // Attributes, and types.
  for (uint64_t &number : declared)
    number = sizes.readNumber();
  for (uint64_t left : declared) {
    while (left > 0 && !sizes.isExceeded()) {
      (void)sizes.readNumber(); // The dialect.
      uint64_t count = sizes.readNumber();
      if (count > left)
        return true;
      sizes.skipNumbers(count);
      left -= count;
    }
  }
  return false;
}

void mlir::bngrad::forEachText(StringRef bytecode,
                               function_ref<void(StringRef)> function) {
  Sections sections = readSections(bytecode);
  Bytes sizes(sections.bytes[Section::kAttrTypeOffset]);
  Bytes entries(sections.bytes[Section::kAttrType]);
  sizes.skipNumbers(2); // The numbers of attributes and of types.
  while (!sizes.isEmpty()) {
    (void)sizes.readNumber(); // The dialect.
    for (uint64_t count = sizes.readNumber(); count > 0; --count) {
      auto [size, isEncoded] = sizes.readFlagged();
      StringRef entry = entries.readBytes(size);
      if (sizes.isExceeded() || entries.isExceeded())
        return;
      if (!isEncoded)
        function(Bytes(entry).readUntilNull());
    }
  }
}

namespace {
/// Reads entries as MLIR's reader does, and limits how deep they are nested.
/// That reader retries an entry until all entries that it refers to have been
/// read, so an entry that refers to itself would keep it busy forever.
class LimitedReader {
public:
  LimitedReader(unsigned mostNesting, bool *isTooDeep)
      : mostNesting(mostNesting), isTooDeep(isTooDeep) {}

  template <typename T>
  LogicalResult read(DialectBytecodeReader &reader, StringRef dialectName,
                     T &entry) {
    auto *dialect = dyn_cast_or_null<BytecodeDialectInterface>(
        reader.getContext()->getLoadedDialect(dialectName));
    if (!dialect) // MLIR's reader reports this.
      return success();
    if (numOpen == mostNesting || numFailures >= getMostFailures())
      return fail(reader);
    ++numOpen;
    if constexpr (std::is_same_v<T, Type>)
      entry = dialect->readType(reader);
    else
      entry = dialect->readAttribute(reader);
    --numOpen;
    if (!entry) {
      ++numFailures;
      return failure();
    }
    numFailures = 0;
    if (addDepth(entry) <= mostNesting)
      return success();
    entry = T();
    return fail(reader);
  }

private:
  /// Many times the successive failures for entries that are as deep as
  /// allowed: for each of them, the reader tries some of the others.
  unsigned getMostFailures() const { return mostNesting * mostNesting; }

  LogicalResult fail(DialectBytecodeReader &reader) {
    if (isTooDeep)
      *isTooDeep = true;
    return reader.emitError("expected attributes and types to be nested at "
                            "most ")
           << mostNesting << " deep, got more";
  }

  /// The depth of an entry, from the depths of the entries that it refers to.
  template <typename T> unsigned addDepth(T entry) {
    unsigned depth = 0;
    auto addPart = [&](auto part) {
      depth = std::max(depth, depths.lookup(part.getAsOpaquePointer()));
    };
    entry.walkImmediateSubElements([&](Attribute part) { addPart(part); },
                                   [&](Type part) { addPart(part); });
    return depths[entry.getAsOpaquePointer()] = depth + 1;
  }

  unsigned mostNesting;
  bool *isTooDeep;
  /// Entries being read, and failures since the last entry that was read.
  unsigned numOpen = 0, numFailures = 0;
  DenseMap<const void *, unsigned> depths;
};
} // namespace

void mlir::bngrad::limitNesting(ParserConfig &config, unsigned mostNesting,
                                bool *isTooDeep) {
  auto limited = std::make_shared<LimitedReader>(mostNesting, isTooDeep);
  BytecodeReaderConfig &callbacks = config.getBytecodeReaderConfig();
  callbacks.attachAttributeCallback([limited](DialectBytecodeReader &reader,
                                              StringRef dialect,
                                              Attribute &entry) {
    return limited->read(reader, dialect, entry);
  });
  callbacks.attachTypeCallback(
      [limited](DialectBytecodeReader &reader, StringRef dialect, Type &entry) {
        return limited->read(reader, dialect, entry);
      });
}
