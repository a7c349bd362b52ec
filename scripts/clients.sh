#!/usr/bin/env bash
# Tests with modules of JAX, TensorFlow and torch-mlir (test/Clients). Installs these
# packages from PyPI into the build first: about 8 GB, since torch brings libraries of CUDA.

. "$(dirname "$0")/common.sh"
packages+=(python3-venv)
setup
build
build check-bngrad-depends
require_space 12000 "$build"
printf 'bngrad: installing jax, tensorflow, torch and torch-mlir\n'
install_clients "jax==$jax_version" tensorflow-cpu==2.21.0 "torch==$torch_version" ||
  fail "installing the clients failed: $(grep -m1 ERROR "$build/clients-venv.log" || tail -n1 "$build/clients-venv.log")"
exec "$python" "$llvm_prefix/bin/lit" -a "$build/test" --filter 'Clients/'
