//===- Options.td - command line of bngrad-runner -------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "common/Options.td"

defm entry : Eq<"entry", "NAME",
                "Function to run (default: the only public one)">;
defm target : Eq<"target", "cpu|cuda|cuda-emulator",
                 "Where to run (default: cpu)">;
defm chip : Eq<"chip", "sm_XX",
               "GPU to compile for (default: the GPU of this machine; sm_90 for "
               "the emulator)">;
defm active_clusters
    : Eq<"active-clusters", "SIZE:ONE:TWO[,...]",
         "Clusters of SIZE blocks that the GPU runs at once, with one block and "
         "with two on a multiprocessor (default: queried from the GPU, or "
         "assumed for the chip of --chip)">;
defm schedule : Eq<"schedule", "#bngrad.schedule<...>",
                   "Schedule for every group (default: chosen)">;
defm arg : Eq<"arg", "SPEC", "Value of the next argument; SPEC: see below">;
defm result : Eq<"result", "PATH.npy|-",
                 "File for the next result; - skips it, fewer are allowed">;
def check : Flag<["--"], "check">,
            HelpText<"Compare with the reference in long double">;
defm benchmark : Eq<"benchmark", "N",
                    "Time N runs against the bandwidth of memory">;
defm mpi : Eq<"mpi", "openmpi|mpich|PATH",
              "The MPI of the processes of a program with shard annotations">;
defm shards : Eq<"shards", "AXIS[,AXIS...]:SIZE[+SIZE...]",
                 "Sizes of the shards along grid axes (default: as even as "
                 "possible, the first larger)">;
defm threads : Eq<"threads", "N", "Threads (default: one per core)">;
def reassociate_sums
    : Flag<["--"], "reassociate-sums">,
      HelpText<"Add up the program's sums in any order, as its source allows: "
               "more exact and faster">;
