//===- PtxMutator.cpp - changes PTX ---------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PtxMutator.h"

#include "IrMutator.h"

#include <cctype>
#include <sstream>

namespace bngrad::fuzz {

using Strings = std::vector<std::string>;

static Strings splitLines(const std::string &text) {
  Strings lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

static std::string joinLines(const Strings &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

static const Strings kModifiers = {".s8",
                                   ".u8",
                                   ".b8",
                                   ".s16",
                                   ".u16",
                                   ".b16",
                                   ".s32",
                                   ".u32",
                                   ".b32",
                                   ".s64",
                                   ".u64",
                                   ".b64",
                                   ".f16",
                                   ".bf16",
                                   ".f32",
                                   ".f64",
                                   ".f16x2",
                                   ".b128",
                                   ".pred",
                                   ".rn",
                                   ".rz",
                                   ".rni",
                                   ".ftz",
                                   ".sat",
                                   ".lo",
                                   ".hi",
                                   ".wide",
                                   ".v2",
                                   ".v4",
                                   ".v8",
                                   ".shared",
                                   ".global",
                                   ".param",
                                   ".local",
                                   ".const",
                                   ".cta",
                                   ".cluster",
                                   ".gpu",
                                   ".sys",
                                   ".relaxed",
                                   ".acquire",
                                   ".release",
                                   ".acq_rel",
                                   ".volatile",
                                   ".sync",
                                   ".aligned",
                                   ".up",
                                   ".down",
                                   ".bfly",
                                   ".idx",
                                   ".add",
                                   ".exch",
                                   ".cas",
                                   ".min",
                                   ".max",
                                   ".approx",
                                   ".full",
                                   ".uni",
                                   ".x",
                                   ".cc",
                                   ".shared::cluster",
                                   ".bulk",
                                   ".mbarrier::complete_tx::bytes",
                                   ".unified",
                                   ".nc",
                                   ".L1::no_allocate"};

static const Strings kNumbers = {"0",
                                 "1",
                                 "2",
                                 "-1",
                                 "3",
                                 "4",
                                 "7",
                                 "8",
                                 "16",
                                 "31",
                                 "32",
                                 "33",
                                 "64",
                                 "255",
                                 "1024",
                                 "65536",
                                 "0x7fffffff",
                                 "0x80000000",
                                 "0xffffffff",
                                 "4294967296",
                                 "0x7fffffffffffffff",
                                 "0xffffffffffffffff",
                                 "18446744073709551616",
                                 "0f7FC00000",
                                 "0f00000001",
                                 "0dFFF0000000000000"};

struct Word {
  size_t begin, end;
};

/// Names and numbers of a line, with the dots and percent signs in them.
static std::vector<Word> findWords(const std::string &line) {
  std::vector<Word> words;
  for (size_t i = 0; i < line.size();) {
    auto isWord = [&](size_t at) {
      char c = line[at];
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
             c == '.' || c == '%' || c == '$' || c == '@' || c == ':';
    };
    size_t end = i;
    while (end < line.size() && isWord(end))
      ++end;
    if (end > i)
      words.push_back({i, end});
    i = end + 1;
  }
  return words;
}

static bool isNumber(const std::string &word) {
  return std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-';
}

/// Replaces, removes or adds a modifier of an instruction.
static void changeModifier(std::string &word, Random &random) {
  size_t dot = word.find('.', 1);
  if (dot == std::string::npos) {
    word += pick(random, kModifiers);
    return;
  }
  for (size_t skip = below(random, 4); skip > 0; --skip) {
    size_t next = word.find('.', dot + 1);
    if (next != std::string::npos)
      dot = next;
  }
  size_t end = std::min(word.find('.', dot + 1), word.size());
  switch (below(random, 4)) {
  case 0:
    word.erase(dot, end - dot);
    break;
  case 1:
    word.insert(dot, pick(random, kModifiers));
    break;
  default:
    word.replace(dot, end - dot, pick(random, kModifiers));
  }
}

static void changeWord(Strings &lines, size_t at, Random &random) {
  std::string &line = lines[at];
  std::vector<Word> words = findWords(line);
  if (words.empty())
    return;
  Word where = pick(random, words);
  std::string word = line.substr(where.begin, where.end - where.begin);
  if (isNumber(word)) {
    word = pick(random, kNumbers);
  } else if (word.find('.') != std::string::npos && below(random, 3)) {
    changeModifier(word, random);
  } else {
    // Another one of the same kind from anywhere.
    for (unsigned tries = 0; tries < 20; ++tries) {
      const std::string &other = pick(random, lines);
      std::vector<Word> others = findWords(other);
      if (others.empty())
        continue;
      Word from = pick(random, others);
      std::string taken = other.substr(from.begin, from.end - from.begin);
      if (taken[0] == word[0] || tries > 15) {
        word = taken;
        break;
      }
    }
  }
  line.replace(where.begin, where.end - where.begin, word);
}

static void changeLaunch(std::string &line, Random &random) {
  static const Strings kDims = {"1",  "2",   "3",     "4",     "32",
                                "33", "64",  "128",   "1024",  "1025",
                                "0",  "2,2", "8,4,2", "1,1,65"};
  static const Strings kArguments = {" --arg=u32:5",
                                     " --arg=u64:0",
                                     " --arg=f32:0x3fc00000",
                                     " --arg=buffer:f32:64:iota",
                                     " --arg=buffer:u32:1:zero",
                                     " --arg=buffer:b64:16:uninit",
                                     " --arg=u64:0xffffffffffffffff"};
  switch (below(random, 4)) {
  case 0:
    line += pick(random, kArguments);
    return;
  case 1: {
    size_t at = line.rfind(" --arg=");
    if (at != std::string::npos)
      line.erase(at);
    return;
  }
  default: {
    static const Strings kOptions = {
        " --grid=", " --block=", " --cluster=", " --dynamic-shared="};
    const std::string &option = pick(random, kOptions);
    size_t at = line.find(option);
    std::string text = option + (option == kOptions[3] ? pick(random, kNumbers)
                                                       : pick(random, kDims));
    if (at == std::string::npos)
      line += text;
    else
      line.replace(at, std::min(line.find(' ', at + 1), line.size()) - at,
                   text);
  }
  }
}

static void changeOnce(Strings &lines, Random &random) {
  // The first line is the launch.
  size_t at = 1 + below(random, lines.size() - 1);
  size_t to = 1 + below(random, lines.size() - 1);
  switch (below(random, 12)) {
  case 0:
    lines.erase(lines.begin() + at);
    break;
  case 1:
    lines.insert(lines.begin() + at, std::string(lines[at]));
    break;
  case 2:
    std::swap(lines[at], lines[to]);
    break;
  case 3:
    lines.insert(lines.begin() + to, std::string(lines[at]));
    break;
  case 4:
    changeLaunch(lines[0], random);
    break;
  default:
    changeWord(lines, at, random);
  }
}

std::string mutatePtx(const std::string &input, uint32_t seed) {
  Random random(seed ? seed : 1);
  Strings lines = splitLines(input);
  for (size_t i = 1 + below(random, 3); i > 0 && lines.size() > 1; --i)
    changeOnce(lines, random);
  return joinLines(lines);
}

std::string splicePtx(const std::string &first, const std::string &second,
                      uint32_t seed) {
  Random random(seed ? seed : 1);
  Strings lines = splitLines(first), others = splitLines(second);
  if (lines.size() < 2 || others.size() < 2)
    return first;
  size_t from = 1 + below(random, others.size() - 1);
  size_t count = std::min<size_t>(1 + below(random, 8), others.size() - from);
  lines.insert(lines.begin() + 1 + below(random, lines.size() - 1),
               others.begin() + from, others.begin() + from + count);
  return joinLines(lines);
}

} // namespace bngrad::fuzz
