#!/usr/bin/env bash
# Fails if clang-tidy 22, which it installs, has a finding. .clang-tidy lists the
# checks; headers are checked with the files that include them.
#
#   scripts/check_tidy.sh            every file
#   scripts/check_tidy.sh --share=N  every N-th file, other ones with every commit
#   scripts/check_tidy.sh FILE...    these files

. "$(dirname "$0")/common.sh"

share=1
case "${1:-}" in
  --share=[1-9]*) share=${1#*=} && shift ;;
  -*) fail "expected --share=N or files, got '$1'" ;;
esac

packages=("clang-tidy-$llvm_version")
setup
cd "$root"
# The compiler's options, and the headers that TableGen generates.
[ -f "$build/compile_commands.json" ] || build

mapfile -t all < <(git ls-files 'lib/*.cpp' 'tools/*.cpp' 'unittests/*.cpp' 'fuzz/*.cpp')
if [ $# -gt 0 ]; then
  files=("$@")
else
  first=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % share))
  files=()
  for ((i = first; i < ${#all[@]}; i += share)); do files+=("${all[i]}"); done
fi

# A log per file, as lines of parallel processes would mix. A file that is not
# in compile_commands.json gets the options of one with a similar name.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
status=0
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -I FILE sh -c '"$0" --quiet --warnings-as-errors="*" -p "$1" "$2" >"$(mktemp -p "$3")" 2>&1' \
    "clang-tidy-$llvm_version" "$build" FILE "$logs" || status=1

# Every file that includes a header repeats its findings.
findings=$(cat "$logs"/* | grep -E ': (warning|error): ' | sed "s|^$root/||" | sort -u) || true
if [ -n "$findings" ]; then
  printf '%s\n' "$findings"
elif [ $status -ne 0 ]; then
  cat "$logs"/*
fi
printf 'tidy: %d of %d files, %d findings, %d s\n' ${#files[@]} ${#all[@]} \
  "$(printf '%s' "$findings" | grep -c '' || true)" $SECONDS
exit $status
