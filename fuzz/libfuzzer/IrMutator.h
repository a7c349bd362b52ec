//===- IrMutator.h - changes textual IR -------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random bytes rarely form IR that parses. So the mutator works on the parts of
// textual IR: statements with their regions, types, sizes, maps, attributes,
// numbers. Half of the mutations keep IR valid (a size changes in all types, an
// op is inserted between a value and its use), so that passes see them. The
// others test the parser and the verifiers.
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_FUZZ_IRMUTATOR_H
#define BNGRAD_FUZZ_IRMUTATOR_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bngrad::fuzz {

using Random = std::minstd_rand;

/// A number from 0 to `end` - 1.
inline size_t below(Random &random, size_t end) {
  return end ? random() % end : 0;
}

template <typename T> const T &pick(Random &random, const std::vector<T> &all) {
  return all[below(random, all.size())];
}

/// Changes an input, `// passes: <pipeline>` and IR, once or a few times.
class IrMutator {
public:
  explicit IrMutator(uint32_t seed) : random(seed ? seed : 1) {}

  std::string mutate(const std::string &input);
  /// The first input with a part of the second.
  std::string splice(const std::string &first, const std::string &second);
  /// Changes only the pass or the pipeline.
  std::string mutatePipeline();
  /// Text of a schedule, sometimes invalid.
  std::string makeSchedule(bool gpu);

private:
  struct Range {
    size_t begin = 0, end = 0;
  };
  struct Value {
    std::string name, type;
    size_t use = 0; // position of its name
  };

  bool mutateOnce(std::string &ir);

  // The parts of the text.
  std::vector<Range> findStatements(const std::string &ir);
  std::vector<Range> findShapedTypes(const std::string &ir);
  std::vector<Range> findNumbers(const std::string &ir);
  std::vector<Value> findUses(const std::string &ir);

  // Each returns false if it finds nothing to change.
  bool changeSize(std::string &ir);
  bool changeElementType(std::string &ir);
  bool changeType(std::string &ir);
  bool changeStatements(std::string &ir);
  bool changeOperand(std::string &ir);
  bool changeNumber(std::string &ir);
  bool changeMap(std::string &ir);
  bool changeAttribute(std::string &ir);
  bool changeOp(std::string &ir);
  bool insertNeighbour(std::string &ir);

  std::string number();
  std::string size();
  std::string fresh();

  Random random;
  unsigned numFresh = 0;
};

/// The parts of `tensor<4x?xf32>`.
struct ShapedType {
  std::string kind; // tensor, memref, vector
  std::vector<std::string> sizes;
  std::string rest; // element type and the rest

  static bool parse(const std::string &text, ShapedType &type);
  std::string print() const;
  bool isStatic() const;
};

} // namespace bngrad::fuzz

#endif // BNGRAD_FUZZ_IRMUTATOR_H
