#!/usr/bin/env bash
# Builds the Python wheels into build/wheels, and tests them.
#
#   scripts/wheels.sh [--only=bngrad|bngrad-compiler]
#
# bngrad: for every CPython from 3.10 on this machine that has headers; 3.10 and
# 3.11 need a wheel each, later ones share one. It is compiled with zig, which has
# the symbols of every glibc, for glibc 2.28.
# bngrad-compiler: one wheel for all of them. The objects of the finished build are
# linked with the archives of LLVM and of the C++ library, for the same glibc.
# Each Python installs the wheels and numpy in a fresh environment outside of this
# folder, and runs test/Python/Inputs/smoke_NAME.py with no other program on the
# PATH, and the folders build/lib and build/bin renamed for a while.

. "$(dirname "$0")/common.sh"

glibc=2.28
declare -A folders=([bngrad]=python [bngrad-compiler]=python/compiler)
declare -A most_bytes=([bngrad]=4000000 [bngrad-compiler]=35000000)

names=(bngrad bngrad-compiler)
case "${1:-}" in
  "") ;;
  --only=*) names=("${1#--only=}") ;;
  *) fail "expected no option or --only=NAME, got '$1'" ;;
esac
for name in "${names[@]}"; do
  [ -n "${folders[$name]:-}" ] ||
    fail "expected --only=bngrad or --only=bngrad-compiler, got '$1'"
done

work=$build/wheels-work
log=$work/log
hidden=()
trap 'show_build; rm -rf "$temporary"' EXIT
temporary=$(mktemp -d)

# quietly TEXT COMMAND...: one line of error if the command fails.
quietly() {
  "${@:2}" >"$log" 2>&1 ||
    fail "$1: $(grep -m1 -E 'error:|ERROR:' "$log" || tail -n1 "$log") (see $log)"
}

# hide_build, show_build: the tools and libraries of the build are out of reach, so
# that wheels do not use them, and back.
hide_build() {
  local folder
  for folder in bin lib; do
    mv "$build/$folder" "$build/$folder.hidden"
    hidden+=("$build/$folder")
  done
}
show_build() {
  local folder
  for folder in "${hidden[@]}"; do
    mv "$folder.hidden" "$folder"
  done
  hidden=()
}

# find_pythons: lines of a tag and the path of a Python, one for each installation.
find_pythons() {
  local candidate
  for candidate in "$python" "${HOME:-}"/.pyenv/versions/*/bin/python3 \
    $(compgen -c python3. | grep -E '^python3\.[0-9]+$' | sort -uV); do
    "$candidate" - 2>/dev/null <<'END' || true
import ensurepip, os, sys, sysconfig, venv
version = sys.version_info
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
if (sys.implementation.name == "cpython" and version >= (3, 10)
        and os.path.exists(header)
        and not sysconfig.get_config_var("Py_GIL_DISABLED")):
    tag = "cp312-abi3" if version >= (3, 12) else f"cp3{version[1]}-cp3{version[1]}"
    print(tag, os.path.realpath(sys.executable))
END
  done | awk '!seen[$2]++'
}

# install_tools: zig as the compiler of CMake, and auditwheel.
install_tools() {
  local machine compiler
  machine=$(uname -m)
  require_space 3000 "$work"
  if [ ! -f "$work/tools/installed" ]; then
    rm -rf "$work/tools"
    quietly "installing zig failed" "$python" -m venv "$work/tools"
    quietly "installing zig failed" "$work/tools/bin/pip" install \
      ziglang==0.17.1 auditwheel==6.8.2 wheel==0.48.0
    touch "$work/tools/installed"
  fi
  # Debian's Python.h includes a header by the name of this folder.
  mkdir -p "$work/include"
  ln -sfn "/usr/include/$machine-linux-gnu" "$work/include/$machine-linux-gnu"
  for compiler in cc c++; do
    cat >"$work/tools/bin/zig-$compiler" <<END
#!/bin/sh
exec "$work/tools/bin/python" -m ziglang $compiler -target $machine-linux-gnu.$glibc "\$@" -idirafter "$work/include"
END
    chmod +x "$work/tools/bin/zig-$compiler"
  done
  export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
}

# find_libc: the libraries of zig's glibc, separated by semicolons: this machine's
# lld links them with its own options.
find_libc() {
  local empty=$work/empty
  : >"$empty.c"
  ZIG_VERBOSE_LINK=1 "$work/tools/bin/zig-cc" -shared -o "$empty.so" "$empty.c" -lm -lpthread -ldl 2>&1 |
    tr ' ' '\n' | grep -E '/(lib(m|c|pthread|dl|ld)\.so\.[0-9]+|libc_nonshared\.a)$' |
    while read -r path; do realpath "$path"; done | sort -u | paste -sd ';'
}

# list_settings NAME: arguments of pip for the build of a package.
list_settings() {
  local builtins header libc
  if [ "$1" = bngrad-compiler ]; then
    libc=$(cd "$work" && find_libc)
    [ -n "$libc" ] || fail "expected the libraries of zig's glibc, got none"
    printf '%s\n' --config-settings="cmake.define.BNGRAD_BUILD_DIR=$build" \
      --config-settings="cmake.define.BNGRAD_LIBC=$libc"
    return
  fi
  printf '%s\n' --config-settings="cmake.define.BNGRAD_KERNEL_OBJECT_DIR=$kernels"
  # zig has no features of x86's CPUs.
  builtins=$("clang-$llvm_version" --rtlib=compiler-rt -print-libgcc-file-name)
  [ "$(uname -m)" != x86_64 ] || printf '%s\n' --config-settings="cmake.define.BNGRAD_BUILTINS=$builtins"
  header=$(find_include torch torch/csrc/stable/library.h)
  [ -z "$header" ] || printf '%s\n' --config-settings=cmake.define.BNGRAD_PYTHON_TORCH=ON \
    --config-settings="cmake.define.BNGRAD_TORCH_INCLUDE=$header"
  header=$(find_include jaxlib xla/ffi/api/ffi.h)
  [ -z "$header" ] || printf '%s\n' --config-settings=cmake.define.BNGRAD_PYTHON_JAX=ON \
    --config-settings="cmake.define.BNGRAD_JAX_INCLUDE=$header"
}

# find_platform: the platform of a wheel, from the JSON of auditwheel. The library of PyTorch is there when
# ours for it is loaded.
find_platform() {
  "$python" -c "
import json, sys
audit = json.load(sys.stdin)
libraries = set(audit['external_libs']) - {'libtorch_cpu.so'}
platform = audit['sym_tag']
print(platform, *libraries)
parts = platform.split('_')
sys.exit(parts[0] != 'manylinux' or int(parts[2]) > ${glibc#2.} or bool(libraries))"
}

# build_wheel NAME TAG PYTHON: the wheel of one tag, in build/wheels.
build_wheel() {
  local name=$1 tag=$2 venv=$work/$2 settings=() requirements compilers=("$work/tools/bin/zig-cc" "$work/tools/bin/zig-c++") raw=$work/raw platform size wheel
  printf 'bngrad: building %s for %s\n' "$name" "$tag"
  rm -rf "$raw"
  # In a folder that stays, for ccache.
  mapfile -t requirements < <("$python" -c "import sys, tomllib
for name in tomllib.load(open(sys.argv[1], 'rb'))['build-system']['requires']: print(name)" "$root/${folders[$name]}/pyproject.toml")
  [ -x "$venv/bin/pip" ] || quietly "creating an environment failed" "$3" -m venv --clear "$venv"
  quietly "installing the requirements of $name failed" "$venv/bin/pip" install "${requirements[@]}"
  mapfile -t settings < <(list_settings "$name")
  # The options of lld that zig does not know need clang.
  [ "$name" = bngrad ] || compilers=("clang-$llvm_version" "clang++-$llvm_version")
  quietly "building $name failed" env CC="${compilers[0]}" CXX="${compilers[1]}" \
    CMAKE_GENERATOR=Ninja \
    CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_COMPILERTYPE=clang \
    "$venv/bin/pip" wheel -v --no-deps --no-build-isolation --wheel-dir "$raw" "$root/${folders[$name]}" \
    --config-settings=build-dir="$work/$name-$tag" "${settings[@]}"
  wheel=$(echo "$raw"/*.whl)
  size=$(stat -c %s "$wheel")
  [ "$size" -le "${most_bytes[$name]}" ] ||
    fail "expected a wheel of at most ${most_bytes[$name]} bytes, got $size: $wheel"
  "$work/tools/bin/auditwheel" show "$wheel" >"$raw/show" 2>&1 ||
    fail "auditwheel failed: $(tail -n1 "$raw/show")"
  cat "$raw/show"
  platform=$("$work/tools/bin/auditwheel" show --json "$wheel" 2>"$log" | find_platform) ||
    fail "expected a wheel for manylinux_${glibc/./_} or older, got '$platform'"
  quietly "naming the wheel failed" "$work/tools/bin/wheel" tags --remove --platform-tag "$platform" "$wheel"
  rm -f "$build/wheels/${name//-/_}"-[0-9]*-"$tag"-*.whl
  mv "$raw"/*.whl "$build/wheels"
  printf 'bngrad: %s, %d bytes\n' "$(basename "$build/wheels/${name//-/_}"-[0-9]*-"$tag"-*.whl)" "$size"
}

# test_wheel NAME TAG PYTHON: installs the wheel, and runs its smoke test.
test_wheel() {
  local venv=$temporary/venv smoke=smoke_${1//-/_}.py
  quietly "creating an environment failed" "$3" -m venv --clear "$venv"
  quietly "installing numpy failed" "$venv/bin/pip" install numpy ml_dtypes
  # Not from an index, where other packages may have the names.
  quietly "installing $1 failed" "$venv/bin/pip" install --no-index --find-links "$build/wheels" \
    "$build/wheels/${1//-/_}"-[0-9]*-"$2"-*.whl
  cp "$root/test/Python/Inputs/$smoke" "$temporary"
  hide_build
  (cd "$temporary" && env -i PATH="$venv/bin" HOME="$temporary" \
    "$venv/bin/python" "$smoke" "$root" >"$log" 2>&1) ||
    fail "$smoke failed with $("$3" --version): $(tail -n1 "$log") (see $log)"
  show_build
  printf 'bngrad: %s of %s passed: %s\n' "$1" "$("$3" --version)" "$(tail -n1 "$log")"
}

mkdir -p "$work" "$build/wheels"
packages+=(python3-dev python3-venv)
setup
kernels=${BNGRAD_KERNEL_OBJECT_DIR:-}
if [ -z "$kernels" ]; then
  kernels=$build/lib/Runtime/Kernels
  build BNGradKernels
fi
find_pythons >"$work/pythons"
[ -s "$work/pythons" ] || fail "expected a CPython of 3.10 or later with headers, got none"
install_tools
for name in "${names[@]}"; do
  if [ "$name" = bngrad-compiler ]; then
    compgen -G "$build/wheels/bngrad-[0-9]*.whl" >/dev/null ||
      fail "expected wheels of bngrad in $build/wheels, which bngrad-compiler needs, got none: run scripts/wheels.sh"
    build BNGradCompilerLibrary BNGradCudaRuntime
    started=$SECONDS
    build_wheel "$name" py3-none "$(awk 'NR == 1 { print $2 }' "$work/pythons")"
    printf 'bngrad: %s was built in %d s\n' "$name" $((SECONDS - started))
    while read -r _ path; do
      test_wheel "$name" py3-none "$path"
    done <"$work/pythons"
    continue
  fi
  while read -r tag _; do
    build_wheel "$name" "$tag" "$(awk -v tag="$tag" '$1 == tag { print $2; exit }' "$work/pythons")"
  done < <(awk '!seen[$1]++' "$work/pythons")
  while read -r tag path; do
    test_wheel "$name" "$tag" "$path"
  done <"$work/pythons"
done
