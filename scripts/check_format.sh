#!/usr/bin/env bash
# Fails if a C++ file is not formatted, if clang-format 22 is installed.

. "$(dirname "$0")/common.sh"

if ! command -v clang-format-$llvm_version >/dev/null; then
  printf 'clang-format-%s is not installed: nothing checked\n' $llvm_version
  exit 0
fi
cd "$root"
git ls-files '*.cpp' '*.h' | xargs clang-format-$llvm_version --dry-run -Werror
