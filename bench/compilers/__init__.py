"""BNGrad beside other compilers, each in a process of its own (`scripts/bench.sh --compilers`)."""
