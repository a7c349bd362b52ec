"""Starts programs of several processes with mpirun.

Both launchers run as root and with more processes than cores. Those of Open MPI then ask for consent, and wait
without giving way unless they are told to.
"""

import os
import subprocess
import sys

ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    # One host needs no network.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
    # Containers may forbid the system call of single copies.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMP_NUM_THREADS": "1",
}
# Far longer than any program here.
LIMIT = 100


def launch(mpi, size, command, options=(), **environment):
    """Runs `command` in `size` processes; returns its status, standard output and standard error."""
    arguments = [f"mpirun.{mpi}", *options, "-n", str(size), *map(str, command)]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | ENVIRONMENT | environment, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            # The launcher and its processes.
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            return "no end", out, err
    return process.returncode, out, err


def main():
    """launch.py openmpi|mpich SIZE COMMAND...; every process may report, as Open MPI ends none that is left."""
    mpi, size, *command = sys.argv[1:]
    options = ["--enable-recovery"] if mpi == "openmpi" else []
    status, out, err = launch(mpi, size, command, options)
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(status)


if __name__ == "__main__":
    main()
