#!/usr/bin/env bash
# Builds the Python wheels into build/wheels, and tests them.
#
#   scripts/wheels.sh [--only=bngrad|bngrad-compiler] [--without=torch,jax] [--quick]
#
# bngrad: for every CPython from 3.10 on this machine that has headers; 3.10 and 3.11
# need a wheel each, later ones share one. The libraries are compiled once, the extension
# module for each wheel, with zig, which has the symbols of every glibc, for glibc 2.28.
# The headers of PyTorch and JAX are extracted from their packages; a wheel without
# bngrad.torch or bngrad.jax is built only with --without.
# Its kernels for GPUs are binaries, for which the script installs ptxas of CUDA 12.
# bngrad-compiler: one wheel for all Pythons. The objects of the finished build are linked
# with the archives of LLVM and of the C++ library, for the same glibc.
#
# A wheel has the files of python/wheel-files.txt. Each Python installs the wheels in a
# fresh environment outside of this folder, and runs test/Python/Inputs/smoke_*.py with no
# other program on the PATH. No file of a wheel has a path of the sources or of the build.
# One Python of each minor version has PyTorch and JAX, if they have a release for it; with
# --quick, only the first Python has them. That one also runs the programs of the documents.

. "$(dirname "$0")/common.sh"

glibc=2.28
declare -A folders=([bngrad]=python [bngrad-compiler]=python/compiler)
declare -A most_bytes=([bngrad]=8000000 [bngrad-compiler]=35000000)
declare -A headers=([torch]=torch/csrc/stable/library.h [jax]=xla/ffi/api/ffi.h)
documents=(README.md docs/python.md docs/python-torch.md docs/python-jax.md)
# Seconds that a download or an installation, a build, and a test may take.
most_seconds_install=1800 most_seconds_build=3600 most_seconds_test=600

names=(bngrad bngrad-compiler) without='' quick=0
for option; do
  case $option in
    --only=bngrad | --only=bngrad-compiler) names=("${option#--only=}") ;;
    --only=*) fail "expected --only=bngrad or --only=bngrad-compiler, got '$option'" ;;
    --without=torch | --without=jax | --without=torch,jax | --without=jax,torch) without=${option#--without=} ;;
    --quick) quick=1 ;;
    *) fail "expected --only=NAME, --without=torch,jax or --quick, got '$option'" ;;
  esac
done
frameworks=()
for name in torch jax; do
  [[ ,$without, == *,$name,* ]] || frameworks+=("$name")
done

work=$build/wheels-work
log=$work/log
export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$work/pip-cache} PIP_DISABLE_PIP_VERSION_CHECK=1
trap 'rm -rf "$temporary"' EXIT
temporary=$(mktemp -d)

# quietly SECONDS TEXT COMMAND...: one line of error if the command fails, or takes longer.
quietly() {
  local status=0
  # In the foreground, so that an interrupt ends the command, too.
  timeout --foreground --kill-after=10 "$1" "${@:3}" >"$log" 2>&1 || status=$?
  [ $status -ne 0 ] || return 0
  [ $status -ne 124 ] && [ $status -ne 137 ] || fail "$2: expected at most $1 s, got more (see $log)"
  fail "$2: $(grep -m1 -E 'error:|ERROR:|CMake Error' "$log" || tail -n1 "$log") (see $log)"
}

# install VENV PACKAGE...: into an environment.
install() {
  quietly $most_seconds_install "installing ${*:2} failed" "$work/tools/bin/pip" --python "$1" install --no-compile "${@:2}"
}

# make_environment PYTHON FOLDER: a fresh one. It has no pip, which takes longer than all else.
make_environment() {
  quietly $most_seconds_install "creating an environment failed" "$1" -m venv --clear --without-pip "$2"
}

# start COMMAND...: in the background, at most `most_jobs` of them; finish: waits for all.
running=0 failed=0
start() {
  [ $running -lt "$most_jobs" ] || reap
  "$@" &
  running=$((running + 1))
}
reap() {
  wait -n || failed=1
  running=$((running - 1))
}
finish() {
  while [ $running -gt 0 ]; do
    reap
  done
  [ $failed -eq 0 ] || exit 1
}

# find_pythons: lines of a tag, a tab, and the path of a Python, one for each installation.
find_pythons() {
  local candidate
  for candidate in "$python" "${HOME:-}"/.pyenv/versions/*/bin/python3 \
    $(compgen -c python3. | grep -E '^python3\.[0-9]+$' | sort -uV); do
    timeout 60 "$candidate" - 2>/dev/null <<'END' || true
import ensurepip, os, sys, sysconfig, venv
version = sys.version_info
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
if (sys.implementation.name == "cpython" and version >= (3, 10)
        and os.path.exists(header)
        and not sysconfig.get_config_var("Py_GIL_DISABLED")):
    tag = "cp312-abi3" if version >= (3, 12) else f"cp3{version[1]}-cp3{version[1]}"
    print(tag, os.path.realpath(sys.executable), sep="\t")
END
  done | awk -F '\t' '!seen[$2]++'
}

# install_tools: zig as the compiler of CMake, and auditwheel.
install_tools() {
  local machine compiler zig=0.17.1
  machine=$(uname -m)
  require_space 3000 "$work"
  # PyTorch and JAX take 2 GB for each of two Pythons at a time; PyTorch's packages stay.
  [ "${names[0]}" != bngrad ] || [ ${#frameworks[@]} -eq 0 ] || { require_space 8000 "$work" && require_space 5000 "$temporary"; }
  if [ ! -f "$work/tools/installed" ]; then
    rm -rf "$work/tools"
    quietly $most_seconds_install "creating an environment failed" "$python" -m venv "$work/tools"
    quietly $most_seconds_install "installing zig failed" "$work/tools/bin/pip" install \
      pip==26.3 "ziglang==$zig" auditwheel==6.8.2 wheel==0.48.0
    touch "$work/tools/installed"
  fi
  # Debian's Python.h includes a header by the name of this folder.
  mkdir -p "$work/include"
  ln -sfn "/usr/include/$machine-linux-gnu" "$work/include/$machine-linux-gnu"
  # zig compiles its libraries for each kind of optimization and debug information, and so for a single one.
  for compiler in cc c++; do
    cat >"$work/tools/bin/zig-$compiler" <<END
#!/bin/sh
# zig $zig
exec "$work/tools/bin/python" -m ziglang $compiler -target $machine-linux-gnu.$glibc -O3 -s "\$@" -idirafter "$work/include"
END
    chmod +x "$work/tools/bin/zig-$compiler"
  done
  export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
}

# require FRAMEWORK: the releases of a framework that are tested, as a requirement of pip.
require() {
  local newest=$1_version oldest=oldest_$1_version
  printf '%s>=%s,<=%s\n' "$1" "${!oldest}" "${!newest}"
}

# list_versions: the minor versions of the Pythons, such as 3.12, in their order.
list_versions() {
  local path
  while IFS=$'\t' read -r _ path; do
    "$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])'
  done <"$work/pythons" | awk '!seen[$1]++'
}

# download FRAMEWORK FOLDER VERSION PLATFORM PACKAGE: the package for a version of Python.
download() {
  quietly $most_seconds_install "cannot download $5, which bngrad.$1 needs (--without=$1 omits bngrad.$1)" "$work/tools/bin/pip" download \
    --no-deps --only-binary=:all: --dest "$2" --python-version="$3" --platform="$4_$(uname -m)" "$5"
}

# has_no_release FRAMEWORK: whether pip, which has failed, has found no release for a Python. It says so as well if it
# cannot reach an index; then it finds none for Python 3.12, either, for which all frameworks have one.
has_no_release() {
  grep -q "No matching distribution found for $1" "$log" &&
    timeout 120 "$work/tools/bin/pip" index versions --python-version=3.12 --only-binary=:all: "$1" >/dev/null 2>&1
}

# download_torch VERSION: PyTorch's package for a version of Python, 540 MB, in packages/VERSION of the folder of
# work; prints its path, or nothing if there is no release for that Python.
download_torch() {
  local folder=$work/packages/$1 requirement found
  requirement=$(require torch)
  # The file has the name of the package, or none.
  found=$(cat "$folder/name-$requirement" 2>/dev/null) || found=unknown
  if [ ! -e "$folder/$found" ]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    if ! (download torch "$folder" "$1" manylinux_2_28 "$requirement") 2>"$folder/error"; then
      has_no_release torch || { cat "$folder/error" >&2 && exit 1; }
    fi
    found=$(cd "$folder" && compgen -G "torch-*.whl") || true
    printf '%s' "$found" >"$folder/name-$requirement"
  fi
  [ -z "$found" ] || printf '%s\n' "$folder/$found"
}

# install_headers FRAMEWORK: the headers of its package, in headers/FRAMEWORK of the folder of work.
install_headers() {
  local folder=$work/headers/$1 package wheel
  package=$(require "$1")
  # XLA accepts what is older than itself. Any Python's package will do.
  [ "$1" != jax ] || package=jaxlib==$oldest_jax_version
  [ ! -f "$folder/installed-$package" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder"
  if [ "$1" = torch ]; then
    wheel=$(download_torch "$(list_versions | head -n 1)")
    [ -n "$wheel" ] || wheel=$(download_torch 3.12)
  else
    download jax "$folder" 3.12 manylinux2014 "$package"
    wheel=$(compgen -G "$folder/*.whl")
  fi
  "$python" - "$wheel" "$folder" <<'END'
import pathlib, sys, zipfile
wheel, folder = map(pathlib.Path, sys.argv[1:])
# PyTorch has more than ten thousand; those that its stable ABI needs are in these folders.
needed = tuple(f"{prefix}/" for prefix in (
    "torch/include/torch/csrc/stable", "torch/include/torch/csrc/inductor/aoti_torch", "torch/include/torch/headeronly",
    "jaxlib/include/xla/ffi/api"))
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.startswith(needed) and not name.endswith("/"):
            target = folder / name.split("/include/")[1]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
END
  rm -f "$folder"/*.whl
  [ -f "$folder/${headers[$1]}" ] || fail "expected ${headers[$1]} in $package, got none"
  touch "$folder/installed-$package"
}

# find_libc: the libraries of zig's glibc, separated by semicolons: this machine's
# lld links them with its own options. zig prints paths relative to the folder that it runs in.
find_libc() {
  cd "$work"
  : >empty.c
  ZIG_VERBOSE_LINK=1 timeout $most_seconds_test tools/bin/zig-cc -shared -o empty.so empty.c -lm -lpthread -ldl 2>&1 |
    tr ' ' '\n' | grep -E '/(lib(m|c|pthread|dl|ld)\.so\.[0-9]+|libc_nonshared\.a)$' |
    while read -r path; do realpath "$path"; done | sort -u | paste -sd ';'
}

# build_libraries: those of bngrad that do not depend on Python, in libraries/site of the folder of work.
build_libraries() {
  local folder=$work/libraries name options=()
  for name in torch jax; do
    if [[ " ${frameworks[*]} " == *" $name "* ]]; then
      options+=("-DBNGRAD_PYTHON_${name^^}=ON" "-DBNGRAD_${name^^}_INCLUDE=$work/headers/$name")
    else
      options+=("-DBNGRAD_PYTHON_${name^^}=OFF")
    fi
  done
  # zig has no features of x86's CPUs.
  [ "$(uname -m)" != x86_64 ] ||
    options+=("-DBNGRAD_BUILTINS=$("clang-$llvm_version" --rtlib=compiler-rt -print-libgcc-file-name)")
  quietly $most_seconds_build "configuring the libraries failed" cmake -G Ninja -S "$root/python" -B "$folder" \
    -DCMAKE_C_COMPILER="$work/tools/bin/zig-cc" -DCMAKE_CXX_COMPILER="$work/tools/bin/zig-c++" "${launchers[@]/#/-D}" \
    -DCMAKE_UNITY_BUILD=ON -DBNGRAD_PYTHON_MODULE=OFF -DBNGRAD_KERNEL_OBJECT_DIR="$kernels" "${options[@]}"
  quietly $most_seconds_build "compiling the libraries failed" cmake --build "$folder"
  rm -rf "$folder/site"
  quietly $most_seconds_build "installing the libraries failed" cmake --install "$folder" --strip --prefix "$folder/site"
}

# build_kernels: the object files of the ready kernels. Those for GPUs are binaries of CUDA 12, which drivers of
# CUDA 12 and 13 load.
build_kernels() {
  local ptxas=$build/cuda12/nvidia/cuda_nvcc/bin/ptxas
  [ -x "$ptxas" ] ||
    quietly $most_seconds_install "installing ptxas failed" bash -c '. "$0" && install_older_ptxas' "$root/scripts/common.sh"
  command -v fatbinary >/dev/null || [ -x /usr/local/cuda/bin/fatbinary ] || [ -x "$build/cuda/nvidia/cu13/bin/fatbinary" ] ||
    quietly $most_seconds_install "installing fatbinary failed" bash -c '. "$0" && install_ptxas' "$root/scripts/common.sh"
  configure
  grep -qxF "BNGRAD_PTXAS:FILEPATH=$ptxas" "$build/CMakeCache.txt" ||
    quietly $most_seconds_build "configuring failed" cmake -DBNGRAD_PTXAS:FILEPATH="$ptxas" -UBNGRAD_FATBINARY "$build"
  build BNGradKernelObjects BNGradCudaKernelObjects
}

# list_settings NAME: arguments of pip for the build of a package.
list_settings() {
  local libc
  if [ "$1" = bngrad-compiler ]; then
    libc=$(find_libc) || fail "expected the libraries of zig's glibc, got none"
    printf '%s\n' --config-settings="cmake.define.BNGRAD_BUILD_DIR=$build" \
      --config-settings="cmake.define.BNGRAD_LIBC=$libc"
    return
  fi
  printf '%s\n' --config-settings="cmake.define.BNGRAD_PYTHON_LIBRARIES=$work/libraries/site/bngrad/_lib" \
    --config-settings=cmake.define.CMAKE_UNITY_BUILD=ON
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

# build_wheel NAME TAG PYTHON: the wheel of one tag, in build/wheels. In a subshell.
build_wheel() {
  local name=$1 tag=$2 venv=$work/$2 raw=$work/raw-$2 text settings=() requirements platform size wheel \
    compilers=("$work/tools/bin/zig-cc" "$work/tools/bin/zig-c++")
  log=$work/build-$tag.log
  printf 'bngrad: building %s for %s\n' "$name" "$tag"
  rm -rf "$raw"
  # In a folder that stays, for ccache.
  # The list is Python, too; tomllib comes with Python 3.11.
  mapfile -t requirements < <("$python" -c "import ast, re, sys
text = open(sys.argv[1], encoding='utf-8').read()
print(*ast.literal_eval(re.search(r'^requires = (\[.*?\])$', text, re.MULTILINE | re.DOTALL)[1]), sep='\n')" \
    "$root/${folders[$name]}/pyproject.toml")
  [ -x "$venv/bin/python" ] || make_environment "$3" "$venv"
  install "$venv" "${requirements[@]}"
  text=$(list_settings "$name")
  mapfile -t settings <<<"$text"
  # The options of lld that zig does not know need clang.
  [ "$name" = bngrad ] || compilers=("clang-$llvm_version" "clang++-$llvm_version")
  quietly $most_seconds_build "building $name failed" env CC="${compilers[0]}" CXX="${compilers[1]}" \
    CMAKE_GENERATOR=Ninja "${launchers[@]}" \
    "$work/tools/bin/pip" --python "$venv" wheel -v --no-deps --no-build-isolation --wheel-dir "$raw" \
    "$root/${folders[$name]}" --config-settings=build-dir="$work/$name-$tag" "${settings[@]}"
  wheel=$(compgen -G "$raw/*.whl")
  size=$(stat -c %s "$wheel")
  [ "$size" -le "${most_bytes[$name]}" ] ||
    fail "expected a wheel of at most ${most_bytes[$name]} bytes, got $size: $wheel"
  "$python" "$root/scripts/check_wheel.py" --without="$without" --no-path="$root" --no-path="$build" "$wheel" \
    >"$log" || fail "expected a wheel as python/wheel-files.txt says: $(head -n1 "$log") (see $log)"
  timeout $most_seconds_test "$work/tools/bin/auditwheel" show --json "$wheel" >"$raw/audit" 2>"$log" || fail "auditwheel failed: $(tail -n1 "$log")"
  platform=$(find_platform <"$raw/audit") ||
    fail "expected a wheel for manylinux_${glibc/./_} or older, got '$platform' (see $raw/audit)"
  quietly $most_seconds_test "naming the wheel failed" \
    "$work/tools/bin/wheel" tags --remove --platform-tag "$platform" "$wheel"
  rm -f "$build/wheels/${name//-/_}"-[0-9]*-"$tag"-*.whl
  mv "$raw"/*.whl "$build/wheels"
  printf 'bngrad: %s, %d bytes\n' "$(basename "$build/wheels/${name//-/_}"-[0-9]*-"$tag"-*.whl)" "$size"
}

# download_packages: those of PyTorch for all Pythons that test it.
download_packages() {
  local version
  log=$work/download.log
  for version in $(list_versions); do
    download_torch "$version" >/dev/null
    [ $quick -eq 0 ] || break
  done
}

# install_frameworks VENV VERSION: those that have a release for this Python; sets `found`.
install_frameworks() {
  local name wheel
  found=()
  for name in "${frameworks[@]}"; do
    if [ "$name" = torch ]; then
      wheel=$(download_torch "${2%.*}")
      if [ -n "$wheel" ]; then
        install "$1" --no-deps "$wheel"
        quietly $most_seconds_install "making PyTorch independent of CUDA failed" \
          "$python" "$root/scripts/torch_without_cuda.py" "$1"/lib/python3*/site-packages/torch/lib
        found+=(torch)
      fi
    elif (install "$1" "$(require jax)") 2>"$1/error"; then
      found+=(jax)
    else
      has_no_release jax || { cat "$1/error" >&2 && exit 1; }
    fi
    [[ " ${found[*]} " == *" $name "* ]] ||
      printf 'bngrad: Python %s: %s has no release for it, so bngrad.%s is not tested\n' "$2" "$name" "$name"
  done
}

# list_documents FRAMEWORK...: the documents whose programs can run, with these frameworks and the wheels that
# were built.
list_documents() {
  local document needs
  for document in "${documents[@]}"; do
    needs=$("$python" "$root/scripts/run_examples.py" --print "$root/$document")
    if [[ $needs == *bngrad.compile\(* || $needs == *bngrad.opt\(* ]] && [ ${#names[@]} -eq 1 ]; then
      printf 'bngrad: the programs of %s are not run, as they need bngrad-compiler\n' "$document" >&2
    elif [[ $needs == *bngrad.torch* && " $* " != *" torch "* ]] ||
      [[ $needs =~ bngrad\.(jax|flax) && " $* " != *" jax "* ]]; then
      printf 'bngrad: the programs of %s are not run, as they need PyTorch or JAX\n' "$document" >&2
    elif [ -n "$needs" ]; then
      printf '%s\n' "$document"
    fi
  done
}

# test_python NUMBER PYTHON plain|frameworks: installs the wheels in a fresh environment, and runs their smoke tests,
# and with the first Python the programs of the documents. In a subshell.
test_python() {
  local folder=$temporary/$1 venv=$temporary/$1/venv version extras found=() smokes=() smoke programs=() \
    packages=() passed='' began=$SECONDS
  log=$work/test-$1.log
  version=$("$2" -c 'import platform; print(platform.python_version())')
  mkdir "$folder"
  make_environment "$2" "$venv"
  if [ "${names[0]}" = bngrad ]; then
    if [ "$3" = plain ]; then
      printf 'bngrad: Python %s: the tests with PyTorch and JAX are omitted\n' "$version"
    else
      install_frameworks "$venv" "$version"
    fi
    smokes=(bngrad "${found[@]}")
  fi
  extras=$(IFS=, && echo "${found[*]}")
  # The smoke tests need ml_dtypes, which JAX brings.
  [[ " ${found[*]} " == *" jax "* ]] || extras=${extras:+$extras,}numpy
  packages=("bngrad[$extras]")
  if [[ " ${names[*]} " == *" bngrad-compiler "* ]]; then
    packages+=(bngrad-compiler)
    smokes+=(bngrad_compiler)
  fi
  # As docs/python.md has it.
  install "$venv" --find-links "$build/wheels" "${packages[@]}"
  for smoke in "${smokes[@]}"; do
    cp "$root/test/Python/Inputs/smoke_$smoke.py" "$folder"
    (cd "$folder" && quietly $most_seconds_test "smoke_$smoke.py failed with Python $version" \
      env -i PATH="$venv/bin" HOME="$folder" "$venv/bin/python" "smoke_$smoke.py" "$root")
    passed+="$(tail -n1 "$log"); "
  done
  if [ "$1" -eq 0 ] && [ "${names[0]}" = bngrad ]; then
    [[ " ${found[*]} " != *" jax "* ]] || install "$venv" "flax<=$flax_version"
    mapfile -t programs < <(list_documents "${found[@]}")
    if [ ${#programs[@]} -gt 0 ]; then
      (cd "$folder" && quietly $most_seconds_test "the programs of the documents failed" \
        env -i PATH="$venv/bin" HOME="$folder" "$venv/bin/python" "$root/scripts/run_examples.py" \
        "${programs[@]/#/$root/}")
      passed+="documents: $(tail -n1 "$log"); "
    fi
  fi
  rm -rf "$folder"
  printf 'bngrad: Python %s passed in %d s: %s\n' "$version" $((SECONDS - began)) "${passed%; }"
}

# test_wheels: with all Pythons. One of each minor version has PyTorch and JAX, with --quick only the first of all.
test_wheels() {
  local number=0 path kind version versions=' '
  while IFS=$'\t' read -r _ path; do
    kind=plain version=$("$path" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ $number -eq 0 ] || { [ $quick -eq 0 ] && [[ $versions != *" $version "* ]]; }; then
      kind=frameworks
    fi
    versions+="$version "
    start test_python $number "$path" $kind
    number=$((number + 1))
  done <"$work/pythons"
  finish
}

mkdir -p "$work" "$build/wheels"
packages+=(python3-dev python3-venv)
setup
launchers=(CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache)
# The scripts that start zig are written anew each time.
export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=content
most_jobs=$(nproc)
[ "$most_jobs" -le 4 ] || most_jobs=4
kernels=${BNGRAD_KERNEL_OBJECT_DIR:-}
if [ -z "$kernels" ]; then
  kernels=$build/lib/Runtime/Kernels
  build_kernels
fi
grep -qs '^12\.' "$kernels/../CudaKernels/ptxas-version" && [ -f "$kernels/../CudaKernels/rows_f32_bin.o" ] ||
  fail "expected binaries of the kernels for GPUs by ptxas of CUDA 12, got none in $kernels/../CudaKernels"
find_pythons >"$work/pythons"
[ -s "$work/pythons" ] || fail "expected a CPython of 3.10 or later with headers, got none"
install_tools
for name in "${names[@]}"; do
  began=$SECONDS
  if [ "$name" = bngrad-compiler ]; then
    compgen -G "$build/wheels/bngrad-[0-9]*.whl" >/dev/null ||
      fail "expected wheels of bngrad in $build/wheels, which bngrad-compiler needs, got none: run scripts/wheels.sh"
    build BNGradCompilerLibrary BNGradCudaRuntime
    start build_wheel "$name" py3-none "$(cut -f 2 "$work/pythons" | head -n 1)"
  else
    for framework in "${frameworks[@]}"; do
      install_headers "$framework"
    done
    if [[ " ${frameworks[*]} " == *" torch "* ]]; then
      start download_packages
    fi
    build_libraries
    while IFS=$'\t' read -r tag path; do
      start build_wheel "$name" "$tag" "$path"
    done < <(awk -F '\t' '!seen[$1]++' "$work/pythons")
  fi
  finish
  printf 'bngrad: %s was built in %d s\n' "$name" $((SECONDS - began))
done
test_wheels
