#!/usr/bin/env bash
# Sets up a fresh machine and builds everything in build/ (or BNGRAD_BUILD_DIR),
# with CC, CXX, BNGRAD_BUILD_TYPE and BNGRAD_CMAKE_FLAGS if they are set.

. "$(dirname "$0")/common.sh"
setup
build_tests
