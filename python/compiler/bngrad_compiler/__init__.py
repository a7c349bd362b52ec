"""The compiler of bngrad, with MLIR and LLVM inside.

bngrad.compile and bngrad.opt call it, and so does the C library of bngrad for
gradients without a ready kernel. It imports nothing but the standard library.
"""

from bngrad_compiler._library import (Failure, check_device, create,
                                      cuda_errors, library_path,
                                      print_program, run_passes, version)

__all__ = [
    "Failure", "check_device", "create", "cuda_errors", "library_path",
    "print_program", "run_passes", "version",
]
