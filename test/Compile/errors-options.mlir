// Each wrong option gives one line that names it, before anything is compiled; several give several lines.

// DEFINE: %{fails} = %python %S/../Inputs/expect_error.py
// DEFINE: %{run} = bngrad-compile %s

// RUN: %{run} -o %t.o
// RUN: %{run} -o%t.o --target cpu --mcpu native --threads 2

// RUN: %{fails} "unknown argument '--nope'" %{run} -o %t.o --nope
// RUN: %{fails} "unknown argument '-x'" %{run} -o %t.o -x
// RUN: %{fails} "expected a file, got none; - is standard input" bngrad-compile -o %t.o
// RUN: %{fails} "expected one file, got '%s' and '%t'" %{run} %t -o %t.o

// RUN: %{fails} "expected -o OUT, got none" %{run}
// RUN: %{fails} "-o: missing argument" %{run} -o
// RUN: %{fails} "expected one -o, got '%t.o' and '%t.s'" %{run} -o %t.o -o %t.s
// RUN: %{fails} "expected -o to end in .so, .o, .s, .ll, .ptx or .mlir, got '%t.exe'" %{run} -o %t.exe
// RUN: %{fails} "expected -o to end in ..., got 'so'" %{run} -o so
// RUN: %{fails} "expected -o to end in ..., got '-'" %{run} -o -
// RUN: %{fails} "expected -o to end in ..., got ''" %{run} -o ''
// RUN: %{fails} "expected --header to be a file, got ''" %{run} -o %t.o --header=
// RUN: %{fails} "expected one --header, got '%t.h' and '%t.hpp'" %{run} -o %t.o --header=%t.h --header=%t.hpp
// RUN: %{fails} "expected --header to be another file than -o, got '%t.o'" %{run} -o %t.o --header=%t.o
// RUN: rm -rf %t.d && mkdir %t.d && ln -s a.o %t.d/link.h && touch %t.d/a.o
// RUN: %{fails} "expected --header to be another file than -o, got '%t.d/link.h'" %{run} -o %t.d/a.o --header=%t.d/link.h
// RUN: %{fails} "expected --header to be another file than -o, got '%t.d/../%basename_t.tmp.d/a.o'" %{run} -o %t.d/a.o --header=%t.d/../%basename_t.tmp.d/a.o

// RUN: rm -rf %t && mkdir -p %t/folder.o && mkfifo %t/pipe.o
// RUN: %{fails} "%t/none/a.o: cannot write: No such file or directory" %{run} -o %t/none/a.o
// RUN: %{fails} "%s/a.o: cannot write: Not a directory" %{run} -o %s/a.o
// RUN: %{fails} "%t/folder.o: cannot write: Is a directory" %{run} -o %t/folder.o
// RUN: %{fails} "%t/pipe.o: cannot write: no regular file" %{run} -o %t/pipe.o
// RUN: cat %s > %t.d/input.mlir && ln -s %t.d/input.mlir %t/link.mlir
// RUN: %{fails} "%t.d/input.mlir: cannot write: it is the input" bngrad-compile %t.d/input.mlir -o %t.d/input.mlir
// RUN: %{fails} "%t/link.mlir: cannot write: it is the input" bngrad-compile %t.d/input.mlir -o %t/link.mlir
// RUN: %{fails} "%t.d/input.mlir: cannot write: it is the input" bngrad-compile %t.d/input.mlir -o %t/a.o --header=%t.d/input.mlir
// RUN: %{fails} "%t/none/a.h: cannot write: No such file or directory" %{run} -o %t/a.o --header=%t/none/a.h

// RUN: %{fails} "expected --target to be cpu or cuda, got 'gpu'" %{run} -o %t/a.o --target=gpu
// RUN: %{fails} "expected --target to be cpu or cuda, got 'gpu'" %{run} -o %t/a.o --target=gpu --chip=sm_90
// RUN: %{fails} "expected --target=cuda for a .ptx, got cpu" %{run} -o %t/a.ptx
// RUN: %{fails} "expected --target=cuda with --chip, got cpu" %{run} -o %t/a.o --chip=sm_90
// RUN: %{fails} "expected --target=cuda with --format, got cpu" %{run} -o %t/a.o --format=isa
// RUN: %{fails} "expected --target=cuda with --device-arguments, got cpu" %{run} -o %t/a.o --device-arguments
// RUN: %{fails} "expected --target=cuda with --format, got cpu" %{run} -o %t/a.o --format=maybe
// RUN: %{fails} "expected --target=cuda with --chip, got cpu" %{run} -o %t/a.o --chip=
// RUN: %{fails} "expected -o to end in .so, .o, .s, .ll, .ptx or .mlir, got '/dev/full'" %{run} -o /dev/full
// RUN: %{fails} "expected --target=cpu with --threads, got cuda" %{run} -o %t/a.o --target=cuda --threads=2
// RUN: %{fails} "--chip: expected chip to be some of sm_75, ..., got 'sm_52'" %{run} -o %t/a.o --target=cuda --chip=sm_52
// RUN: %{fails} "expected --target=cuda with --active-clusters, got cpu" %{run} -o %t/a.o --active-clusters=8:15:30
// RUN: %{fails} "--active-clusters: expected each size of clusters once, got 8 twice" \
// RUN:   %{run} -o %t/a.o --target=cuda --active-clusters=8:15:30,8:15:30
// RUN: %{fails} "--active-clusters: expected a size of clusters that is a power of 2 from 2 to 8 for the given chips, got '16:0:1'" \
// RUN:   %{run} -o %t/a.o --target=cuda --chip=sm_120 --active-clusters=16:0:1
// RUN: %{run} -o %t/a.o --target=cuda --chip=sm_120 --active-clusters=16:0:0
// RUN: %{fails} "--chip: expected chip to be some of sm_75, ..., got ''" %{run} -o %t/a.o --target=cuda --chip=sm_90,
// RUN: %{fails} "expected --format to be isa, bin or fatbin, got 'ptx'" %{run} -o %t/a.o --target=cuda --format=ptx
// RUN: %{fails} "expected --format=isa for a .ptx, got bin" %{run} -o %t/a.ptx --target=cuda --format=bin
// RUN: %{fails} "expected one --chip for a .ptx, got 'sm_80,sm_90'" %{run} -o %t/a.ptx --target=cuda --chip=sm_80,sm_90
// RUN: %{fails} "%s: expected one group of loops, as a .ptx has one module of kernels, got 0" %{run} -o %t/a.ptx --target=cuda
// RUN: %{fails} "%S/Inputs/gradients.mlir: expected one group ..., got ...: nchw_..., masked_..." bngrad-compile %S/Inputs/gradients.mlir -o %t/a.ptx --target=cuda

// RUN: %{fails} "--mcpu: expected native or a CPU that LLVM knows, such as this machine's ..., got 'pentium9'" %{run} -o %t/a.o --mcpu=pentium9
// RUN: %{fails} "expected --mcpu to be native or a CPU that LLVM knows, got ''" %{run} -o %t/a.o --mcpu=
// RUN: %{fails} "--mattr: expected + or - and a feature that LLVM knows, such as +avx2, got '+mmx9'" %{run} -o %t/a.o --mattr=+avx2,+mmx9
// RUN: %{fails} "--mattr: expected ..., got 'avx2'" %{run} -o %t/a.o --mattr=avx2
// RUN: %{fails} "--mattr: expected ..., got ''" %{run} -o %t/a.o --mattr=+avx2,
// RUN: %{fails} "expected --mattr to be one such as +avx2, got ''" %{run} -o %t/a.o --mattr=
// RUN: %{fails} "expected no --header with --packed, got '%t/a.h'" %{run} -o %t/a.o --packed --header=%t/a.h
// RUN: %{fails} "--mcpu: expected ..., got 'x86-64'" %{run} -o %t/a.o --mtriple=aarch64-linux-gnu --mcpu=x86-64
// RUN: %{fails} "--mcpu: expected a CPU of aarch64, got 'native', which is this machine's ..." %{run} -o %t/a.o --mtriple=aarch64-linux-gnu --mcpu=native
// RUN: %{fails} "--mtriple: expected one such as ..., got 'nope'" %{run} -o %t/a.o --mtriple=nope
// RUN: %{fails} "expected --mtriple to be one such as ..., got ''" %{run} -o %t/a.o --mtriple=
// LLVM has more machines than are tested here, and its x86_64 CPUs include 32-bit ones.
// DEFINE: %{value} =
// DEFINE: %{no-machine} = %{fails} "--mtriple: expected an x86_64 or aarch64 with pointers of 64 bits and ELF object files, such as ..., got '%{value}'" %{run} -o %t/a.o --mtriple=%{value}
// REDEFINE: %{value} = i386-linux-gnu
// RUN: %{no-machine}
// REDEFINE: %{value} = arm64-apple-darwin
// RUN: %{no-machine}
// REDEFINE: %{value} = bpf
// RUN: %{no-machine}
// REDEFINE: %{value} = nvptx64
// RUN: %{no-machine}
// REDEFINE: %{value} = amdgcn-amd-amdhsa
// RUN: %{no-machine}
// REDEFINE: %{value} = riscv64-linux-gnu
// RUN: %{no-machine}
// REDEFINE: %{value} = spirv64
// RUN: %{no-machine}
// REDEFINE: %{value} = wasm64
// RUN: %{no-machine}
// REDEFINE: %{value} = systemz
// RUN: %{no-machine}
// REDEFINE: %{value} = aarch64_be-linux-gnu
// RUN: %{no-machine}
// REDEFINE: %{value} = x86_64-linux-gnux32
// RUN: %{no-machine}
// REDEFINE: %{value} = aarch64-linux-gnu_ilp32
// RUN: %{no-machine}
// REDEFINE: %{value} = x86_64-pc-windows-elf
// RUN: %{no-machine}
// DEFINE: %{no-cpu} = %{fails} "--mcpu: expected a CPU of 64 bits, such as x86-64, got '%{value}'" %{run} -o %t/a.o --mtriple=x86_64-linux-gnu --mcpu=%{value}
// REDEFINE: %{value} = i386
// RUN: %{no-cpu}
// REDEFINE: %{value} = pentium4
// RUN: %{no-cpu}
// REDEFINE: %{value} = yonah
// RUN: %{no-cpu}
// RUN: %{fails} "expected -o to end in .o, .s, .ll or .mlir with --mtriple, got '%t/a.so'" %{run} -o %t/a.so --mtriple=aarch64-linux-gnu

// DEFINE: %{no-count} = %{fails} "expected --threads to be a whole number from 1 to 1024 or caller, got '%{value}'" %{run} -o %t/a.o --threads=%{value}
// REDEFINE: %{value} =
// RUN: %{no-count}
// REDEFINE: %{value} = 0
// RUN: %{no-count}
// REDEFINE: %{value} = 1025
// RUN: %{no-count}
// REDEFINE: %{value} = callers
// RUN: %{no-count}
// RUN: %{fails} "--schedule: expected an attribute such as #bngrad.schedule<loops>, got 'loops': expected attribute value" %{run} -o %t/a.o --schedule=loops
// RUN: %{fails} "--schedule: expected an attribute such as #bngrad.schedule<loops>, got '': expected attribute value" %{run} -o %t/a.o --schedule=
// Vectors of this length take minutes to compile.
// RUN: %{fails} "--schedule: ...: expected vector_bits to be a power of 2 in [64, 2048], got 65536" %{run} -o %t/a.o --schedule='#bngrad.schedule<tiles, vector_bits = 65536>'
// RUN: bngrad-compile %s -o %t/a.mlir --schedule='#bngrad.schedule<loops>'

// Without a linker; and with one that fails.
// RUN: mkdir %t/path && printf '#!/bin/sh\necho cannot link today >&2; echo more >&2; exit 3\n' > %t/path/cc && chmod +x %t/path/cc
// RUN: %{fails} "expected clang-22, clang, cc, gcc, ld.lld-22, ld.lld or ld on PATH to link a .so, got none" env PATH=%t/folder.o bngrad-compile %s -o %t/a.so
// RUN: %{fails} "%t/a.so: linking with %t/path/cc failed: cannot link today" env PATH=%t/path bngrad-compile %s -o %t/a.so

// A failure leaves no new files and keeps existing ones.
// RUN: ls %t | FileCheck %s --check-prefix=LEFT
// LEFT: a.mlir
// LEFT-NEXT: folder.o
// LEFT-NEXT: link.mlir
// LEFT-NEXT: path
// LEFT-NEXT: pipe.o
// LEFT-NOT: {{.}}
// RUN: echo old > %t/old.o && not bngrad-compile %s -o %t/old.o --header=%t/none/a.h && grep old %t/old.o

// Temporary names do not restrict the names of outputs.
// RUN: mkdir %t/100%% && bngrad-compile %s -o %t/100%%/a%%.so && ls %t/100%% | FileCheck %s --check-prefix=PERCENT
// PERCENT: a%.so
// PERCENT-NOT: {{.}}

// All errors of the command line at once.
// RUN: not bngrad-compile --nope -o a.exe --target=gpu --threads=0 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: error: unknown argument '--nope'
// ALL-NEXT: error: expected a file
// ALL-NEXT: error: expected -o to end in
// ALL-NEXT: error: expected --target
// ALL-NEXT: error: expected --threads{{.*}}
// ALL-NOT: {{.}}

// RUN: bngrad-compile --help | FileCheck %s --check-prefix=HELP
// HELP: USAGE: bngrad-compile FILE|- -o OUT [options]
// HELP-DAG: --header=OUT.h
// HELP-DAG: --mcpu=CPU
// HELP: .so    shared object
// HELP-NEXT: .o     object file; link it with -lm

func.func @negated(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = arith.negf %a : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
