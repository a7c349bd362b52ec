// Errors name bad options. If the data do not fit one pass, two passes run, with a remark.

// DEFINE: %{options} =
// DEFINE: %{fail} = not bngrad-opt %s --bngrad-cuda-pipeline="%{options}" -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="error:"

// REDEFINE: %{options} = chip=sm_42
// RUN: %{fail} --check-prefix=UNKNOWN
// UNKNOWN: error: expected chip to be some of sm_75, {{.*}}, got 'sm_42'
// REDEFINE: %{options} = chip=sm_70
// RUN: %{fail} --check-prefix=OLD
// OLD: error: expected chip to be some of sm_75, {{.*}}, got 'sm_70'
// REDEFINE: %{options} = chip=sm_90,
// RUN: %{fail} --check-prefix=EMPTY
// EMPTY: error: expected chip to be some of sm_75, {{.*}}, got ''

// REDEFINE: %{options} = schedule=#bngrad.schedule<tiles>
// RUN: %{fail} --check-prefix=CPU-KIND
// CPU-KIND: error: expected the schedule of a GPU, or loops, as a chip is given, got #bngrad.schedule<tiles>
// REDEFINE: %{options} = active-clusters=8:15
// RUN: %{fail} --check-prefix=ACTIVE
// ACTIVE: error: option 'active-clusters': expected SIZE:ONE:TWO, the clusters of SIZE blocks that run at once with one block and with two on a multiprocessor, got '8:15'
// RUN: not bngrad-opt %s --bngrad-group=active-clusters=8:15:30 -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="error:" --check-prefix=CLUSTERS-OF-CPU
// CLUSTERS-OF-CPU: error: option 'active-clusters': expected a chip, got none
// REDEFINE: %{options} = opt-level=4
// RUN: %{fail} --check-prefix=OPT-LEVEL
// OPT-LEVEL: error: expected opt-level to be in [0, 3], got 4

// DEFINE: %{features} = %{fail} --implicit-check-not=warning --check-prefix=FEATURES -DGOT=
// REDEFINE: %{options} = features=+foo
// RUN: %{features}+foo
// FEATURES: error: expected features for sm_90 to be one of +ptx80, +ptx81, {{.*}}, +ptx90, got '[[GOT]]'
// REDEFINE: %{options} = features=+ptx78
// RUN: %{features}+ptx78
// REDEFINE: %{options} = features=+ptx79
// RUN: %{features}+ptx79
// REDEFINE: %{options} = features=+ptx80,+foo
// RUN: %{features}+ptx80,+foo
// REDEFINE: %{options} = features=ptx80
// RUN: %{features}ptx80
// REDEFINE: %{options} = features=+ptx
// RUN: %{features}+ptx
// REDEFINE: %{options} = chip=sm_80,sm_100,sm_90 features=+ptx80
// RUN: %{fail} --check-prefix=NEWEST
// NEWEST: error: expected features for sm_100 to be one of +ptx86, {{.*}}, got '+ptx80'

// The oldest and the newest allowed version for each chip.
// DEFINE: %{chip} =
// DEFINE: %{version} =
// DEFINE: %{take} = bngrad-opt %s --bngrad-cuda-pipeline="chip=%{chip} features=+ptx%{version}" | FileCheck %s --check-prefix=VERSION -DVERSION=%{version}
// VERSION: features = "+ptx[[VERSION]]"
// REDEFINE: %{chip} = sm_90
// REDEFINE: %{version} = 90
// RUN: %{take}
// REDEFINE: %{version} = 80
// RUN: %{take}
// REDEFINE: %{chip} = sm_75
// REDEFINE: %{version} = 63
// RUN: %{take}
// REDEFINE: %{chip} = sm_80
// REDEFINE: %{version} = 70
// RUN: %{take}
// REDEFINE: %{chip} = sm_86
// REDEFINE: %{version} = 71
// RUN: %{take}
// REDEFINE: %{chip} = sm_87
// REDEFINE: %{version} = 74
// RUN: %{take}
// REDEFINE: %{chip} = sm_89
// REDEFINE: %{version} = 78
// RUN: %{take}
// REDEFINE: %{chip} = sm_90a
// REDEFINE: %{version} = 80
// RUN: %{take}
// REDEFINE: %{chip} = sm_100
// REDEFINE: %{version} = 86
// RUN: %{take}
// REDEFINE: %{chip} = sm_100a
// REDEFINE: %{version} = 86
// RUN: %{take}
// REDEFINE: %{chip} = sm_103
// REDEFINE: %{version} = 88
// RUN: %{take}
// REDEFINE: %{chip} = sm_120
// REDEFINE: %{version} = 87
// RUN: %{take}
// REDEFINE: %{chip} = sm_121
// REDEFINE: %{version} = 88
// RUN: %{take}

// REDEFINE: %{options} = chip=sm_90 schedule={#bngrad.schedule<two_pass, block_threads = 100, block_accesses = 1024, sum_blocks = 16>}
// RUN: %{fail} --check-prefix=THREADS
// THREADS: error: option 'schedule': expected an attribute such as #bngrad.schedule<loops>, got '#bngrad.schedule<two_pass, block_threads = 100, block_accesses = 1024, sum_blocks = 16>': expected block_threads to be a multiple of 32 in [32, 1024], got 100
// REDEFINE: %{options} = chip=sm_80 schedule={#bngrad.schedule<one_pass, block_threads = 64, block_channels = 1024>}
// RUN: %{fail} --check-prefix=CLUSTERS
// CLUSTERS: error: expected schedule 'one_pass' on sm_90 or newer, got sm_80

// DEFINE: %{schedule} =
// DEFINE: %{two} = bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_90 stop-after=apply schedule={#bngrad.schedule<%{schedule}>}" \
// DEFINE:   --remark-policy=all --remark-format=emitRemark --remarks-filter-missed=bngrad-apply-schedule 2>&1 | FileCheck %s

// REDEFINE: %{schedule} = one_pass, block_threads = 64, access_bits = 128, block_channels = 3
// RUN: %{two} --check-prefixes=DIVIDE,TWO
// DIVIDE: two passes instead of one: expected block_channels to divide the number of channels, 16, got 3
// REDEFINE: %{schedule} = one_pass, block_threads = 64, access_bits = 128, block_channels = 32
// RUN: %{two} --check-prefixes=MANY,TWO
// MANY: two passes instead of one: expected block_channels to divide the number of channels, 16, got 32
// REDEFINE: %{schedule} = one_pass, block_threads = 64, access_bits = 128, block_channels = 16
// RUN: not %{two} --check-prefix=BYTES
// BYTES: error: 'linalg.generic' op expected tiles and sums of a block of at most 231424 bytes of shared memory, got {{[0-9]+}}
// REDEFINE: %{schedule} = one_pass, block_threads = 64, access_bits = 128, block_channels = 1, cluster_blocks = 2
// RUN: %{two} --check-prefix=CLUSTER
// CLUSTER: two passes instead of one: expected cluster_blocks to be 1, as channels are one row each, got 2
// Enough for a block of sm_90, but not of sm_120.
// REDEFINE: %{schedule} = one_pass, block_threads = 64, block_channels = 4
// RUN: not bngrad-opt %s --bngrad-cuda-pipeline="chip=sm_120 stop-after=apply schedule={#bngrad.schedule<%{schedule}>}" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SMALL
// SMALL: error: 'linalg.generic' op expected tiles and sums of a block of at most 100352 bytes of shared memory, got {{[0-9]+}}

// TWO-COUNT-3: gpu.launch

// Merged into three loops.
!t = tensor<512x16x2x4xf32>
!p = tensor<16xf32>
func.func @f(%dy: !t, %x: !t, %mean: !p, %variance: !p) -> (!t, !p) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !t) input(%x : !t) mean(%mean : !p) variance(%variance : !p) : !t, !p, !p
  return %0#0, %0#1 : !t, !p
}

!rows = tensor<4x64xf32>
!few = tensor<4xf32>
func.func @one_row_each(%dy: !rows, %x: !rows, %mean: !few, %variance: !few) -> !rows {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !rows) input(%x : !rows) mean(%mean : !few) variance(%variance : !few) {feature_dims = array<i64: 0>} : !rows, !few, !few
  return %0#0 : !rows
}
