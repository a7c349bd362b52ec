//===- main.cpp - runs the cases of a program -------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "harness.h"

int main(int argc, char **argv) {
  return testing::runCases({argv + 1, argv + argc});
}
