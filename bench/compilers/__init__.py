"""BNGrad beside other compilers, each in a process of its own (`scripts/bench.sh --compilers`)."""


class Absent(Exception):
    """Why a contender cannot be measured at all."""
