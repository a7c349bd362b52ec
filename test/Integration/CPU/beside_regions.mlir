// --check evaluates gradients in the branches and loops of scf where they stand: bounds are carried along with the values.

// DEFINE: %{args} = --arg=random:1 --arg=random:2 --arg=random:3:0.5:1 --arg=random:4:0.5:1
// DEFINE: %{check} = bngrad-runner %s %{args} --check
// DEFINE: %{fails} = %python %S/../../Inputs/expect_error.py

!d = tensor<5x7xf32>
!p = tensor<7xf32>
!u = tensor<?x7xf32>

// RUN: %{check} --entry=branch | FileCheck %s --check-prefix=BRANCH
// BRANCH: result 0 value max_error {{[0-9.]*[1-9][^ ]*}} bound {{[0-9.]*[1-9][^ ]*}} ok
func.func @branch(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %i = arith.constant 0 : index
  %first = tensor.extract %m[%i] : !p
  %zero = arith.constant 0.0 : f32
  %is_positive = arith.cmpf ogt, %first, %zero : f32
  %dx = scf.if %is_positive -> !d {
    %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    scf.yield %0#0 : !d
  } else {
    scf.yield %x : !d
  }
  return %dx : !d
}

// RUN: %{check} --entry=switch | FileCheck %s --check-prefix=SWITCH
// SWITCH: result 0 value max_error {{[0-9.]*[1-9][^ ]*}} bound {{[0-9.]*[1-9][^ ]*}} ok
// SWITCH: result 1 value max_error {{[0-9.]*[1-9][^ ]*}} bound {{[0-9.]*[1-9][^ ]*}} ok
func.func @switch(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p) {
  %one = arith.constant 1 : index
  %0:2 = scf.index_switch %one -> !d, !p
  case 1 {
    %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    scf.yield %1#0, %1#1 : !d, !p
  }
  default {
    scf.yield %dy, %m : !d, !p
  }
  return %0#0, %0#1 : !d, !p
}

// A gradient of a gradient, in which only grad_output is inexact; and an exact value beside it.

// RUN: %{check} --entry=loop | FileCheck %s --check-prefix=LOOP
// LOOP: result 0 value max_error {{[0-9.]*[1-9][^ ]*}} bound {{[0-9.]*[1-9][^ ]*}} ok
// LOOP: result 1 value max_error 0 bound 0 ok
func.func @loop(%dy: !d, %x: !d, %m: !p, %v: !p) -> (!d, !p) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %dy, %b = %m) -> (!d, !p) {
    %1:3 = bngrad.batch_norm_backward grad_output(%a : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    %2 = arith.negf %b : !p
    scf.yield %1#0, %2 : !d, !p
  }
  return %0#0, %0#1 : !d, !p
}

// RUN: %{check} --entry=while | FileCheck %s --check-prefix=WHILE
// WHILE: result 0 value max_error {{[0-9.]*[1-9][^ ]*}} bound {{[0-9.]*[1-9][^ ]*}} ok
func.func @while(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0:2 = scf.while (%i = %c0, %a = %dy) : (index, !d) -> (index, !d) {
    %goes_on = arith.cmpi ult, %i, %c2 : index
    scf.condition(%goes_on) %i, %a : index, !d
  } do {
  ^bb0(%i: index, %a: !d):
    %next = arith.addi %i, %c1 : index
    %1 = scf.execute_region -> !d {
      %2:3 = bngrad.batch_norm_backward grad_output(%a : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
          : !d, !p, !p
      scf.yield %2#0 : !d
    }
    %3 = arith.addf %1, %a : !d
    scf.yield %next, %3 : index, !d
  }
  return %0#1 : !d
}

// Dynamic sizes.

// RUN: bngrad-runner %s --arg=random:1@6x7 --arg=random:2@6x7 --arg=random:3:0.5:1 --arg=random:4:0.5:1 --check --entry=dynamic \
// RUN:   | FileCheck %s --check-prefix=BRANCH
func.func @dynamic(%dy: !u, %x: !u, %m: !p, %v: !p) -> !u {
  %true = arith.constant true
  %dx = scf.if %true -> !u {
    %0:3 = bngrad.batch_norm_backward grad_output(%dy : !u) input(%x : !u) mean(%m : !p) variance(%v : !p)
        : !u, !p, !p
    scf.yield %0#0 : !u
  } else {
    scf.yield %x : !u
  }
  return %dx : !u
}

// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got a branch or loop of 'scf.if' that depends on ..." \
// RUN:   bngrad-runner %s %{args} --check --entry=condition
func.func @condition(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %i = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  %first = tensor.extract %0#1[%i] : !p
  %is_positive = arith.cmpf ogt, %first, %zero : f32
  %dx = scf.if %is_positive -> !d {
    scf.yield %dy : !d
  } else {
    scf.yield %x : !d
  }
  return %dx : !d
}

// RUN: %{fails} "%s:...: result 0: expected a bound that can be derived, got 'bngrad.batch_norm_backward' of an operand ..." \
// RUN:   bngrad-runner %s %{args} --check --entry=not_linear
func.func @not_linear(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> !d {
    %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%a : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    scf.yield %1#0 : !d
  }
  return %0 : !d
}

// In a function that is called.

// RUN: %{check} --entry=call | FileCheck %s --check-prefix=CALL
// CALL: result 0 grad_input {{.*}} ok
func.func private @callee(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
      : !d, !p, !p
  return %0#0 : !d
}
func.func @call(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %dx = call @callee(%dy, %x, %m, %v) : (!d, !d, !p, !p) -> !d
  return %dx : !d
}

// In a region of several blocks, which become one.

// RUN: %{check} --entry=blocks | FileCheck %s --check-prefix=BLOCKS
// BLOCKS: result 0 value {{.*}} ok
func.func @blocks(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %0 = scf.execute_region -> !d {
    cf.br ^next
  ^next:
    %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
        : !d, !p, !p
    scf.yield %1#0 : !d
  }
  return %0 : !d
}

// Other regions have no bounds: the reference would leave out the gradients.

// RUN: %{fails} "%s:...: --check: expected ops of bngrad outside of regions, or in those of scf.if, index_switch, for, while and an execute_region of one block, got one in 'scf.forall'" \
// RUN:   bngrad-runner %s %{args} --check --entry=forall
func.func @forall(%dy: !d, %x: !d, %m: !p, %v: !p) -> !d {
  %true = arith.constant true
  %0 = scf.forall (%i) in (2) shared_outs(%out = %x) -> !d {
    %dx = scf.if %true -> !d {
      %1:3 = bngrad.batch_norm_backward grad_output(%dy : !d) input(%x : !d) mean(%m : !p) variance(%v : !p)
          : !d, !p, !p
      scf.yield %1#0 : !d
    } else {
      scf.yield %x : !d
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %dx into %out[0, 0] [5, 7] [1, 1] : !d into !d
    }
  }
  return %0 : !d
}
