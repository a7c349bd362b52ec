"""Upstream MLIR's own passes, from the linalg of a gradient to a shared object.

Of the recipes that were tried, this is the fastest. Loops that `--convert-linalg-to-loops` makes of
whole tensors keep the sums in memory: over rows of one channel, each addition waits for the store
before it, and LLVM's vectorizer does not help (12 times as long for 32x64x56x56 NCHW f32). So a
transform script tiles the linalg on tensors first:

* Sums: NCHW takes a share of the channels on each thread, then one channel at a time, and keeps a
  vector as long as a row of partial sums (`tile_reduction_using_for`). NHWC takes a share of the
  images on each thread with sums of its own (`tile_reduction_using_forall`), then up to 64 channels
  at a time.
* grad_input: a share of the images on each thread, in vectors of the same lengths.
* `hoist_loop_invariant_subsets` moves partial sums into registers.

The rest is the usual way: one-shot bufferization into arguments of the caller, OpenMP, LLVM. The
linalg has one op over all elements, so `--linalg-fuse-elementwise-ops` has nothing to fuse. Fusion
of the sums into the loop over channels of grad_input (`structured.fuse`, `fuse_into_containing_op`)
computes the sums twice, because the function also returns them.
"""

import instruction_sets

OPT, TRANSLATE, CLANG = "mlir-opt-22", "mlir-translate-22", "clang-22"
TOOLS = (OPT, TRANSLATE, CLANG)
# Elements up to which one thread takes less time than several need to begin.
FEW_ELEMENTS = 1 << 14
MOST_LANES = {"nchw": 128, "nhwc": 64}

BUFFERIZE = (
    "--transform-interpreter", "--canonicalize", "--cse", "--eliminate-empty-tensors",
    "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
    "--canonicalize",
    "--buffer-results-to-out-params=modify-public-functions=true hoist-static-allocs=true",
    "--drop-equivalent-buffer-results", "--buffer-deallocation-pipeline", "--convert-bufferization-to-memref",
)
LOWER = (
    "--convert-linalg-to-loops", "--lower-vector-multi-reduction", "--convert-vector-to-scf=full-unroll",
    "--scf-forall-to-parallel", "--canonicalize", "--convert-scf-to-openmp", "--canonicalize",
    "--expand-strided-metadata", "--lower-affine", "--convert-scf-to-cf", "--canonicalize", "--cse",
    "--convert-vector-to-llvm", "--convert-math-to-llvm", "--convert-to-llvm", "--reconcile-unrealized-casts",
)

SCRIPT = """
!op = !transform.any_op
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !op {{transform.readonly}}) {{
    %all = transform.structured.match ops{{["linalg.generic"]}} in %root : (!op) -> !op
    %sums, %channels, %elements = transform.split_handle %all : (!op) -> (!op, !op, !op)
{sums}
    %shares, %forall = transform.structured.tile_using_forall %elements num_threads [{images}] : (!op) -> (!op, !op)
    %tiles, %tile_loops:{rank} = transform.structured.tile_using_for %shares tile_sizes {tile} : (!op) -> (!op{loops})
{short}
    %function = transform.structured.match ops{{["func.func"]}} in %root : (!op) -> !op
    transform.apply_patterns to %function {{
      transform.apply_patterns.canonicalization
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
    }} : !op
    %vectors = transform.structured.vectorize_children_and_apply_patterns %function : (!op) -> !op
    %all_loops = transform.structured.match ops{{["scf.for"]}} in %vectors : (!op) -> !op
    transform.loop.hoist_loop_invariant_subsets %all_loops : !op
    transform.apply_patterns to %vectors {{
      transform.apply_patterns.vector.cast_away_vector_leading_one_dim
      transform.apply_patterns.canonicalization
    }} : !op
    transform.yield
  }}
}}
"""
# Fills and merges come in pairs, one for each sum.
PARTIAL = " : (!op) -> (!op, !op, !op, !op, !op, !op)\n"
SUMS = {
    "nchw": "    %share, %share_forall = transform.structured.tile_using_forall %sums num_threads [0, {channels}]"
            " : (!op) -> (!op, !op)\n"
            "    %channel, %channel_loop = transform.structured.tile_using_for %share tile_sizes [0, 1]"
            " : (!op) -> (!op, !op)\n"
            "    %fills:2, %partial, %merges:2, %loop = transform.structured.tile_reduction_using_for %channel"
            " by tile_sizes = {reduced}" + PARTIAL,
    "nhwc": "    %wide, %wide_loop = transform.structured.tile_using_for %{share} tile_sizes {lanes}"
            " : (!op) -> (!op, !op)\n"
            "    %row, %row_loops:{outer} = transform.structured.tile_using_for %wide tile_sizes {ones}"
            " : (!op) -> (!op{outer_loops})\n",
}
# Before that of NHWC, if there is more than one share. A single one has wrong results in MLIR 22.1.8.
SHARES = ("    %fills:2, %share, %merges:2, %loop = transform.structured.tile_reduction_using_forall %sums"
          " by num_threads = {threads}" + PARTIAL)
# Ops over all channels, which would become one vector each.
SHORT = ["channels"]
SHORT_OF_SHARES = ["fills#0", "fills#1", "merges#0", "merges#1", "channels"]


def divide(size, most):
    """The greatest divisor of `size` up to `most`."""
    return next(lanes for lanes in range(min(size, most), 0, -1) if size % lanes == 0)


def write_script(case, threads):
    """The transform script."""
    sizes, rank = case.memory_sizes, len(case.sizes)
    ones = [1] * (rank - 1)
    lanes = divide(sizes[-1], MOST_LANES[case.layout])
    images = min(threads, sizes[0])
    has_shares = case.layout == "nhwc" and images > 1
    sums = ((SHARES if has_shares else "") + SUMS[case.layout]).format(
        share="share" if has_shares else "sums",
        channels=min(threads, case.channels), reduced=[1, 0] + ones[2:] + [lanes],
        threads=[images] + [0] * (rank - 1), lanes=[0] * (rank - 1) + [lanes],
        outer=rank - 1, ones=ones, outer_loops=", !op" * (rank - 1))
    tile = divide(case.channels, MOST_LANES["nhwc"])
    short = "".join(
        f"    %short{i}, %short_loop{i} = transform.structured.tile_using_for %{name} tile_sizes [{tile}]"
        " : (!op) -> (!op, !op)\n" for i, name in enumerate(SHORT_OF_SHARES if has_shares else SHORT))
    return SCRIPT.format(sums=sums, images=images, rank=rank, tile=ones + [lanes], loops=", !op" * rank, short=short)


def build(run, case, threads, linalg, library):
    """Compiles the file `linalg` to `library`; `run(name, *command)` runs a tool."""
    script, lowered, ir = (library.with_suffix(end) for end in (".transform.mlir", ".llvm.mlir", ".ll"))
    script.write_text(write_script(case, 1 if case.elements <= FEW_ELEMENTS else threads))
    run("mlir-opt", OPT, linalg, f"--transform-preload-library=transform-library-paths={script}",
        *BUFFERIZE, *LOWER, "-o", lowered)
    run("mlir-translate", TRANSLATE, "--mlir-to-llvmir", lowered, "-o", ir)
    run("clang", CLANG, "-O3", *instruction_sets.clang_flags(), "-fopenmp=libomp", "-shared", "-fPIC",
        "-Wno-override-module", ir, "-o", library)
