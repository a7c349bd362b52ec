//===- Options.td - command line of bngrad-compile ------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "common/Options.td"

def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"OUT">,
        HelpText<"Output; its extension says what is made, see below">;
defm entry : Eq<"entry", "NAME[=C_NAME]",
                "Function to export, and its name in C; may be repeated "
                "(default: all public ones)">;
defm header : Eq<"header", "OUT.h", "C header of what the output exports">;
def packed
    : Flag<["--"], "packed">,
      HelpText<"Export only NAME_packed and NAME_packed_workspace, which take "
               "an array of pointers to descriptors and check nothing">;
defm target : Eq<"target", "cpu|cuda",
                 "Where the gradients are to run (default: cpu)">;
defm chip : Eq<"chip", "sm_XX[,...]",
               "GPUs, for --target=cuda; the schedule is one that all can run "
               "(default: sm_90)">;
defm active_clusters
    : Eq<"active-clusters", "SIZE:ONE:TWO[,...]",
         "Clusters of SIZE blocks that the GPU runs at once, with one block and "
         "with two on a multiprocessor, for --target=cuda (default: assumed for "
         "the chip)">;
defm format : Eq<"format", "isa|bin|fatbin",
                 "Form of kernels, for --target=cuda: PTX, cubin (needs ptxas), "
                 "both (needs ptxas and fatbinary) (default: isa)">;
def device_arguments : Flag<["--"], "device-arguments">,
    HelpText<"For --target=cuda: arrays are in device memory (default: in "
             "host memory, and copied)">;
defm mcpu : Eq<"mcpu", "CPU",
               "CPU as LLVM names it, such as x86-64-v3 (default: native)">;
defm mattr : Eq<"mattr", "+FEATURE[,...]",
                "Features to add to the CPU's, or to remove with -, by LLVM's "
                "names, such as +avx512bf16">;
defm mtriple : Eq<"mtriple", "TRIPLE",
                  "Machine to compile for, x86_64 or aarch64, such as "
                  "aarch64-linux-gnu; not for .so (default: this machine)">;
defm schedule : Eq<"schedule", "#bngrad.schedule<...>",
                   "Schedule for every group (default: chosen)">;
defm threads : Eq<"threads", "N|caller",
                  "Threads to share work among; caller: as many as a call has "
                  "(default: this machine's cores)">;
def reassociate_sums
    : Flag<["--"], "reassociate-sums">,
      HelpText<"Add up the program's sums in any order, as its source allows: "
               "more exact and faster">;
