#!/usr/bin/env bash
# Fails if clang-tidy 22, which it installs, has a finding. .clang-tidy lists the
# checks; headers are checked with the files that include them.
#
#   scripts/check_tidy.sh            every file
#   scripts/check_tidy.sh --share=N  every N-th file, other ones with every commit
#   scripts/check_tidy.sh --changed  files changed since the main branch, or since
#                                    the last commit of that branch, and those
#                                    that include a changed header; a share of
#                                    them that is at most ten files
#   scripts/check_tidy.sh FILE...    these files

. "$(dirname "$0")/common.sh"

share=1 changed=0 most=10
case "${1:-}" in
  --share=[1-9]*) share=${1#*=} && shift ;;
  --changed) changed=1 && shift ;;
  -*) fail "expected --share=N, --changed or files, got '$1'" ;;
esac

packages=("clang-tidy-$llvm_version")
setup
cd "$root"
# A build folder of its own, in which every file has the options of the compiler, as it does not in a unity
# build. Only the headers that TableGen generates are built there.
build=$build/tidy
if [ ! -f "$build/compile_commands.json" ]; then
  BNGRAD_UNITY_BUILD=OFF BNGRAD_CMAKE_FLAGS=-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON configure
  mapfile -t headers < <(ninja -C "$build" -t targets all | sed -n 's/^\(BNGrad[A-Za-z]*IncGen\): phony$/\1/p')
  build "${headers[@]}"
fi

# The commit that changes are relative to; none in a history of one commit.
find_base() {
  local branch base head
  head=$(git rev-parse --quiet --verify HEAD) || return
  for branch in origin/main main; do
    base=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
    [ "$base" = "$head" ] || { echo "$base" && return; }
  done
  git rev-parse --quiet --verify HEAD~1
}

# list_changed BASE: the files to check for the changes of the tree since BASE.
list_changed() {
  local file
  git diff --name-only --diff-filter=d "$1" | while read -r file; do
    case "$file" in
      *.h) git grep -l "[\"/]${file##*/}\"" -- "${sources[@]}" || true ;;
      *.cpp) printf '%s\n' "${all[@]}" | grep -Fx "$file" || true ;;
    esac
  done | sort -u
}

sources=('lib/*.cpp' 'ptx-emulator/*.cpp' 'tools/*.cpp' 'unittests/*.cpp' 'fuzz/*.cpp')
mapfile -t all < <(list_sources "${sources[@]}")
candidates=("${all[@]}")
if [ $changed -eq 1 ]; then
  # Without a base, a share of all files.
  ! base=$(find_base) || mapfile -t candidates < <(list_changed "$base")
  share=$(((${#candidates[@]} + most - 1) / most))
fi
if [ $# -gt 0 ]; then
  files=("$@")
else
  files=()
  if [ ${#candidates[@]} -gt 0 ]; then
    first=$(($(count_commits) % share))
    for ((i = first; i < ${#candidates[@]}; i += share)); do files+=("${candidates[i]}"); done
  fi
fi
if [ ${#files[@]} -eq 0 ]; then
  printf 'tidy: 0 of %d files, 0 findings, 0 s\n' ${#all[@]}
  exit 0
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
