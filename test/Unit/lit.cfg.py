# Each googletest case of unittests/ is one lit test.

import os

import lit.formats

config.name = "BNGrad-Unit"
config.suffixes = []
config.test_source_root = os.path.join(config.bngrad_obj_root, "unittests")
config.test_exec_root = config.test_source_root
config.test_format = lit.formats.GoogleTest(".", "Tests")

# The long tests take more cases of some unit tests.
config.environment["BNGRAD_LONG_TESTS"] = os.environ.get("BNGRAD_LONG_TESTS", "")

# LLVM's allocators poison memory in headers, which are instrumented here, and
# unpoison it in libLLVM, which is not.
if "Address" in config.sanitizer:
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0"

for name in ("BNGRAD_ISA", "BNGRAD_NUM_THREADS", "OMP_NUM_THREADS", "LC_ALL"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
