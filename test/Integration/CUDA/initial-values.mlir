// Initial values of sums other than a preceding fill. The data are small integers, so that every order of summation is
// exact.

// REQUIRES: numpy
// DEFINE: %{chip} = sm_80
// DEFINE: %{run} = bngrad-runner %s --target=cuda-emulator --chip=%{chip} --arg=%t/dy.npy --arg=%t/x.npy --arg=%t/mean.npy \
// DEFINE:   --result=%t/sum_dy.npy --result=%t/sum_dy_xmu.npy
// DEFINE: %{check} = %python %S/initial_values.py check %t
// RUN: %python %S/initial_values.py make %t

// RUN: %{run} --entry=in_loop && %{check} 3 0 5
// RUN: %{run} --entry=inserted && %{check} 1 7 5
// RUN: %{run} --entry=filled_twice && %{check} 1 2 5
// REDEFINE: %{chip} = sm_90
// RUN: %{run} --entry=in_loop && %{check} 3 0 5
// RUN: %{run} --entry=inserted && %{check} 1 7 5
// RUN: %{run} --entry=filled_twice && %{check} 1 2 5
// RUN: %{run} --entry=with_elements --result=%t/y.npy --schedule="#bngrad.schedule<one_pass, block_threads = 64, block_channels = 4, cluster_blocks = 2>" \
// RUN:   && %{check} 1 7 5 elements

!d = tensor<8x4xf32>
!p = tensor<4xf32>
#data = affine_map<(d0, d1) -> (d0, d1)>
#channel = affine_map<(d0, d1) -> (d1)>
#sums = {indexing_maps = [#data, #data, #channel, #channel, #channel], iterator_types = ["reduction", "parallel"]}

// Each iteration continues from the previous one.
func.func @in_loop(%dy: !d, %x: !d, %mean: !p) -> (!p, !p) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %empty = tensor.empty() : !p
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %five = arith.constant 5.0 : f32
  %empty2 = tensor.empty() : !p
  %fives = linalg.fill ins(%five : f32) outs(%empty2 : !p) -> !p
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %zeros, %b = %fives) -> (!p, !p) {
    %s:2 = linalg.generic #sums ins(%dy, %x, %mean : !d, !d, !p) outs(%a, %b : !p, !p) {
    ^bb0(%d: f32, %xi: f32, %m: f32, %sum_dy: f32, %sum_product: f32):
      %centered = arith.subf %xi, %m : f32
      %product = arith.mulf %d, %centered : f32
      %next_dy = arith.addf %sum_dy, %d fastmath<reassoc> : f32
      %next_product = arith.addf %sum_product, %product fastmath<reassoc> : f32
      linalg.yield %next_dy, %next_product : f32, f32
    } -> (!p, !p)
    scf.yield %s#0, %s#1 : !p, !p
  }
  return %r#0, %r#1 : !p, !p
}

// One element is set after the fill.
func.func @inserted(%dy: !d, %x: !d, %mean: !p) -> (!p, !p) {
  %zero = arith.constant 0.0 : f32
  %seven = arith.constant 7.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %empty = tensor.empty() : !p
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %five = arith.constant 5.0 : f32
  %empty2 = tensor.empty() : !p
  %fives = linalg.fill ins(%five : f32) outs(%empty2 : !p) -> !p
  %a = tensor.insert %seven into %zeros[%c0] : !p
  %b = tensor.insert %seven into %a[%c1] : !p
  %c = tensor.insert %seven into %b[%c2] : !p
  %sevens = tensor.insert %seven into %c[%c3] : !p
  %s:2 = linalg.generic #sums ins(%dy, %x, %mean : !d, !d, !p) outs(%sevens, %fives : !p, !p) {
  ^bb0(%d: f32, %xi: f32, %m: f32, %sum_dy: f32, %sum_product: f32):
    %centered = arith.subf %xi, %m : f32
    %product = arith.mulf %d, %centered : f32
    %next_dy = arith.addf %sum_dy, %d fastmath<reassoc> : f32
    %next_product = arith.addf %sum_product, %product fastmath<reassoc> : f32
    linalg.yield %next_dy, %next_product : f32, f32
  } -> (!p, !p)
  return %s#0, %s#1 : !p, !p
}

// The last fill counts.
func.func @filled_twice(%dy: !d, %x: !d, %mean: !p) -> (!p, !p) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %empty = tensor.empty() : !p
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %five = arith.constant 5.0 : f32
  %empty2 = tensor.empty() : !p
  %fives = linalg.fill ins(%five : f32) outs(%empty2 : !p) -> !p
  %twos = linalg.fill ins(%two : f32) outs(%zeros : !p) -> !p
  %s:2 = linalg.generic #sums ins(%dy, %x, %mean : !d, !d, !p) outs(%twos, %fives : !p, !p) {
  ^bb0(%d: f32, %xi: f32, %m: f32, %sum_dy: f32, %sum_product: f32):
    %centered = arith.subf %xi, %m : f32
    %product = arith.mulf %d, %centered : f32
    %next_dy = arith.addf %sum_dy, %d fastmath<reassoc> : f32
    %next_product = arith.addf %sum_product, %product fastmath<reassoc> : f32
    linalg.yield %next_dy, %next_product : f32, f32
  } -> (!p, !p)
  return %s#0, %s#1 : !p, !p
}

// The elements read the sums of all blocks of a cluster, each of which reads the initial values.
func.func @with_elements(%dy: !d, %x: !d, %mean: !p) -> (!p, !p, !d) {
  %zero = arith.constant 0.0 : f32
  %seven = arith.constant 7.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %empty = tensor.empty() : !p
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : !p) -> !p
  %five = arith.constant 5.0 : f32
  %empty2 = tensor.empty() : !p
  %fives = linalg.fill ins(%five : f32) outs(%empty2 : !p) -> !p
  %a = tensor.insert %seven into %zeros[%c0] : !p
  %b = tensor.insert %seven into %a[%c1] : !p
  %c = tensor.insert %seven into %b[%c2] : !p
  %sevens = tensor.insert %seven into %c[%c3] : !p
  %s:2 = linalg.generic #sums ins(%dy, %x, %mean : !d, !d, !p) outs(%sevens, %fives : !p, !p) {
  ^bb0(%d: f32, %xi: f32, %m: f32, %sum_dy: f32, %sum_product: f32):
    %centered = arith.subf %xi, %m : f32
    %product = arith.mulf %d, %centered : f32
    %next_dy = arith.addf %sum_dy, %d fastmath<reassoc> : f32
    %next_product = arith.addf %sum_product, %product fastmath<reassoc> : f32
    linalg.yield %next_dy, %next_product : f32, f32
  } -> (!p, !p)
  %empty3 = tensor.empty() : !d
  %y = linalg.generic {indexing_maps = [#data, #channel, #channel, #data], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %s#0, %s#1 : !d, !p, !p) outs(%empty3 : !d) {
  ^bb0(%d: f32, %sum_dy: f32, %sum_product: f32, %out: f32):
    %0 = arith.mulf %d, %sum_dy : f32
    %1 = arith.addf %0, %sum_product : f32
    linalg.yield %1 : f32
  } -> !d
  return %s#0, %s#1, %y : !p, !p, !d
}
