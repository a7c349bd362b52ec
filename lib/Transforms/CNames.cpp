//===- CNames.cpp - what C and its library call things --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/ExportC.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

/// Words of C11 and C++17, and macros of gcc.
static const llvm::StringSet<> &getKeywords() {
  static const llvm::StringSet<> keywords = {
      // clang-format off
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
      "bool", "break", "case", "catch", "char", "char16_t", "char32_t", "class",
      "compl", "const", "const_cast", "constexpr", "continue", "decltype",
      "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
      "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
      "if", "inline", "int", "linux", "long", "mutable", "namespace", "new",
      "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
      "private", "protected", "public", "register", "reinterpret_cast",
      "restrict", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this",
      "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
      "typeof", "union", "unix", "unsigned", "using", "virtual", "void",
      "volatile", "wchar_t", "while", "xor", "xor_eq"
      // clang-format on
  };
  return keywords;
}

/// Functions of mathematics that LLVM does not list; each is one for float and
/// one for long double, too.
static const llvm::StringSet<> &getMathNames() {
  static const llvm::StringSet<> names = {
      // clang-format off
      "drem", "erfc", "finite", "fma", "gamma", "j0", "j1", "jn", "lgamma",
      "llrint", "llround", "lrint", "lround", "scalb", "significand", "y0",
      "y1", "yn"
      // clang-format on
  };
  return names;
}

/// Other functions and variables of C11 and POSIX that LLVM does not list.
static const llvm::StringSet<> &getOtherNames() {
  static const llvm::StringSet<> names = {
      // clang-format off
      "accept", "alarm", "asctime", "at_quick_exit", "bind", "brk", "bsearch",
      "clock", "clone", "close", "connect", "ctime", "daemon", "difftime",
      "div", "dup", "environ", "errno", "feclearexcept", "fegetenv",
      "fegetexceptflag", "fegetround", "feholdexcept", "feraiseexcept",
      "fesetenv", "fesetexceptflag", "fesetround", "fetestexcept",
      "feupdateenv", "freopen", "getpid", "gmtime", "imaxabs", "imaxdiv",
      "index", "isalnum", "isalpha", "isblank", "iscntrl", "isgraph", "islower",
      "isprint", "ispunct", "isspace", "isupper", "isxdigit", "kill", "ldiv",
      "link", "listen", "lldiv", "localeconv", "localtime", "longjmp", "main",
      "mblen", "mbstowcs", "mbtowc", "mmap", "munmap", "nice", "open", "pause",
      "pipe", "poll", "quick_exit", "raise", "rand", "random", "recv", "rindex",
      "sbrk", "select", "send", "setjmp", "setlocale", "signal", "signgam",
      "sleep", "socket", "srand", "srandom", "stderr", "stdin", "stdout",
      "strerror", "strftime", "strtoimax", "strtoumax", "swab", "sync", "time",
      "timespec_get", "tmpnam", "tolower", "toupper", "truncate", "usleep",
      "wait", "wcstoimax", "wcstombs", "wcstoumax", "wctomb"
      // clang-format on
  };
  return names;
}

bool mlir::bngrad::isCLibraryName(StringRef name) {
  static const llvm::TargetLibraryInfoImpl library(
      llvm::Triple("x86_64-unknown-linux-gnu"));
  llvm::LibFunc function;
  if (library.getLibFunc(name, function) || getOtherNames().contains(name) ||
      getMathNames().contains(name))
    return true;
  return (name.consume_back("f") || name.consume_back("l")) &&
         getMathNames().contains(name);
}

StringRef mlir::bngrad::findExportNameError(StringRef name) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (name.empty() || llvm::isDigit(name.front()) ||
      !llvm::all_of(name, isWord))
    return "not an identifier of C";
  if (getKeywords().contains(name))
    return "a word of C or C++";
  if (name.front() == '_')
    return "an underscore in front is reserved";
  if (name.starts_with("bngrad") || name.starts_with("mgpu") ||
      name.starts_with("omp_") || name.starts_with("kmp_"))
    return "reserved for the runtime libraries";
  if (name.ends_with("_t") &&
      (name.starts_with("int") || name.starts_with("uint")))
    return "reserved for a type of C";
  if (isCLibraryName(name))
    return "reserved for the library of C";
  return {};
}
