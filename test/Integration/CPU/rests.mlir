// Rows of 16-bit elements that are no multiple of a vector, with sizes known at run time: without masks of 16 bits, the
// rest of a row is a vector that overlaps the one before. Rows shorter than a vector, of whole vectors, and of one element
// more or less. Gradient.Rests of the C library's tests writes grad_input over operands.

// REQUIRES: x86-64-v3
// DEFINE: %{data} =
// DEFINE: %{schedule} =
// DEFINE: %{entry} =
// DEFINE: %{check} = env BNGRAD_ISA=x86-64-v3 bngrad-runner %s --entry=%{entry} --schedule='#bngrad.schedule<%{schedule}, vector_bits = 256>' --check \
// DEFINE:   --arg=random:1@%{data} --arg=random:2@%{data} --arg=random:3@5 --arg=random:4@5

// REDEFINE: %{schedule} = channels
// REDEFINE: %{entry} = bf16
// REDEFINE: %{data} = 3x5x1
// RUN: %{check}
// REDEFINE: %{data} = 3x5x15
// RUN: %{check}
// REDEFINE: %{data} = 3x5x16
// RUN: %{check}
// REDEFINE: %{data} = 3x5x17
// RUN: %{check}
// REDEFINE: %{data} = 2x5x49
// RUN: %{check}
// REDEFINE: %{data} = 2x5x65
// RUN: %{check}
// REDEFINE: %{data} = 1x5x127
// RUN: %{check}
// REDEFINE: %{data} = 2x5x196
// RUN: %{check}

// REDEFINE: %{entry} = f16
// REDEFINE: %{data} = 2x5x50
// RUN: %{check}

// REDEFINE: %{schedule} = tiles
// REDEFINE: %{data} = 2x5x49
// RUN: %{check}
// REDEFINE: %{schedule} = split
// RUN: %{check}

!b = tensor<?x?x?xbf16>
!h = tensor<?x?x?xf16>
!v = tensor<?xf32>
func.func @bf16(%dy: !b, %x: !b, %mean: !v, %variance: !v) -> (!b, !v, !v) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !b) input(%x : !b) mean(%mean : !v) variance(%variance : !v)
      {feature_dims = array<i64: 1>} : !b, !v, !v
  return %0#0, %0#1, %0#2 : !b, !v, !v
}

func.func @f16(%dy: !h, %x: !h, %mean: !v, %variance: !v) -> (!h, !v, !v) {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !h) input(%x : !h) mean(%mean : !v) variance(%variance : !v)
      {feature_dims = array<i64: 1>} : !h, !v, !v
  return %0#0, %0#1, %0#2 : !h, !v, !v
}
