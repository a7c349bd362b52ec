#!/usr/bin/env bash
# Tests with modules of JAX, TensorFlow and torch-mlir (test/Clients). Installs these
# packages from PyPI into the build first: about 8 GB, since torch brings libraries of CUDA.

. "$(dirname "$0")/common.sh"
packages+=(python3-venv)
setup
build
build check-bngrad-depends
venv=$build/clients-venv
if [ ! -f "$venv/installed" ]; then
  require_space 12000 "$build"
  printf 'bngrad: installing jax, tensorflow, torch and torch-mlir\n'
  log=$build/clients-venv.log
  { "${BNGRAD_CLIENTS_BASE_PYTHON:-python3}" -m venv "$venv" &&
    "$venv/bin/pip" install jax tensorflow-cpu torch &&
    "$venv/bin/pip" install --no-deps torch-mlir &&
    touch "$venv/installed"; } >"$log" 2>&1 ||
    fail "installing the clients failed: $(grep -m1 ERROR "$log" || tail -n1 "$log") (see $log)"
fi
exec "$python" "$llvm_prefix/bin/lit" -v "$build/test" --filter 'Clients/'
