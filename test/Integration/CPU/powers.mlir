// Powers with exponents of 64 bits, which LLVM has not, against numpy.

// REQUIRES: numpy

// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy, sys; numpy.save(sys.argv[1] + '/x.npy', numpy.array([2, -3, 0.5, -2, 1.0000001, 0, 0, -1])); numpy.save(sys.argv[1] + '/n.npy', numpy.array([10, 3, -4, -3, 1 << 33, 0, 5, -(1 << 63)]))" %t
// RUN: bngrad-runner %s --arg=%t/x.npy --arg=%t/n.npy --result=%t/r.npy
// RUN: %python -c "import numpy, sys; x, n, r = (numpy.load(sys.argv[1] + name) for name in ('/x.npy', '/n.npy', '/r.npy')); e = x ** n.astype(float); print(r, e); assert numpy.all((r == e) | (abs(r - e) <= 1e-6 * abs(e)))" %t

#map = affine_map<(d0) -> (d0)>
func.func @f(%x: tensor<8xf64>, %n: tensor<8xi64>) -> tensor<8xf64> {
  %empty = tensor.empty() : tensor<8xf64>
  %0 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%x, %n : tensor<8xf64>, tensor<8xi64>) outs(%empty : tensor<8xf64>) {
  ^bb0(%a: f64, %i: i64, %out: f64):
    %p = math.fpowi %a, %i : f64, i64
    linalg.yield %p : f64
  } -> tensor<8xf64>
  return %0 : tensor<8xf64>
}
