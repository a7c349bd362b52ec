"""Programs of an author who means harm, or errs: the checks of sizes and indices stay, whatever the program promises.

REQUIRES: python-compiler
RUN: %python -m pytest -q %s
"""

import bngrad
import numpy as np
import pytest


def ramp(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def compile_load(arguments, body):
    """A program that stores %v, which `body` computes, at its first argument."""
    return bngrad.compile(f"""
func.func @f(%o: memref<1xf32>, {arguments}) {{
  %zero = arith.constant 0 : index
{body}
  memref.store %v, %o[%zero] : memref<1xf32>
  return
}}""")


def call_load(program, *arguments):
    result = np.zeros(1, np.float32)
    program(result, *arguments)
    return result[0]


# The product is 2^61 * 5 + 5 - 2^64 = 5 - ..., whose sign and size wrap.
FACTOR = 2**61 + 1
WRAPPED = {
    "mul": (f"%k = arith.constant {FACTOR} : index\n%i = arith.muli %b, %k overflow<nsw> : index", 5),
    "apply": (f"%i = affine.apply affine_map<()[s] -> (s * {FACTOR})>()[%b]", 5),
    "sub": ("%k = arith.constant 3 : index\n%i = arith.subi %k, %b overflow<nuw> : index", 10**8),
    "shift": ("%k = arith.constant 1 : index\n%i = arith.shli %k, %b overflow<nsw, nuw> : index", 63),
    "exact": ("%k = arith.constant 4 : index\n%i = arith.divui %b, %k exact : index", 30),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_flags_promise_nothing(name):
    """An index that wraps, though its flags say that it does not."""
    index, value = WRAPPED[name]
    program = compile_load("%m: memref<?xf32>, %a: index", f"""
  %b = arith.maxsi %a, %zero : index
  {index}
  %v = memref.load %m[%i] : memref<?xf32>""")
    with pytest.raises(bngrad.ShapeError, match="expected index of dim 0 of memref.load to be at"):
        call_load(program, ramp(4), value)


def test_an_affine_load_that_wraps():
    program = compile_load("%m: memref<?xf32>, %a: index", f"""
  %b = arith.maxsi %a, %zero : index
  %v = affine.load %m[symbol(%b) * {FACTOR}] : memref<?xf32>""")
    with pytest.raises(bngrad.ShapeError, match="expected index of dim 0 of memref.load to be at"):
        call_load(program, ramp(4), 5)
    assert call_load(program, ramp(4), 0) == 0


@pytest.mark.parametrize("op, shifted", [("shli", 0), ("shrui", 0), ("shrsi", 1)])
def test_shifts_by_all_bits(op, shifted):
    """They leave 0, or the sign: -(-1) here."""
    program = compile_load("%m: memref<?xf32>, %x: index, %a: index", f"""
  %s = arith.{op} %x, %a : index
  %i = arith.subi %zero, %s : index
  %v = memref.load %m[%i] : memref<?xf32>""")
    assert [call_load(program, ramp(2), -5, amount) for amount in (64, 1000, 2**62)] == [shifted] * 3
    assert call_load(program, ramp(6), -5, 0) == 5


GENERIC = """
func.func @f(%m: tensor<?xf32>, %e: tensor<{S}xf32>) -> tensor<{S}xf32> {{
  %r = linalg.generic {{indexing_maps = [affine_map<({D}) -> ({E})>, affine_map<({D}) -> ({D})>],
                       iterator_types = [{I}]}}
      ins(%m : tensor<?xf32>) outs(%e : tensor<{S}xf32>) {{
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }} -> tensor<{S}xf32>
  return %r : tensor<{S}xf32>
}}"""


# The expression, the sizes of loops, and sizes of the operand that are too small and just enough.
MAPS = [("i - j + 5", (6, 6), 10, 11), ("i - j + 4", (6, 5), 9, 10), ("i mod 4", (5,), 3, 4), ("i mod 4", (3,), 2, 3),
        ("(i + 3) mod 4", (2,), 3, 4), ("(i * 100000) mod 1000000000", (10001,), 1, None),
        ("i floordiv 3", (8,), 2, 3), ("i ceildiv 3", (8,), 3, 4), ("-i + 3", (4,), 3, 4), ("-i + 3", (5,), 4, None),
        ("i * 4611686018427387904", (5,), 5, None), ("i * -9223372036854775807", (3,), 3, None),
        ("(i floordiv 2) * 2 + j", (4, 2), 3, 4), ("(i + j) mod 3", (2, 2), 2, 3), ("i - 1", (0,), 0, 0),
        ("(i - j) floordiv 2 + 2", (4, 4), 3, 4),
        ("(i floordiv 4) * 4 + i mod 4", (6,), 5, 6)]


@pytest.mark.parametrize("expression, loops, small, enough", MAPS, ids=[f"{case[0]}, {case[1]}" for case in MAPS])
def test_indexing_maps(expression, loops, small, enough):
    """The least and the greatest index of all iterations are in the operand."""
    dims = "ij"[:len(loops)]
    program = bngrad.compile(GENERIC.format(S="x".join("?" * len(loops)), D=", ".join(dims), E=expression,
                                            I=", ".join(['"parallel"'] * len(loops))))
    out = np.zeros(loops, np.float32)
    if small != enough:
        with pytest.raises(bngrad.ShapeError):
            program(ramp(small), out)
    if enough is not None:
        i, j = (np.indices(loops) if len(loops) == 2 else (np.indices(loops)[0], None))
        index = eval(expression.replace("floordiv", "//").replace("mod", "%").replace("i ceildiv 3", "-(-i // 3)"))
        assert np.array_equal(program(ramp(enough), out), index)


def test_an_indexing_map_of_a_result():
    program = bngrad.compile("""
func.func @f(%m: memref<?xf32>, %q: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ((i * 100000) mod 1000000000)>],
                  iterator_types = ["reduction"]}
      ins(%q : memref<?xf32>) outs(%m : memref<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}""")
    with pytest.raises(bngrad.ShapeError, match="expected greatest index of dim 0 of operand 1 to be at most 0, got "
                                                "999999999"):
        program(ramp(1), ramp(10001))


@pytest.mark.parametrize("low, high", [(2**63 - 10, 2**63 - 10), (2**62, 2**63 - 1 - 2**62), (2**62 + 2**61,) * 2,
                                       (0, 2**63 - 1), (2**63 - 1, 0)])
def test_paddings_whose_sum_wraps(low, high):
    program = bngrad.compile("""
func.func @f(%m: tensor<?xf32>, %low: index, %high: index) -> tensor<?xf32> {
  %c = arith.constant 1.0 : f32
  %p = tensor.pad %m low[%low] high[%high] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}""")
    assert program(ramp(2), 1, 2).tolist() == [1, 0, 1, 1, 1]
    with pytest.raises(bngrad.ShapeError, match="expected (low|high) padding of dim 0 to be at most"):
        program(ramp(30), low, high)


def test_parts_whose_sizes_have_no_sum():
    program = bngrad.compile("""
!s = memref<?xf32, strided<[0]>>
func.func @f(%m: !s, %n: !s) -> tensor<?xf32> {
  %a = bufferization.to_tensor %m restrict : !s to tensor<?xf32>
  %b = bufferization.to_tensor %n restrict : !s to tensor<?xf32>
  %r = tensor.concat dim(0) %a, %b, %a : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}""")
    x = np.lib.stride_tricks.as_strided(ramp(1), (2**60,), (0,))
    y = np.lib.stride_tricks.as_strided(ramp(1), (3,), (0,))
    assert program(y, y[:1]).tolist() == [0] * 7
    with pytest.raises(bngrad.Error):
        program(x, y)


RESHAPE = {
    "tensor": ("%m: tensor<{S}xf32>, %n: tensor<{N}xindex>", """
  %z = tensor.reshape %m(%n) : (tensor<{S}xf32>, tensor<{N}xindex>) -> tensor<{R}xf32>
  %q = tensor.cast %z : tensor<{R}xf32> to tensor<?x?xf32>
  %v = tensor.extract %q[%one, %last] : tensor<?x?xf32>"""),
    "memref": ("%m: memref<{S}xf32>, %n: memref<{N}xindex>", """
  %z = memref.reshape %m(%n) : (memref<{S}xf32>, memref<{N}xindex>) -> memref<{R}xf32>
  %q = memref.cast %z : memref<{R}xf32> to memref<?x?xf32>
  %v = memref.load %q[%one, %last] : memref<?x?xf32>"""),
}


@pytest.mark.parametrize("kind", RESHAPE)
@pytest.mark.parametrize("length, result", [("?", "*"), ("2", "?x?")])
def test_reshapes(kind, length, result):
    """Also to a rank that only the call knows."""
    arguments, body = (text.format(S="?", N=length, R=result) for text in RESHAPE[kind])
    program = compile_load(f"{arguments}, %last: index", "%one = arith.constant 1 : index\n" + body)
    assert call_load(program, ramp(6), np.array([2, 3]), 2) == 5
    product = "expected product of the elements of shape to be the number of elements of source"
    for shape, text in [([2, 300000000], f"{product}, 4, got 600000000"), ([2**32, 2**32], product),
                        ([-1, -4], "expected element.* of shape to be at least 0, got -1")]:
        with pytest.raises(bngrad.ShapeError, match=text):
            call_load(program, ramp(4), np.array(shape), 0)


def test_a_reshape_between_ranks_that_only_the_call_knows():
    program = compile_load("%m: tensor<?x?xf32>, %n: tensor<?xindex>, %i: index", """
  %u = tensor.cast %m : tensor<?x?xf32> to tensor<*xf32>
  %z = tensor.reshape %u(%n) : (tensor<*xf32>, tensor<?xindex>) -> tensor<*xf32>
  %q = tensor.cast %z : tensor<*xf32> to tensor<?xf32>
  %v = tensor.extract %q[%i] : tensor<?xf32>""")
    assert call_load(program, ramp(2, 3), np.array([6]), 5) == 5
    with pytest.raises(bngrad.ShapeError,
                       match="expected product of the elements of shape to be the number of elements of source, 6, got 7"):
        call_load(program, ramp(2, 3), np.array([7]), 6)


def test_asserts_are_errors_of_the_call():
    program = compile_load("%m: memref<?xf32>, %n: index", """
  %c = arith.cmpi sgt, %n, %zero : index
  cf.assert %c, "expected n to be 100 % positive"
  %v = memref.load %m[%zero] : memref<?xf32>""")
    assert call_load(program, ramp(4), 1) == 0
    with pytest.raises(bngrad.ShapeError) as caught:
        call_load(program, ramp(4), 0)
    assert str(caught.value) == "expected n to be 100 % positive (line 6)"


@pytest.mark.parametrize("size", ["4", "%q"])
def test_asserts_on_memory_that_is_written(size):
    """Only the program itself could evaluate them, and would end the process."""
    text = f"""
func.func @f(%x: memref<1xindex>, %n: index) {{
  %zero = arith.constant 0 : index
  memref.store %n, %x[%zero] : memref<1xindex>
  %q = memref.load %x[%zero] : memref<1xindex>
  %c = arith.cmpi sgt, %q, %zero : index
  cf.assert %c, "positive"
  return
}}"""
    if size == "%q":
        text = text.replace("index) {", "index) -> tensor<?xf32> {").replace("  return", """
  %r = tensor.empty(%q) : tensor<?xf32>
  return %r : tensor<?xf32>""")
    with pytest.raises(bngrad.CompileError, match="<mlir>:7:3: error: expected the condition of cf.assert to follow "
                                                  "from the arguments, got one that depends on memory that the "
                                                  "function writes"):
        bngrad.compile(text)


@pytest.mark.parametrize("use", [
    "memref.store %c, %b[%zero] : memref<?xf32>",
    "%s = memref.cast %b : memref<?xf32> to memref<4xf32>\nlinalg.fill ins(%c : f32) outs(%s : memref<4xf32>)"])
def test_buffers_of_tensors_are_read_only(use):
    with pytest.raises(bngrad.CompileError, match="expected the buffer of a tensor to be read only, got one that may be "
                                                  "written to"):
        compile_load("%t: tensor<?xf32>", f"""
  %b = bufferization.to_buffer %t : tensor<?xf32> to memref<?xf32>
  %c = arith.constant 5.0 : f32
  {use}
  %v = memref.load %b[%zero] : memref<?xf32>""")


def test_buffers_of_tensors_are_read():
    program = compile_load("%t: tensor<?xf32>", """
  %b = bufferization.to_buffer %t : tensor<?xf32> to memref<?xf32>
  %v = memref.load %b[%zero] : memref<?xf32>""")
    assert call_load(program, ramp(4) + 1) == 1


def wrap(number):
    return (number + 2**63) % 2**64 - 2**63


# Indices that programs compute from %i, where that is not %i.
INDICES = {"composed": lambda i: wrap(i * 4) // 4, "delinearized": lambda i: wrap(i // 10 + i),
           "zeros": lambda i: i - max(i, 0).bit_length()}
# Programs that store 1.0 at %t[%i], or another index.
STORE = "memref.store %one, %t[{}] : memref<?xf32>"
PROMISES = {
    "range": ("%i: index {llvm.range = #llvm.constant_range<i64, 0, 10>}", STORE.format("%i")),
    "readonly": ("%i: index", STORE.format("%i")),
    "composed": ("%i: index", """
  %a = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
  %b = affine.apply affine_map<(d0) -> (d0 floordiv 4)>(%a)
  """ + STORE.format("%b")),
    "delinearized": ("%i: index", """
  %l = affine.linearize_index disjoint [%zero, %i] by (1, 10) : index
  %d:2 = affine.delinearize_index %l into (1, 10) : index, index
  %b = arith.addi %d#0, %i : index
  """ + STORE.format("%b")),
    "vector": ("%i: index", """
  %v = vector.broadcast %i : index to vector<2xindex>
  %w = vector.shuffle %v, %v [-1, 0] : vector<2xindex>, vector<2xindex>
  %b = vector.extract %w[0] : index from vector<2xindex>
  """ + STORE.format("%b")),
    "insert": ("%i: index", """
  %p = ub.poison : vector<2xindex>
  %w = vector.insert %i, %p[1] : index into vector<2xindex>
  %b = vector.extract %w[1] : index from vector<2xindex>
  """ + STORE.format("%b")),
    "zeros": ("%i: index", """
  %x = arith.index_cast %i : index to i64
  %y = arith.maxsi %x, %zero64 : i64
  %z = "llvm.intr.ctlz"(%y) <{is_zero_poison = true}> : (i64) -> i64
  %k = arith.index_cast %z : i64 to index
  %s = arith.subi %k, %c64 : index
  %b = arith.addi %s, %i : index
  """ + STORE.format("%b")),
    "clone": ("%i: index", """
  %q = bufferization.clone %t : memref<?xf32> to memref<?xf32>
  memref.store %one, %q[%i] : memref<?xf32>
  %b = memref.load %q[%i] : memref<?xf32>
  memref.store %b, %t[%i] : memref<?xf32>"""),
    "atomic": ("%i: index", """
  %q = scf.for %k = %zero to %c1 step %c1 iter_args(%n = %one) -> f32 {
    %b = memref.atomic_rmw assign %n, %t[%i] : (f32, memref<?xf32>) -> f32
    scf.yield %n : f32
  }
  memref.store %q, %t[%i] : memref<?xf32>"""),
    "parallel": ("%i: index", """
  %q = scf.parallel (%k) = (%zero) to (%c1) step (%c1) init (%one) -> f32 {
    %b = memref.atomic_rmw assign %one, %t[%i] : (f32, memref<?xf32>) -> f32
    scf.reduce(%b : f32) {
    ^bb0(%x: f32, %y: f32):
      scf.reduce.return %x : f32
    }
  }"""),
    "tensor": ("%i: index", """
  %e = tensor.empty() : tensor<1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<1xf32>) {
  ^bb0(%z: f32):
    %b = memref.atomic_rmw assign %one, %t[%i] : (f32, memref<?xf32>) -> f32
    linalg.yield %b : f32
  } -> tensor<1xf32>
  bufferization.materialize_in_destination %r in restrict writable %o : (tensor<1xf32>, memref<1xf32>) -> ()"""),
    "call": ("%i: index", "func.call @g(%t, %i) : (memref<?xf32>, index) -> ()"),
    "blocks": ("%i: index", """
  scf.for %k = %zero to %c1 step %c1 {
    func.call @h(%t, %i) : (memref<?xf32>, index) -> ()
  }"""),
}


@pytest.mark.parametrize("name", PROMISES)
def test_nothing_removes_a_check(name):
    argument, body = PROMISES[name]
    program = bngrad.compile(f"""
func.func private @g(%t: memref<?xf32>, %i: index) attributes {{no_inline, passthrough = ["willreturn"]}} {{
  %one = arith.constant 1.0 : f32
  {STORE.format("%i")}
  return
}}
func.func private @h(%t: memref<?xf32>, %i: index) {{
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0 : index
  %c = arith.cmpi eq, %i, %zero : index
  cf.cond_br %c, ^first, ^other
^first:
  memref.store %one, %t[%zero] : memref<?xf32>
  return
^other:
  {STORE.format("%i")}
  return
}}
func.func @f(%o: memref<1xf32>, %t: memref<?xf32>{" {llvm.readonly}" if name == "readonly" else ""}, {argument})
    attributes {{llvm.memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none,
                                                          errnoMem = none, targetMem0 = none, targetMem1 = none>}} {{
  %zero = arith.constant 0 : index
  %zero64 = arith.constant 0 : i64
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  {body}
  return
}}""")
    memory = np.zeros(30, np.float32)
    for i in (-3, 10, 2**62 + 1, 2**63 - 1, -2**63, 2**40, 0, 9):
        index = INDICES.get(name, lambda i: i)(i)
        if 0 <= index < 10:
            program(ramp(1), memory[10:20], i)
            assert memory.nonzero()[0].tolist() == [10 + index]
            memory[:] = 0
        else:
            with pytest.raises(bngrad.ShapeError, match="expected index of dim 0 of memref"):
                program(ramp(1), memory[10:20], i)
            assert not memory.any()


REFUSED = {
    "a call of a pointer": ("""
  %g = func.constant @g : (index) -> index
  %h = func.constant @h : (index) -> index
  %f = arith.select %c, %g, %h : (index) -> index
  %j = func.call_indirect %f(%i) : (index) -> index""",
                            "expected calls of functions that are known by name, got 'func.constant'"),
    "an intrinsic": ("%j = llvm.call_intrinsic \"llvm.umax.i64\"(%x, %x) : (i64, i64) -> i64",
                     "expected an op that MLIR knows the effects of, got 'llvm.call_intrinsic'"),
    "assembly": ("%j = llvm.inline_asm \"\", \"=r,0\" %x : (i64) -> i64",
                 "expected an op that MLIR knows the effects of, got 'llvm.inline_asm'"),
    "poison memory": ("%j = ub.poison : memref<4xf32>", "expected poison of a number or a vector, got 'ub.poison'"),
    "an unranked cast": ("""
  %q = memref.alloc() : memref<4xf32>
  %p = memref.cast %q : memref<4xf32> to memref<*xf32>
  %u = memref.cast %t : memref<?xf32> to memref<*xf32>
  %w = arith.select %c, %p, %u : memref<*xf32>
  %j = memref.reinterpret_cast %w to offset: [%i], sizes: [1], strides: [1]
      : memref<*xf32> to memref<1xf32, strided<[1], offset: ?>>
  memref.store %one, %j[%zero] : memref<1xf32, strided<[1], offset: ?>>""",
                         "expected source to be a buffer of known rank, got 'memref"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_checked_is_refused(name):
    body, message = REFUSED[name]
    with pytest.raises(bngrad.CompileError, match=message):
        bngrad.compile(f"""
func.func private @g(%i: index) -> index {{
  return %i : index
}}
func.func private @h(%i: index) -> index {{
  return %i : index
}}
func.func @f(%t: memref<?xf32>, %i: index, %c: i1) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %x = arith.index_cast %i : index to i64
  {body}
  return
}}""")


def test_sizes_of_results_are_known_before():
    with pytest.raises(bngrad.CompileError, match="expected size of dim 0 of result 1 to follow from the arguments, got "
                                                  "one that depends on memory that the function writes"):
        bngrad.compile("""
func.func @f(%x: tensor<?xf32>, %k: memref<1xindex>, %n: index) -> (tensor<?xf32>, tensor<?x4xf32>) {
  %zero = arith.constant 0 : index
  memref.store %n, %k[%zero] : memref<1xindex>
  %l = memref.load %k[%zero] : memref<1xindex>
  %s = tensor.empty(%l) : tensor<?x4xf32>
  return %x, %s : tensor<?xf32>, tensor<?x4xf32>
}""")


def test_a_cast_of_an_unranked_buffer():
    program = compile_load("%m: memref<?xf32>, %i: index", """
  %u = memref.cast %m : memref<?xf32> to memref<*xf32>
  %s = memref.reinterpret_cast %u to offset: [%i], sizes: [1], strides: [1]
      : memref<*xf32> to memref<1xf32, strided<[1], offset: ?>>
  %v = memref.load %s[%zero] : memref<1xf32, strided<[1], offset: ?>>""")
    assert call_load(program, ramp(4), 3) == 3
    for i in (-1, 4, 2**60):
        with pytest.raises(bngrad.ShapeError, match="expected (first|last) element of the cast"):
            call_load(program, ramp(4), i)


def test_sizes_whose_product_wraps():
    """All strides are 0, so that the memory is there."""
    program = bngrad.compile("""
!s = memref<?xf32, strided<[?]>>
func.func @f(%m: !s, %n: !s) -> tensor<?x?xf32> {
  %zero = arith.constant 0 : index
  %a = bufferization.to_tensor %m restrict : !s to tensor<?xf32>
  %b = bufferization.to_tensor %n restrict : !s to tensor<?xf32>
  %rows = tensor.dim %a, %zero : tensor<?xf32>
  %columns = tensor.dim %b, %zero : tensor<?xf32>
  %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}""")
    view = np.lib.stride_tricks.as_strided
    assert program(view(ramp(1) + 1, (2,), (0,)), ramp(3)).tolist() == [[1, 2, 3]] * 2
    with pytest.raises(bngrad.ShapeError, match="expected product of sizes to be at most 72057594037927936, got"):
        program(view(ramp(1), (2**32 + 1,), (0,)), view(ramp(1), (2**32,), (0,)))


@pytest.mark.parametrize("op", ["tensor.empty(%n, %m) : tensor<?x?xf32>", "memref.alloca(%n, %m) : memref<?x?xf32>",
                                "memref.alloc(%n, %m) : memref<?x?xf32>"])
def test_new_memory_whose_size_wraps(op):
    if "tensor" in op:
        use = """%b = tensor.insert %c into %a[%i, %i] : tensor<?x?xf32>
  %v = tensor.extract %b[%i, %i] : tensor<?x?xf32>"""
    else:
        use = """memref.store %c, %a[%i, %i] : memref<?x?xf32>
  %v = memref.load %a[%i, %i] : memref<?x?xf32>"""
    program = compile_load("%n: index, %m: index, %i: index", f"""
  %c = arith.constant 3.0 : f32
  %a = {op}
  {use}""")
    assert call_load(program, 2, 3, 1) == 3
    for n, m in [(2**33, 2**31), (2**60, 2**60), (2**62, 4)]:
        with pytest.raises(bngrad.ShapeError, match="expected product of sizes to be at most 72057594037927936, got"):
            call_load(program, n, m, 3)


@pytest.mark.parametrize("op, text", [("extract", "%v = vector.extract %w[%i] : f32 from vector<4xf32>"),
                                      ("insert", "%q = vector.insert %c, %w[%i] : f32 into vector<4xf32>\n"
                                                 "%v = vector.extract %q[0] : f32 from vector<4xf32>")])
def test_positions_in_vectors(op, text):
    program = compile_load("%m: memref<4xf32>, %i: index", f"""
  %c = arith.constant 8.0 : f32
  %w = vector.load %m[%zero] : memref<4xf32>, vector<4xf32>
  {text}""")
    assert call_load(program, ramp(4), 3) == (3 if op == "extract" else 0)
    for i, limit in ((-1, "least 0"), (4, "most 3"), (2**40, "most 3")):
        with pytest.raises(bngrad.ShapeError, match=f"expected position 0 of vector.{op} to be at {limit}, got {i}"):
            call_load(program, ramp(4), i)


def test_sizes_of_ops_without_iterations():
    program = bngrad.compile("""
func.func @f(%x: tensor<?x7xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x7xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}""")
    assert program(np.ones((2, 7), np.float32), 2).tolist() == [7, 7]
    assert program(np.ones((0, 7), np.float32), 0).shape == (0,)
    with pytest.raises(bngrad.ShapeError, match="expected size of dim 0 of operand 1 to be size of dim 0 of operand 0, "
                                                "0, got 100"):
        program(np.ones((0, 7), np.float32), 100)


def test_bounds_of_loops_that_are_far_apart():
    program = compile_load("%m: memref<?xf32>, %low: index, %high: index", """
  %step = arith.constant 2305843009213693952 : index
  scf.parallel (%i) = (%low) to (%high) step (%step) {
    %b = memref.alloc() : memref<512xf32>
    %x = memref.load %m[%zero] : memref<?xf32>
    memref.store %x, %b[%zero] : memref<512xf32>
    scf.reduce
  }
  %v = memref.load %m[%zero] : memref<?xf32>""")
    assert call_load(program, ramp(4) + 1, -5, 5) == 1
    with pytest.raises(bngrad.ShapeError, match="expected upper bound to be at most"):
        call_load(program, ramp(4), -2**62 - 5, 2**62 + 5)


def test_sizes_of_views_are_not_negative():
    program = compile_load("%m: memref<?xi8>, %n: index", """
  %w = memref.view %m[%zero][%n] : memref<?xi8> to memref<?x0xf32>
  %d = memref.dim %w, %zero : memref<?x0xf32>
  %a = memref.alloca(%d) : memref<?xf32>
  %v = arith.constant 1.0 : f32""")
    assert call_load(program, np.zeros(4, np.int8), 3) == 1
    with pytest.raises(bngrad.ShapeError, match="expected dynamic size 0 of the view to be at least 0, got -8"):
        call_load(program, np.zeros(4, np.int8), -8)


@pytest.mark.parametrize("body, message", [
    ("%a = memref.alloc() : memref<4611686018427387904xf32>", "expected a product of sizes of at most 72057594037927936"),
    ("%a = memref.view %m[%zero][] : memref<?xi8> to memref<2xi24>", "expected elements to be floats, or integers of 1, 8"),
    ("%a = llvm.call @g(%x) : (i64) -> i64", "expected calls to be inlined, got 'llvm.call'")])
def test_types_and_calls_that_are_refused(body, message):
    with pytest.raises(bngrad.CompileError, match=message):
        bngrad.compile(f"""
llvm.func @g(i64) -> i64
func.func @f(%m: memref<?xi8>, %x: i64) {{
  %zero = arith.constant 0 : index
  {body}
  return
}}""")


def test_bytes_of_booleans():
    """Each byte but 0 is true, in an index and as data."""
    booleans = np.frombuffer(bytes([0, 1, 2, 0x80, 0xff, 0xfe]), np.bool_)
    program = compile_load("%m: memref<2xf32>, %b: tensor<?xi1>, %i: index", """
  %d = tensor.extract %b[%i] : tensor<?xi1>
  %k = arith.index_castui %d : i1 to index
  %v = memref.load %m[%k] : memref<2xf32>""")
    assert [call_load(program, ramp(2), booleans, i) for i in range(6)] == [0, 1, 1, 1, 1, 1]
    program = bngrad.compile("""
func.func @f(%b: tensor<?xi1>, %c: tensor<?xi1>) -> tensor<?xi1> {
  %r = arith.xori %b, %c : tensor<?xi1>
  return %r : tensor<?xi1>
}""")
    for other in (np.zeros(6, np.bool_), np.ones(6, np.bool_)):
        result = program(booleans, other)
        assert result.view(np.uint8).tolist() == [int(i > 0) ^ int(other[0]) for i in range(6)]
