"""broken.py RUNNER OPT DIR [--long]: breaks our own kernels; every fault must be reported by its name.

The text of a kernel from bngrad-opt is changed; the runner compiles the same program, and the emulator runs the changed
text with unmodified host code. An edit that applies to several places is tried at the first, or with --long at each
of them. A fault that no rule of
PTX forbids (another lane, another block) must make --check fail. Prints the reported errors for each kind of edit, and
`N broken kernels, 0 unnoticed`.
"""

import os
import re
import sys

from programs import Case, check, get_ptx, one_pass, run, two_pass

KERNELS = {
    "channel": Case((5, 3, 32), one_pass(cluster=2, threads=64)),
    "warps": Case((5, 8, 32), one_pass(columns=4, threads=64)),
    "flat": Case((9, 4, 7), one_pass(columns=4, cluster=2, threads=64)),
    "stages": Case((64, 4, 7), one_pass(columns=4, threads=64)),
    "columns": Case((45, 24), one_pass(columns=12, cluster=2, threads=64)),
    "elements": Case((30, 10), one_pass(columns=5, cluster=2, threads=64), data="f64", parameter="f64"),
    "rows-two-pass": Case((5, 4, 300), two_pass(threads=64, blocks=8)),
    "columns-two-pass": Case((70, 16), two_pass(threads=64, blocks=2), data="bf16"),
}

CHECK = "--check"
# A wait for an mbarrier, repeated until it succeeds, and a wait for the kernel ahead in one that has a kernel ahead.
WAIT = r"(mbarrier\.try_wait[^;]*;)\s+not\.pred[^;]*;\s+@%p\d+ bra\s+[^;]*;"
GRID_WAIT = r"(entry (?:finish|apply)\((?:(?!\.entry)[\s\S])*?)griddepcontrol\.wait;((?:(?!\.entry)[\s\S])*)\bret;"
# Kernel, edit (a regular expression and its replacement), and accepted errors. A read before the write that it
# should wait for may be reported as uninitialised.
EDITS = [
    # Removed barriers.
    ("channel", r"bar\.sync\s+0;", "", {"race", "uninitialised"}),
    ("flat", r"bar\.sync\s+0;", "", {"race", "uninitialised"}),
    ("columns", r"bar\.sync\s+0;", "", {"race", "uninitialised", "missing-wait"}),
    ("elements", r"bar\.sync\s+0;", "", {"race", "uninitialised"}),
    ("rows-two-pass", r"bar\.sync\s+0;", "", {"race", "uninitialised"}),
    ("columns-two-pass", r"bar\.sync\s+0;", "", {"race", "uninitialised"}),
    ("channel", r"barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;", "", {"race", "uninitialised"}),
    ("columns", r"barrier\.cluster\.arrive\.aligned;\s+barrier\.cluster\.wait\.aligned;", "", {"race", "uninitialised"}),
    # A wait for an arrival that does not come.
    ("channel", r"barrier\.cluster\.arrive\.relaxed\.aligned;", "", {"divergent-barrier"}),
    # Barriers for only some threads.
    ("channel", r"bar\.sync\s+0;", "@%p2 bar.sync 0;", {"divergent-barrier", "deadlock"}),
    # Dropped waits: for a bulk copy, for the pieces of cp.async; one for the wrong phase.
    ("channel", WAIT, "", {"missing-wait"}),
    ("warps", WAIT, "", {"missing-wait", "race", "uninitialised"}),
    ("channel", WAIT, r"\1", {"missing-wait"}),
    ("warps", WAIT, r"\1", {"missing-wait", "race"}),
    ("channel", r"(try_wait[^;]*\]), %r\d+,", r"\1, 1,", {"missing-wait"}),
    ("columns", WAIT, "", {"missing-wait"}),
    # Of two stages, one is not waited for, or has another's rows.
    ("stages", WAIT, "", {"missing-wait", "race"}),
    ("stages", r"\[__mbarrier\+8\]", "[__mbarrier]", {"divergent-barrier", "missing-wait", "race"}),
    ("columns", r"cp\.async\.mbarrier\.arrive\.noinc[^;]*;", "", {"deadlock", "divergent-barrier"}),
    ("columns", r"cp\.async\.mbarrier\.arrive\.noinc", "mbarrier.arrive", {"missing-wait"}),
    # No wait for the kernel ahead, or one after the accesses.
    ("rows-two-pass", GRID_WAIT, r"\1\2ret;", {"missing-grid-wait"}),
    ("rows-two-pass", GRID_WAIT, r"\1\2griddepcontrol.wait; ret;", {"missing-grid-wait"}),
    ("columns-two-pass", GRID_WAIT, r"\1\2ret;", {"missing-grid-wait"}),
    # Copies by all lanes.
    ("channel", r"elect\.sync\s+%r\d+\|(%p\d+), -1;", r"setp.eq.u32 \1, 0, 0;", {"missing-wait"}),
    # A barrier that the asynchronous proxy does not know.
    ("channel", r"fence\.proxy\.async\.shared::cta;", "", {"missing-proxy-fence"}),
    ("warps", r"fence\.proxy\.async\.shared::cta;", "fence.acq_rel.cta;", {"missing-proxy-fence"}),
    # An mbarrier that expects more bytes than arrive, or none.
    ("channel", r"mbarrier\.arrive\.expect_tx\.shared\.b64 (%rd\d+), \[__mbarrier\], (%r\d+);",
     r"add.s32 \2, \2, 16; mbarrier.arrive.expect_tx.shared.b64 \1, [__mbarrier], \2;", {"deadlock"}),
    ("channel", r"mbarrier\.init\.shared\.b64[^;]*;", "", {"uninitialised"}),
    # Shuffles: lanes outside the mask, other lanes.
    ("channel", r"(shfl\.sync[^;]*), -1;", r"\1, 65535;", {"divergent-shuffle"}),
    ("elements", r"(ld\.shared\.b64[^;]*);", r"\1; shfl.sync.bfly.b32 %r1, 0, 1, 31, -1;", {"divergent-shuffle"}),
    ("channel", r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 16,", r"\1, 8,", {CHECK}),
    ("warps", r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 4,", r"\1, 3,", {CHECK}),
    ("rows-two-pass", r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 2,", r"\1, 4,", {CHECK}),
    ("columns-two-pass", r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 16,", r"\1, 8,", {CHECK}),
    # Another block of the cluster, or a missing one.
    ("channel", r"(mapa[^;]*), (%r\d+);", r"and.b32 \2, \2, 0; \1, \2;", {CHECK}),
    ("channel", r"(mapa[^;]*), (%r\d+);", r"add.s32 \2, \2, 1; \1, \2;", {"out-of-bounds"}),
    # Addresses between vectors.
    ("channel", r"(ld\.shared\.v4[^\[]*\[%rd\d+)\]", r"\1+4]", {"misaligned"}),
    ("channel", r"(st\.global\.v4\.b32\s+\[%rd\d+)\]", r"\1+4]", {"misaligned"}),
    ("flat", r"(ld\.shared\.v4[^\[]*\[%rd\d+)\]", r"\1+4]", {"misaligned"}),
    ("columns-two-pass", r"(ld\.global\.v4[^\[]*\[%rd\d+)\]", r"\1+2]", {"misaligned"}),
    ("channel", r"(cp\.async\.bulk[^\[]*\[%rd\d+)\]", r"\1+8]", {"misaligned"}),
    ("columns", r"(cp\.async\.cg\.shared\.global \[%rd\d+\], \[%rd\d+)\]", r"\1+4]", {"misaligned"}),
    # Past the end: more blocks than the data have (or no block for some), more rows, another buffer.
    ("channel", r"(%r\d+), %ctaid\.x;", r"\1, %nctaid.x;", {"out-of-bounds"}),
    ("warps", r"(mov\.u32\s+%r\d+), %ctaid\.x;", r"\1, %nctaid.x;", {"out-of-bounds", "uninitialised", CHECK}),
    ("elements", r"(mov\.u32\s+%r\d+), %ctaid\.x;", r"\1, %nctaid.x;", {"out-of-bounds", "uninitialised", CHECK}),
    ("rows-two-pass", r"(mov\.u32\s+%r\d+), %ctaid\.x;", r"\1, %nctaid.x;", {"out-of-bounds", "uninitialised", CHECK}),
    ("columns-two-pass", r"(mov\.u32\s+%r\d+), %ctaid\.x;", r"\1, %nctaid.x;", {"out-of-bounds", "uninitialised", CHECK}),
    ("channel", r"(xor\.b64\s+%rd\d+, %rd\d+), 3;", r"\1, 11;", {"out-of-bounds", "missing-wait"}),
    ("channel", r"(ld\.global\.b32\s+%r\d+, \[%rd\d+)\]", r"\1+4096]", {"out-of-bounds"}),
    # Shared memory that is uninitialised, or contains the sums of the previous step.
    ("channel", r"st\.shared\.b32[^;]*;", "", {"uninitialised"}),
    ("flat", r"st\.shared\.b32[^;]*;", "", {"uninitialised"}),
    ("columns", r"st\.shared\.v4\.b32[^;]*;", "", {"uninitialised"}),
    ("elements", r"st\.shared\.b64[^;]*;", "", {"uninitialised", CHECK}),
    ("columns", r"cp\.async\.cg[^;]*;", "", {"uninitialised"}),
    # Uninitialised partial sums and elements.
    ("columns-two-pass", r"st\.global(\.cs)?\.v[24][^;]*;", "", {"uninitialised", CHECK}),
    # Endless loops, and launches that the kernel does not allow.
    ("rows-two-pass", r"(\$L__BB\d+_\d+):((?s:.*?))@%p\d+ bra\s+\1;", r"\1:\2bra.uni \1;", {"endless-loop", "out-of-bounds"}),
    ("channel", r"(\$L__BB\d+_\d+)(:(?:(?!\$L__)[\s\S])*?try_wait[^;]*;\s+not\.pred[^;]*;)\s+@%p\d+ bra\s+[^;]*;", r"\1\2 bra.uni \1;",
     {"endless-loop"}),
    ("channel", r"\.maxntid 64,", ".maxntid 32,", {"launch-bounds"}),
    ("channel", r"\.reqnctapercluster 2,", ".reqnctapercluster 4,", {"launch-bounds"}),
    ("channel", r"st\.global\.v4\.b32", "st.global.v4.b33", {"unknown-instruction"}),
    # Wrong numbers.
    ("channel", r"0f43200000", "0f43210000", {CHECK}),
]


def main():
    runner, opt, directory, *options = sys.argv[1:]
    is_long = "--long" in options
    os.makedirs(directory, exist_ok=True)
    texts = {name: get_ptx(opt, case) for name, case in KERNELS.items()}
    broken = unnoticed = 0

    def run_text(name, text):
        path = os.path.join(directory, f"{name}.mlir")
        with open(path + ".ptx", "w") as file:
            file.write(text)
        variables = {"PTX_EMULATOR_REPLACE_PTX": path + ".ptx", "PTX_EMULATOR_BUDGET": "20000000"}
        return run(runner, KERNELS[name], path, "--check", environment=variables)

    for name, text in texts.items():
        check(KERNELS[name], *run_text(name, text))
    for name, pattern, replacement, expected in EDITS:
        places = list(re.finditer(pattern, texts[name]))
        if not places:
            unnoticed += 1
            print(f"FAILED {name}: nothing is like {pattern}")
        found = []
        for place in places if is_long else places[:1]:
            text = texts[name][:place.start()] + place.expand(replacement) + texts[name][place.end():]
            done, _ = run_text(name, text)
            broken += 1
            report = re.search(r"ptx-emulator: error: ([a-z-]+):", done.stderr)
            kind = report[1] if report else CHECK if "FAILED" in done.stdout else "nothing"
            found.append(kind)
            if done.returncode == 0 or kind not in expected:
                unnoticed += 1
                line = texts[name].count("\n", 0, place.start()) + 1
                print(f"FAILED {name}: line {line} '{place[0][:80]}' as '{replacement}': expected {sorted(expected)}, got "
                      f"{kind}\n{done.stdout}{done.stderr}exit status {done.returncode}")
        kinds = ", ".join(f"{found.count(kind)} {kind}" for kind in sorted(set(found)))
        print(f"{name}: {pattern} -> {replacement or 'nothing'}: {kinds}")
    print(f"{broken} broken kernels, {unnoticed} unnoticed")
    return unnoticed > 0


if __name__ == "__main__":
    sys.exit(main())
