"""The libraries that BNGrad is compared with, including the hand-written kernel."""

import ctypes
import os
import pathlib
import sys

import native


class Peer:
    """One library; `absent` is the reason why it cannot be measured, or None.
    `variants` has the values of peerCreate's `variant` by the name of the contender;
    by default there is one, of the library's name."""

    def __init__(self, name, title, foreign_threads=False, variants=None):
        self.name = name
        self.title = title
        self.foreign_threads = foreign_threads
        self.variants = variants or {name: 0}
        self.absent = None
        self.version = ""
        self.library = None

    def load(self, path):
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            self.absent = "does not load: " + str(error)
            return
        self.library.peerCreate.restype = ctypes.c_void_p
        for name in ("peerRun", "peerRunInto", "peerDestroy"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p]
            getattr(self.library, name).restype = None
        text = ctypes.create_string_buffer(200)
        self.library.peerVersion(text, ctypes.c_int64(200))
        self.version = text.value.decode()

    def create(self, problem, variant):
        """The state of one problem and None, or None and the error."""
        error = ctypes.create_string_buffer(300)
        state = self.library.peerCreate(
            ctypes.byref(problem), variant, error, ctypes.c_int64(300)
        )
        return state, None if state else error.value.decode()


def _build(peer, folder, source, flags):
    # Peers may share a source file: one output each.
    path = native.library_path(folder, peer.name)
    peer.absent = native.build(source, path, *flags)
    if not peer.absent:
        peer.load(path)
    return peer


def missing(folder, wheel):
    """The reason why a wheel is missing, as scripts/bench.sh recorded it."""
    reason = pathlib.Path(folder) / (wheel + ".absent")
    if reason.exists():
        return "not installed: " + reason.read_text().strip()
    return f"no {wheel} wheel in the Python environment"


# The schedules of the walked floor, as in native/Walk.cpp.
WALKS = {"rows": 0, "channels": 1, "tiles": 2, "split": 3}
# Walked floors with the data of a neighbour, and whether the sums depend on these.
FUSED_WALKS = {"walk-sums": True, "walk-elements": False}


def walk(folder):
    """The memory accesses of BNGrad's schedule alone."""
    peer = Peer("walk", "walked floor")
    return _build(peer, folder, "Walk.cpp", ["-std=c++17", "-fopenmp=libomp"])


def hand(folder):
    """With the promises of docs/numerics.md, and without them."""
    peer = Peer("hand", "by hand", variants={"hand": 1, "hand-bare": 0})
    return _build(peer, folder, "Hand.cpp", ["-std=c++17", "-fopenmp=libomp"])


def ready(folder, tools):
    """The C library of the build whose tools are in the folder `tools`."""
    peer = Peer("ready", "BNGrad's C library")
    library = pathlib.Path(tools).resolve().parent / "lib" / "libBNGradRuntime.so"
    include = pathlib.Path(__file__).resolve().parent.parent / "include"
    return _build(
        peer,
        folder,
        "Ready.cpp",
        ["-std=c++17", f"-I{include}", str(library), f"-Wl,-rpath,{library.parent}"],
    )


def onednn(folder):
    """The newest release on PyPI, with TBB threads."""
    peer = Peer("onednn", "oneDNN", foreign_threads=True)
    prefix = pathlib.Path(sys.prefix)
    if not (prefix / "lib/libdnnl.so.3").exists():
        peer.absent = missing(folder, "oneDNN")
        return peer
    # This OpenCL driver provides its CPU device.
    os.environ.setdefault("OCL_ICD_FILENAMES", str(prefix / "lib/libintelocl.so"))
    return _build(
        peer,
        folder,
        "OneDNN.cpp",
        [
            "-std=c++17",
            f"-I{prefix}/include",
            f"{prefix}/lib/libdnnl.so.3",
            f"-Wl,--disable-new-dtags,-rpath,{prefix}/lib",
            "-Wl,--allow-shlib-undefined",
        ],
    )


def onednn_debian(folder):
    peer = Peer("onednn-debian", "oneDNN, Debian's")
    if not pathlib.Path("/usr/include/oneapi/dnnl/dnnl.hpp").exists():
        peer.absent = "libdnnl-dev is not installed"
        return peer
    return _build(peer, folder, "OneDNN.cpp", ["-std=c++17", "-ldnnl"])


def torch(folder):
    """libtorch_cpu of the wheel, which needs no GPU. With kept memory, and as is, with
    page faults."""
    peer = Peer("torch", "PyTorch", variants={"torch": 1, "torch-default": 0})
    site = pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/torch")
    root = next(site, None)
    if root is None:
        peer.absent = missing(folder, "PyTorch")
        return peer
    return _build(
        peer,
        folder,
        "Torch.cpp",
        [
            "-std=c++20",
            "-w",
            f"-I{root}/include",
            f"-I{root}/include/torch/csrc/api/include",
            f"-L{root}/lib",
            "-l:libtorch_cpu.so",
            "-l:libc10.so",
            f"-Wl,-rpath,{root}/lib",
            "-Wl,--allow-shlib-undefined",
        ],
    )


def load(folder):
    """All peers, including absent ones. Threads other than OpenMP's start
    first: OpenMP binds this thread to one core, and later threads would
    inherit that."""
    peers = [onednn(folder)]
    if not peers[0].absent:
        _start_threads(peers[0])
    peers += [walk(folder), hand(folder), torch(folder), onednn_debian(folder)]
    return peers


def _start_threads(peer):
    import numpy

    data = [numpy.zeros((8, 64, 32, 32), numpy.float32) for _ in range(3)]
    channel = [numpy.ones(64, numpy.float32) for _ in range(5)]
    problem = native.Problem(
        4,
        1,
        0,
        0,
        8,
        64,
        32,
        32,
        32 << 20,
        1e-5,
        data[0].ctypes.data,
        data[1].ctypes.data,
        *[array.ctypes.data for array in channel[:3]],
        data[2].ctypes.data,
        channel[3].ctypes.data,
        channel[4].ctypes.data,
    )
    state, peer.absent = peer.create(problem, 0)
    if state:
        for _ in range(3):
            peer.library.peerRun(state)
        peer.library.peerDestroy(state)
