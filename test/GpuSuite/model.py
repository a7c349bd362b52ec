"""model.py BENCH/GPU: the model of GPU times on listings and launches made by hand."""

import dataclasses
import sys

sys.path.insert(0, sys.argv[1])

import devices
import model
import sass

REPORT = """ptxas info    : Compiling entry function 'apply' for 'sm_90'
ptxas info    : Function properties for apply
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 42 registers, used 0 barriers
ptxas info    : Compiling entry function 'reduce' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 64 bytes smem
"""
# Waits for a barrier, then adds 32 bytes of each of two tensors in each trip of an
# unrolled loop, and 4 bytes in one for the rest. Code after the exit is none of it.
LISTING = """.text.reduce:
.L_x_1:
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ], R4 ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   LDG.E R3, desc[UR4][R8.64] ;
.L_x_2:
        /*0030*/                   LDG.E.128 R8, desc[UR4][R20.64] ;
        /*0040*/                   LDG.E.128 R12, desc[UR4][R22.64] ;
        /*0050*/                   LDG.E.128 R28, desc[UR4][R24.64] ;
        /*0060*/                   FADD R0, R0, R9 ;
        /*0070*/                   LDG.E.128 R16, desc[UR4][R26.64] ;
        /*0080*/                   FADD R0, R0, R13 ;
        /*0090*/                   FADD R0, R0, R17 ;
        /*00a0*/               @P0 BRA `(.L_x_2) ;
.L_x_3:
        /*00b0*/                   LDG.E.64 R8, desc[UR4][R20.64] ;
        /*00c0*/                   FADD R0, R0, R9 ;
        /*00d0*/               @P0 BRA `(.L_x_3) ;
        /*00e0*/                   STG.E desc[UR4][R6.64], R0 ;
        /*00f0*/                   EXIT ;
.L_x_4:
        /*0100*/                   BRA `(.L_x_4);
//--------------------- .nv.shared.reduce
        /*0000*/                   NOP ;
"""
# Both passes read 16 bytes in each trip of a loop; 32 and 16 come before it. Between them are the channels.
PEELED = """.text.one_pass:
        /*0000*/                   LDS.128 R8, [R0] ;
        /*0010*/                   LDS.128 R12, [R0+0x10] ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_1:
        /*0030*/                   LDS.128 R8, [R1] ;
        /*0040*/                   FADD R0, R0, R9 ;
        /*0050*/               @P0 BRA `(.L_x_1) ;
        /*0060*/                   UCGABAR_WAIT ;
        /*0070*/                   FADD R0, R0, R9 ;
        /*0080*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0090*/                   LDS.128 R8, [R0] ;
        /*00a0*/                   STG.E.128 desc[UR4][R6.64], R8 ;
        /*00b0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00c0*/                   NOP ;
.L_x_2:
        /*00d0*/                   LDS.128 R8, [R1] ;
        /*00e0*/                   STG.E.128 desc[UR4][R6.64], R8 ;
        /*00f0*/               @P0 BRA `(.L_x_2) ;
        /*0100*/                   EXIT ;
"""
# A loop that waits for each stage of a tile; its wait is a loop that loads nothing.
STAGED = """.text.one_pass:
        /*0000*/                   SYNCS.EXCH.64 URZ, [UR6], UR4 ;
        /*0010*/                   SYNCS.EXCH.64 URZ, [UR6+0x8], UR4 ;
.L_x_1:
        /*0020*/                   MOV R4, RZ ;
.L_x_2:
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ], R4 ;
        /*0040*/              @!P0 BRA `(.L_x_2) ;
        /*0050*/                   LDS.128 R8, [R1] ;
        /*0060*/               @P0 BRA `(.L_x_1) ;
        /*0070*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0080*/                   FADD R0, R0, R9 ;
        /*0090*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00a0*/                   STG.E.128 desc[UR4][R6.64], R8 ;
        /*00b0*/                   EXIT ;
"""
IR = """
 %1 = gpu.launch async [%0] blocks(%a, %b, %c) in (%d = %c1088, %e = %c1, %f = %c1) threads(%g, %h, %i) in (%j = %c256, %k = %c1, %l = %c1) module(@m) function(@reduce) workgroup(%m : memref<8xf32>) {
 %2 = gpu.launch async [%0] blocks(%a, %b, %c) in (%d = %c7, %e = %c1, %f = %c1) threads(%g, %h, %i) in (%j = %c64, %k = %c1, %l = %c1) module(@m) function(@reduce) {
"""
ONE_PASS = """
 %1 = gpu.launch async [%0] clusters(%a, %b, %c) in (%d = %c8, %e = %c1, %f = %c1) blocks(%a, %b, %c) in (%d = %c2048, %e = %c1, %f = %c1) threads(%g, %h, %i) in (%j = %c256, %k = %c1, %l = %c1) dynamic_shared_memory_size %c100352_i32 module(@m) function(@one_pass) {
"""
H200 = model.DEVICES["H200"]
failures = []


def check(name, actual, expected):
    if actual != expected:
        failures.append(f"{name}: expected {expected}, got {actual}")


usages = sass.read_usage(REPORT)
check("usage", usages, {"apply": sass.Usage(42, 0, 12), "reduce": sass.Usage(48, 64, 0)})
kernel = sass.read_kernels(LISTING)["reduce"]
check("loops", kernel.loops, [(0x30, 0xa0), (0xb0, 0xd0)])
check("outside", [hex(i.address) for i in kernel.outside()], ["0x0", "0x10", "0x20", "0xe0", "0xf0"])
check("data of a trip", kernel.data_bytes(kernel.body(kernel.loops[0]), "global load"), 64)
check("parameters are no data", kernel.data_bytes(kernel.outside(), "global load"), 0)
# Three loads before the first use; the fourth follows the use of one.
check("bytes in flight", sass.bytes_in_flight(kernel.body(kernel.loops[0])), 48)
# 5 outside, and 10 trips of 8.
check("instructions", model.count_instructions(kernel, 640), (0, 0, 5 + 10 * 8))
peeled, staged = (sass.read_kernels(listing)["one_pass"] for listing in (PEELED, STAGED))
check("the second pass begins after the last barrier", model.split_passes(peeled), (0x60, 0x80))
check("the only pass begins at the first instruction", model.split_passes(kernel), (0, 0))
# 11 outside, 3 of them in the first pass and 2 for the channels. Of 64 bytes, 32 are added before the loop of 3, and 16
# stored before the loop of 3.
check("instructions before loops", model.count_instructions(peeled, 64), (3 + 2 * 3, 2, 6 + 3 * 3))
check("no trip is left", model.count_instructions(peeled, 16), (3, 2, 6))
check("mbarriers", model.count_stages(staged), 2)
check("no mbarriers", model.count_stages(peeled), 1)
check("a loop that waits and loads", staged.loops, [(0x20, 0x60)])

launches = model.find_launches(IR + IR)
check("launches", launches, [model.Launch("reduce", 1088, 256, 1, 0)])
check("one pass alone", model.find_launches(IR + ONE_PASS), [model.Launch("one_pass", 2048, 256, 8, 100352)])


def count_blocks(registers, shared, threads=256):
    return model.count_blocks(H200, model.Launch("k", 1, threads, 1, shared), sass.Usage(registers, 0, 0))


# By registers: 48 x 32 are 6 units of 256, 8 warps take 12288 of 65536.
check("blocks by registers", count_blocks(48, 0), 5)
check("blocks by threads", count_blocks(32, 0), 8)
check("blocks by shared memory", count_blocks(32, 100352), 2)
check("blocks by their number", count_blocks(16, 0, 32), 32)

# 2 of 3 processing clusters of 5 multiprocessors have room for two clusters of 4 blocks each, the third for one.
parted = dataclasses.replace(H200, multiprocessors=13, processing_clusters=(5, 5, 3))
check("slots of clusters", model.count_slots(parted, 4, 2), 20)
check("slots of blocks", model.count_slots(parted, 1, 2), 26)
for each in model.with_layouts(H200):
    check("all multiprocessors are in a processing cluster", sum(each.processing_clusters), H200.multiprocessors)
# 16 blocks run in a processing cluster of 14 if a multiprocessor has two, not if it has one.
check("slots by layout", [[model.count_slots(each, *of) for of in ((8, 1), (16, 1), (16, 2))]
                          for each in model.with_layouts(H200)], [[128, 128, 256], [120, 112, 240]])
check("a device without processing clusters", model.with_layouts(model.DEVICES["A100"]), [model.DEVICES["A100"]])


def find_device(gpu, multiprocessors, memory_clock, bus_bits):
    return devices.find_device({"gpu": gpu, "multiprocessors": multiprocessors, "memory_clock_mhz": memory_clock,
                                "bus_bits": bus_bits})


# By data sheets: SXM, PCIe and NVL, which have one name, but not one memory; and of unknown memory.
check("devices", [find_device(*of) for of in (
    ("NVIDIA H100 80GB HBM3", 132, 2619, 5120), ("NVIDIA H100 PCIe", 114, 1593, 5120), ("NVIDIA H100 NVL", 132, 2619, 6016),
    ("NVIDIA H100 80GB HBM3", 132, 0, 0), ("NVIDIA H100 PCIe", 114, 0, 0), ("NVIDIA H200", 132, 3201, 6144), ("none", 132, 3201, 6144))],
      [model.DEVICES["H100"], None, None, model.DEVICES["H100"], None, H200, None])
check("an unknown device", devices.find_device({"gpu": "unknown GPU"}), None)

# A last wave of a tenth has a tenth of the loads in flight.
check("one wave has no tail", model.find_tail(0.7, 3, False), 1)
check("the rest fills memory", model.find_tail(1.5, 2, False), 1)
check("the rest does not fill it", round(model.find_tail(2.1, 4, False), 6), round((2 + 0.1 * model.REACHED / 0.4) / 2.1, 6))
check("whole waves", model.find_tail(3, 4, False), 1)
check("phases of two waves", model.find_tail(1.25, 4, True), 2 / 1.25)
check("phases of several", model.find_tail(4.1, 4, True), 1 + 0.5 / 4.1)
check("phases of nearly five", model.find_tail(4.9, 4, True), 5 / 4.9)

tensor = 100 << 20
traffic = model.find_traffic(H200, [dataclasses.replace(launches[0], kernel=name)
                                    for name in ("reduce", "finish", "apply")], tensor)
check("traffic", traffic, {"reduce": model.Traffic(2 * tensor, 0), "finish": model.Traffic(0, 0),
                           "apply": model.Traffic(2 * tensor, tensor)})
kept = int(model.L2_KEPT * H200.l2_bytes)
backwards = model.find_traffic(H200, [dataclasses.replace(launches[0], kernel="apply")], tensor, ends_together=True)
check("the end of the data stays in the cache", backwards["apply"],
      model.Traffic(2 * tensor - kept, tensor, kept))
small = model.find_traffic(H200, [dataclasses.replace(launches[0], kernel="apply")], 4 << 20)
check("small data stay in the cache", small["apply"], model.Traffic(0, 4 << 20, 8 << 20))


def estimate(device=H200, launch=launches[0], **traffic_of):
    return model.estimate(device, launch, usages["reduce"], kernel,
                          model.Traffic(**{"read": 2 * tensor, "written": 0} | traffic_of), tensor // 4)


memory = estimate()
check("bound by memory", memory.bound, "memory")
floor = 2 * tensor / (4800e3 * model.REACHED)
check("time", round(memory.microseconds - model.RAMP, 6), round(floor, 6))
# Each layout has its limit; small shapes have none.
for sizes, ratios, count in (((32, 64, 112, 112), (1.29, 1.55), 0), ((32, 64, 112, 112), (1.29, 1.57), 1),
                             ((32, 64, 112, 112), (1.31, 1.57), 2), ((2, 3, 4, 4), (9, 9), 0)):
    item = model.items.Item(sizes, "nchw", "f32")
    passes = 3 * item.case.tensor_bytes / (H200.dram * 1e3 * model.REACHED)
    one_pass = [dataclasses.replace(memory, launch=model.find_launches(ONE_PASS)[0])]
    check(f"limits of {item.name}", len(model.find_broken(H200, item, one_pass, [ratio * passes for ratio in ratios])), count)

few = estimate(launch=dataclasses.replace(launches[0], blocks=66))
check("few blocks have too few loads in flight", few.bound, "loads in flight")
slow = estimate(dataclasses.replace(H200, clock=0.02))
check("bound by instructions", slow.bound, "issue of instructions")
tile = dataclasses.replace(launches[0], kernel="one_pass", shared_bytes=200 << 10, cluster=8)
alone, pair = (estimate(launch=dataclasses.replace(tile, shared_bytes=size << 10), written=tensor)
               for size in (200, 100))
check("one block", alone.bound, "phases of one block follow each other")
check("two blocks overlap", pair.bound, "memory, 4.25 waves")
check("two are faster", pair.microseconds < alone.microseconds, True)
# In one wave, half of the sums wait for the second of two stages.
one_wave = model.Launch("one_pass", 132, 256, 8, 100 << 10)
found = model.estimate(H200, one_wave, usages["reduce"], staged, model.Traffic(2 * tensor, tensor), tensor // 4)
bandwidth, issue = 4800e3 * model.REACHED, 132 * 4 * 1.75e3 * 0.4
sums = 132 * 8 * (2 + 5 * 2 * tensor / (132 * 256) / 16) / issue
load, store = 2 * tensor / bandwidth, tensor / bandwidth
channels = model.CLUSTER_BARRIER + 2 * model.STALL / 1.75e3  # a barrier and an addition in one warp
expected = model.RAMP + max(load, sums) + min(load, sums) / 2 + store + channels
check("stages overlap", round(found.microseconds, 6), round(expected, 6))
# A load between the sums and the per-channel values is waited for.
late_listing = STAGED.replace("/*0080*/                   FADD R0, R0, R9", "/*0080*/                   LDG.E R0, desc[UR4][R8.64]")
late = sass.read_kernels(late_listing)["one_pass"]
check("loads before the values", [model.loads_late(each) for each in (staged, late)], [False, True])
found = model.estimate(H200, one_wave, usages["reduce"], late, model.Traffic(2 * tensor, tensor), tensor // 4)
check("a late load", round(found.microseconds, 6), round(expected + model.LATENCY, 6))
# 264 blocks of 48 registers run at once, of which a multiprocessor holds 5; 1088 do not.
check("blocks at once", [model.runs_at_once(H200, dataclasses.replace(launches[0], blocks=blocks), usages["reduce"])
                         for blocks in (264, 660, 661, 1088)], [True, True, False, False])
for line in failures:
    print("FAILED:", line)
print(f"model: {len(failures)} failed")
