"""The GPUs that the model and the suite know: rates, sizes, and where blocks of clusters run."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU: rates in 10^9 per second, times in microseconds, sizes in bytes."""

    name: str
    chip: str
    multiprocessors: int
    clock: float
    dram: float
    l2: float
    l2_bytes: int
    shared_bytes: int
    # Multiprocessors of each processing cluster, in which the blocks of a cluster are.
    processing_clusters: tuple[int, ...] = ()
    threads: int = 2048
    blocks: int = 32
    registers: int = 65536
    schedulers: int = 4


# How 132 multiprocessors may be distributed over 8 processing clusters of up to 18. Both are assumed; the driver
# tells how many clusters run at once (device.py, count_clusters), which differs between them.
LAYOUTS = ((18, 18, 16, 16, 16, 16, 16, 16), (18, 18, 18, 16, 16, 16, 16, 14))
# From data sheets; `l2` from published microbenchmarks. The H100 is that of 80 GB with HBM3 (SXM), the others of that name
# have HBM2e (PCIe) or more of it (NVL).
DEVICES = {
    device.name: device for device in (
        Device("H200", "sm_90", 132, 1.75, 4800, 7500, 50 << 20, 228 << 10, LAYOUTS[0]),
        Device("H100", "sm_90", 132, 1.75, 3350, 7500, 50 << 20, 228 << 10, LAYOUTS[0]),
        Device("A100", "sm_80", 108, 1.41, 1555, 5000, 40 << 20, 164 << 10),
    )
}


# A device is another one if its memory has another bandwidth, by its clock and width.
BANDWIDTH_TOLERANCE = 0.05


def find_device(machine):
    """The device of a machine (cuda_driver.Driver.describe), or None. Its name is a word of the machine's, such as "NVIDIA H100
    80GB HBM3", with as many multiprocessors and the same memory: there are others of that name."""
    device = next((DEVICES[word] for word in machine.get("gpu", "").split() if word in DEVICES), None)
    if not device or machine["multiprocessors"] != device.multiprocessors:
        return None
    # In GB/s, of two transfers in a cycle; 0 where the driver does not know.
    bandwidth = 2 * machine["memory_clock_mhz"] * machine.get("bus_bits", 0) / 8 / 1e3
    is_other = bandwidth and abs(bandwidth / device.dram - 1) > BANDWIDTH_TOLERANCE
    return None if is_other else device


def with_layouts(device):
    """The device with each of the distributions of its multiprocessors."""
    if not device.processing_clusters:
        return [device]
    return [dataclasses.replace(device, processing_clusters=layout) for layout in LAYOUTS]


def count_slots(device, cluster, resident):
    """Blocks in clusters of `cluster` that run at once, `resident` of them on a multiprocessor."""
    if cluster == 1:
        return device.multiprocessors * resident
    return sum(each * resident // cluster for each in device.processing_clusters) * cluster
