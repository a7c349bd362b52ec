#!/usr/bin/env bash
# Fails if a C++ file is not formatted by clang-format 22, which it installs.

. "$(dirname "$0")/common.sh"

packages=("clang-format-$llvm_version")
setup
cd "$root"
list_sources '*.cpp' '*.h' | xargs -d '\n' "clang-format-$llvm_version" --dry-run -Werror
