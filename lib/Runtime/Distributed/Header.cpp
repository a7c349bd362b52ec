//===- Header.cpp - the header that processes compare ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Header.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

using namespace bngrad;
using namespace bngrad::distributed;

/// FNV-1a, which gives the same result in all processes.
static uint64_t hashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Header distributed::makeHeader(const bngradCollective_t &collective,
                               int64_t count) {
  Header header = {};
  header.progress = Progress::Comparing;
  header.dtype = collective.dtype;
  header.count = count;
  header.gridRank = collective.grid_rank;
  header.numAxes = collective.num_axes;
  std::copy_n(collective.grid_shape, collective.grid_rank, header.gridShape);
  std::copy_n(collective.axes, collective.num_axes, header.axes);
  // A bare grid has no op.
  std::string_view op = collective.op ? collective.op : "";
  header.opSize = static_cast<int64_t>(op.size());
  header.opHash = hashText(op);
  op.copy(header.op, sizeof(header.op) - 1);
  return header;
}

std::string distributed::printGrid(const Header &header) {
  std::string text;
  for (int64_t i = 0; i < header.gridRank; ++i)
    text += (i ? "x" : "") + std::to_string(header.gridShape[i]);
  return text;
}

std::string distributed::printRanks(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    text += (i ? ", " : "") + std::to_string(ranks[i]);
    if (end - i > 1)
      text += (end - i > 2 ? "-" : ", ") + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

int64_t distributed::getGridSize(const Header &header) {
  int64_t size = 1;
  for (int64_t i = 0; i < header.gridRank; ++i)
    size *= header.gridShape[i];
  return size;
}

std::vector<int64_t> distributed::getAxisGroup(const Header &header,
                                               int64_t rank) {
  // Start at the last axis, whose stride is 1: each axis of the group
  // multiplies the members.
  std::vector<int64_t> ranks = {rank};
  int64_t stride = 1;
  for (int64_t axis = header.gridRank; axis-- > 0;) {
    int64_t size = header.gridShape[axis];
    if (std::find(header.axes, header.axes + header.numAxes, axis) !=
        header.axes + header.numAxes) {
      int64_t first = rank / stride % size * stride;
      std::vector<int64_t> extended;
      extended.reserve(ranks.size() * size);
      for (int64_t i = 0; i < size; ++i)
        for (int64_t member : ranks)
          extended.push_back(member - first + i * stride);
      ranks = std::move(extended);
    }
    stride *= size;
  }
  return ranks;
}

static const char *printDtype(int64_t dtype) {
  switch (dtype) {
  case BNGRAD_COLLECTIVE_F32:
    return "f32";
  case BNGRAD_COLLECTIVE_F64:
    return "f64";
  default:
    return "i64";
  }
}

static std::string printAxes(const Header &header) {
  std::string text;
  for (int64_t i = 0; i < header.numAxes; ++i)
    text += (i ? ", " : "") + std::to_string(header.axes[i]);
  return "[" + text + "]";
}

/// `value on ranks` for each value; `, and N more` beyond three of them.
template <typename Key>
static std::string
printValues(const std::map<Key, std::vector<int64_t>> &ranksByKey,
            const std::vector<std::string> &values) {
  constexpr size_t kMost = 3;
  // Values are in the order of their first ranks.
  std::vector<std::pair<int64_t, std::string>> texts;
  texts.reserve(ranksByKey.size());
  size_t i = 0;
  for (const auto &[key, ranks] : ranksByKey)
    texts.push_back({ranks.front(), values[i++] + " on " + printRanks(ranks)});
  std::sort(texts.begin(), texts.end());
  std::string text;
  for (i = 0; i < std::min(texts.size(), kMost); ++i) {
    bool isLast = i + 1 == texts.size();
    text += (i == 0 ? "" : isLast ? " and " : ", ") + texts[i].second;
  }
  if (texts.size() > kMost)
    text += ", and " + std::to_string(texts.size() - kMost) + " more";
  return text;
}

/// Where a value, printed by `print`, differs between the headers of `ranks`;
/// empty if nowhere.
template <typename Print>
static std::string findDifferent(const std::vector<Header> &headers,
                                 const std::vector<int64_t> &ranks,
                                 Print print) {
  std::map<std::string, std::vector<int64_t>> ranksByValue;
  for (int64_t rank : ranks)
    ranksByValue[print(headers[rank])].push_back(rank);
  if (ranksByValue.size() < 2)
    return "";
  std::vector<std::string> values;
  values.reserve(ranksByValue.size());
  for (const auto &[value, ranksOfValue] : ranksByValue)
    values.push_back(value);
  return printValues(ranksByValue, values);
}

/// Removes the blank-separated words that all texts begin or end with.
static void keepDifferentWords(std::vector<std::string> &texts) {
  auto split = [](const std::string &text) {
    std::vector<std::string_view> words;
    for (size_t i = 0; i < text.size();) {
      size_t end = std::min(text.find(' ', i), text.size());
      words.push_back(std::string_view(text).substr(i, end - i));
      i = end + 1;
    }
    return words;
  };
  std::vector<std::vector<std::string_view>> lists;
  size_t shortest = SIZE_MAX;
  for (const std::string &text : texts) {
    lists.push_back(split(text));
    shortest = std::min(shortest, lists.back().size());
  }
  auto areSame = [&](auto get) {
    return std::all_of(lists.begin(), lists.end(), [&](const auto &words) {
      return get(words) == get(lists.front());
    });
  };
  size_t first = 0, last = 0;
  while (first < shortest &&
         areSame([&](const auto &words) { return words[first]; }))
    ++first;
  while (first + last < shortest && areSame([&](const auto &words) {
           return words[words.size() - 1 - last];
         }))
    ++last;
  std::vector<std::string> shortened;
  for (const auto &words : lists) {
    std::string text;
    for (size_t i = first; i + last < words.size(); ++i)
      text += (i == first ? "" : " ") + std::string(words[i]);
    // Truncated texts may differ only in the part that was cut off.
    shortened.push_back(!text.empty() ? text
                        : first == shortest && lists.front() == lists.back()
                            ? "another end of a long text"
                            : "nothing");
  }
  texts = std::move(shortened);
}

/// Where the texts of the op differ; empty if nowhere.
static std::string findDifferentOp(const std::vector<Header> &headers,
                                   const std::vector<int64_t> &ranks) {
  std::map<std::pair<uint64_t, std::string>, std::vector<int64_t>> ranksByOp;
  for (int64_t rank : ranks)
    ranksByOp[{headers[rank].opHash, headers[rank].op}].push_back(rank);
  if (ranksByOp.size() < 2)
    return "";
  std::vector<std::string> values;
  values.reserve(ranksByOp.size());
  for (const auto &[op, ranksOfOp] : ranksByOp)
    values.push_back(op.second);
  keepDifferentWords(values);
  return printValues(ranksByOp, values);
}

std::string distributed::findDifference(const std::vector<Header> &headers) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < headers.size(); ++i)
    if (headers[i].progress != Progress::Done)
      ranks.push_back(static_cast<int64_t>(i));
  if (ranks.empty())
    return "";
  auto expectSame = [](const char *what, const std::string &difference) {
    return "expected the same " + std::string(what) +
           " on all processes, got " + difference;
  };
  if (std::string text = findDifferent(headers, ranks, printGrid);
      !text.empty())
    return expectSame("grid", text);
  const Header &first = headers[ranks.front()];
  auto numProcesses = static_cast<int64_t>(headers.size());
  if (getGridSize(first) != numProcesses)
    return "expected " + std::to_string(getGridSize(first)) +
           " processes for the grid " + printGrid(first) + ", got " +
           std::to_string(numProcesses);
  if (std::string text = findDifferentOp(headers, ranks); !text.empty())
    return expectSame("op", text);
  if (std::string text =
          findDifferent(headers, ranks,
                        [](const Header &header) {
                          return std::string(printDtype(header.dtype));
                        });
      !text.empty())
    return expectSame("element type", text);
  if (std::string text = findDifferent(headers, ranks, printAxes);
      !text.empty())
    return expectSame("axes", text);
  // Shards of other groups may have other sizes.
  std::vector<bool> isChecked(headers.size());
  for (int64_t rank : ranks) {
    if (isChecked[rank])
      continue;
    std::vector<int64_t> members;
    for (int64_t member : getAxisGroup(first, rank)) {
      isChecked[member] = true;
      if (headers[member].progress != Progress::Done)
        members.push_back(member);
    }
    std::string text =
        findDifferent(headers, members, [](const Header &header) {
          return std::to_string(header.count);
        });
    if (!text.empty())
      return expectSame("number of elements", text);
  }
  return "";
}
