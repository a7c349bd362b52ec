//===- Sharding.cpp - how arrays are spread over processes ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sharding.h"

#include "common/Diagnostics.h"

#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::bngrad;

std::string mlir::bngrad::printShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape)) {
    text += i ? ", " : "";
    text += ShapedType::isDynamic(size) ? "?" : std::to_string(size);
  }
  return text + "]";
}

/// Parses numbers of at least 0 between separators.
static std::optional<std::vector<int64_t>> parseNumbers(StringRef text,
                                                        char separator) {
  std::vector<int64_t> numbers;
  SmallVector<StringRef> fields;
  text.split(fields, separator);
  for (StringRef field : fields)
    if (field.getAsInteger(10, numbers.emplace_back()) || numbers.back() < 0)
      return std::nullopt;
  return numbers;
}

std::optional<ShardSizes> mlir::bngrad::parseShardSizes(StringRef text) {
  auto [axes, sizes] = text.split(':');
  auto parsedAxes = parseNumbers(axes, ','),
       parsedSizes = parseNumbers(sizes, '+');
  if (!parsedAxes || !parsedSizes)
    return std::nullopt;
  int64_t sum = 0;
  for (int64_t size : *parsedSizes)
    if (llvm::AddOverflow(sum, size, sum))
      return std::nullopt;
  return ShardSizes{*parsedAxes, *parsedSizes};
}

static SplitAxes getSplitAxes(Attribute attribute) {
  SplitAxes splitAxes;
  if (auto axes = dyn_cast_or_null<shard::GridAxesArrayAttr>(attribute))
    for (ArrayRef<shard::GridAxis> ofDim : axes.getAxes())
      splitAxes.emplace_back(ofDim.begin(), ofDim.end());
  return splitAxes;
}

Sharding Sharding::get(func::FuncOp function) {
  Sharding sharding;
  if (auto grid =
          function->getAttrOfType<DenseI64ArrayAttr>(kGridShapeAttrName))
    sharding.grid = grid.asArrayRef().vec();
  for (unsigned i : llvm::seq(function.getNumArguments()))
    sharding.arguments.push_back(
        getSplitAxes(function.getArgAttr(i, kSplitAxesAttrName)));
  for (unsigned i : llvm::seq(function.getNumResults()))
    sharding.results.push_back(
        getSplitAxes(function.getResultAttr(i, kSplitAxesAttrName)));
  return sharding;
}

int64_t Sharding::getNumProcesses() const {
  int64_t count = 1;
  for (int64_t size : grid)
    count *= size;
  return count;
}

std::string Sharding::printGrid() const {
  return llvm::join(
      llvm::map_range(grid, [](int64_t size) { return std::to_string(size); }),
      "x");
}

/// The number of parts of a dim that is split along `axes`.
static int64_t getNumParts(const Sharding &sharding, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= sharding.grid[axis];
  return count;
}

/// The coordinate of process `rank` along `axis`.
static int64_t getCoordinate(const Sharding &sharding, int64_t axis,
                             int64_t rank) {
  for (size_t other = sharding.grid.size(); other-- > size_t(axis) + 1;)
    rank /= sharding.grid[other];
  return rank % sharding.grid[axis];
}

LogicalResult Sharding::verifySizes() const {
  for (const ShardSizes &given : sizes) {
    auto isSplit = [&](const SplitAxes &splitAxes) {
      return llvm::is_contained(splitAxes, given.axes);
    };
    if (llvm::none_of(arguments, isSplit))
      return reportError("expected --shards for grid axes along which a dim of "
                         "an argument is split, got " +
                         printShape(given.axes));
    int64_t expected = getNumParts(*this, given.axes);
    if (static_cast<int64_t>(given.sizes.size()) != expected)
      return reportError(
          "expected " + Twine(expected) + " sizes of --shards for grid axes " +
          printShape(given.axes) + ", got " + Twine(given.sizes.size()));
  }
  return success();
}

FailureOr<::bngrad::ArrayPart> Sharding::getPart(const SplitAxes &splitAxes,
                                                 ArrayRef<int64_t> shape,
                                                 int64_t rank,
                                                 std::string &error) const {
  ::bngrad::ArrayPart part = {std::vector<int64_t>(shape.size(), 0),
                              shape.vec()};
  for (auto [dim, axes] : llvm::enumerate(splitAxes)) {
    if (axes.empty())
      continue;
    int64_t count = getNumParts(*this, axes), index = 0;
    for (int64_t axis : axes)
      index = index * grid[axis] + getCoordinate(*this, axis, rank);
    int64_t least = shape[dim] / count, rest = shape[dim] % count;
    part.begin[dim] = index * least + std::min(index, rest);
    part.shape[dim] = least + (index < rest ? 1 : 0);
    for (const ShardSizes &given : sizes) {
      if (given.axes != axes)
        continue;
      auto first = given.sizes.begin();
      int64_t sum = std::accumulate(first, given.sizes.end(), int64_t(0));
      if (sum != shape[dim]) {
        error = "expected size of dim " + std::to_string(dim) +
                " to be the sum of --shards, " + std::to_string(sum) +
                ", got " + std::to_string(shape[dim]);
        return failure();
      }
      part.begin[dim] = std::accumulate(first, first + index, int64_t(0));
      part.shape[dim] = given.sizes[index];
    }
  }
  return part;
}

bool Sharding::isFirstOfPart(const SplitAxes &splitAxes, int64_t rank) const {
  for (int64_t axis : llvm::seq<int64_t>(grid.size())) {
    bool isUsed = llvm::any_of(splitAxes, [&](ArrayRef<int64_t> axes) {
      return llvm::is_contained(axes, axis);
    });
    if (!isUsed && getCoordinate(*this, axis, rank) != 0)
      return false;
  }
  return true;
}
