#!/usr/bin/env bash
# Compiles each header of an include folder on its own with clang and gcc: included
# twice by a file of C++17 and, if it declares `extern "C"` and so is for C, by one
# of C89.
#
#   scripts/check_headers.sh FOLDER

. "$(dirname "$0")/common.sh"

[ $# -eq 1 ] && [ -d "$1" ] || fail "expected a folder of headers, got '$*'"
cd "$1"

# compile HEADER COMPILER OPTION...
compile() {
  printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
    "${@:2}" -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror -I. -isystem "$llvm_prefix/include" - ||
    printf '%s: expected a header that compiles alone with %s\n' "$1" "${*:2}"
}

# check HEADER
check() {
  local compiler
  for compiler in "clang++-$llvm_version" g++; do
    # MLIR has no RTTI.
    compile "$1" "$compiler" -x c++ -std=c++17 -fno-rtti
  done
  grep -q 'extern "C"' "$1" || return 0
  for compiler in "clang-$llvm_version" gcc; do
    compile "$1" "$compiler" -x c -std=c89 -pedantic
  done
}
export -f check compile
export llvm_prefix llvm_version

mapfile -t headers < <(find . -name '*.h' -printf '%P\n' | sort)
[ ${#headers[@]} -gt 0 ] || fail "expected headers in $1, got none"
# The lines of a header together, in one call of write.
found=$(printf '%s\n' "${headers[@]}" |
  xargs -P "$(nproc)" -I HEADER bash -c 'text=$(check HEADER 2>&1); [ -z "$text" ] || printf "%s\n" "$text"')
[ -z "$found" ] || printf '%s\n' "$found"
errors=$(grep -c ': expected a header that compiles alone' <<<"$found" || true)
printf 'headers: %d files, %d errors\n' ${#headers[@]} "$errors"
[ "$errors" -eq 0 ]
