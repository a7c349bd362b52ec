"""Processes of gloo for the tests of bngrad.torch."""

import datetime
import multiprocessing
import os
import tempfile
import traceback

import torch
# What backward passes and comparisons import when first used: once, instead of in every process.
import torch._dynamo  # noqa: F401
import torch.distributed as dist

# Processes are forked, which threads of OpenMP do not survive.
torch.set_num_threads(1)
torch.testing.assert_close(torch.ones(1), torch.ones(1))
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def run_rank(function, rank, size, folder, timeout, arguments):
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=timeout))
        # A rank that has nothing to do would be gone before the others have connected to it.
        dist.barrier()
        torch.save(function(rank, size, *arguments), f"{folder}/result{rank}")
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    # Without waiting for the threads of other ranks.
    os._exit(0)


def run_ranks(function, size, *arguments, timeout=60, lost=()):
    """The results of `function(rank, size, *arguments)` in each rank but `lost`."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run_rank, args=(function, rank, size, folder, timeout, arguments))
                     for rank in range(size)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(90)
        codes = [process.exitcode for process in processes]
        for process in processes:
            process.kill()
        assert codes == [0] * size
        return [None if rank in lost else torch.load(f"{folder}/result{rank}") for rank in range(size)]
