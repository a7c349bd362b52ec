// As strided.mlir, with other orders and offsets.

// DEFINE: %{run} = bngrad-runner %S/strided.mlir --arg=random:1 --arg=random:2 --arg=random:3:0.5:1.5 --arg=random:4 --arg=random:5:0.5:1.5
// DEFINE: %{entry} =
// DEFINE: %{check} = --check
// DEFINE: %{compare} = rm -rf %t && mkdir %t && \
// DEFINE:   %{run} --entry=%{entry} --result=%t/a.npy --result=%t/b.npy --result=%t/c.npy && \
// DEFINE:   %{run} --entry=%{entry}_expected %{check} --result=%t/x.npy --result=%t/y.npy --result=%t/z.npy && \
// DEFINE:   %python %S/compare.py %t/a.npy %t/x.npy %t/b.npy %t/y.npy %t/c.npy %t/z.npy
// REQUIRES: long, numpy

// REDEFINE: %{entry} = channels_first
// RUN: %{compare}
// REDEFINE: %{entry} = row_major
// RUN: %{compare}
// REDEFINE: %{entry} = reversed
// RUN: %{compare}
