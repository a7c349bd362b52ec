// RUN: bngrad-opt %s --split-input-file --bngrad-drop-annotations --verify-diagnostics | FileCheck %s

// Values that are replicated on the devices of a mesh, and axes of one device.

// CHECK-NOT: sdy
// CHECK-LABEL: func.func @replicated(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4xf32>, %[[Y:[^:]+]]: tensor<4xf32> {jax.arg = "y"}) -> tensor<8x4xf32> {
// CHECK-NEXT: return %[[X]]
"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=1]>, sym_name = "mesh"}> : () -> ()
func.func @replicated(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", ?}]>, mhlo.sharding = "{replicated}"},
                      %y: tensor<4xf32> {jax.arg = "y", sdy.sharding = #sdy.sharding<@mesh, [{?}], replicated={"x"}>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=1]>, [{"z"}, {}]>}) {
  %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["data"=4]>, sym_name = "mesh"}> : () -> ()
// expected-error @+1 {{expected a module for one device, got sharding #sdy.sharding<@mesh, [{"data"}]> over the 4 devices of axis 'data'}}
func.func @argument(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
  return
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["data"=4]>, sym_name = "mesh"}> : () -> ()
func.func @constraint(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected a module for one device, got sharding #sdy.sharding<@mesh, [{"data"}]> over the 4 devices of axis 'data'}}
  %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"data"}]>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @+1 {{expected a mesh @other of the sharding, got none}}
func.func @no_mesh(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{}]>}) {
  return
}

// -----

// expected-error @+1 {{expected a module for one device, got sharding "{devices=[2,1]0,1}" over 2 devices}}
func.func @gspmd(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]0,1}"}) {
  return
}

// -----

// CHECK-LABEL: func.func @gspmd_replicated(
// CHECK-SAME: %{{.+}}: tensor<8x4xf32>)
func.func @gspmd_replicated(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[1,1,2]0,1 last_tile_dim_replicate}"}) {
  return
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
// expected-error @+1 {{expected axis 'y' of sharding #sdy.sharding<@mesh, [{"y"}]> to be in its mesh}}
func.func @no_axis(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  return
}

// -----

// As JAX prints the mesh of one device.

// CHECK-LABEL: func.func @jax(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: return %[[X]]
"sdy.mesh"() <{mesh = #sdy.mesh<["d"=1]>, sym_name = "mesh"}> {stablehlo.mesh = {axes = [{name = "d", size = 1 : i64}]}} : () -> ()
"sdy.mesh"() <{mesh = #sdy.mesh<["e"=1], device_ids=[0]>, sym_name = "a mesh"}> : () -> ()
func.func @jax(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@"a mesh", [{}, {"e"}]>}) {
  "sdy.sharding_group"(%x) <{group_id = 0 : i64}> : (tensor<8x4xf32>) -> ()
  return %x : tensor<8x4xf32>
}

// -----

// The program of one device is that of all.

// CHECK-LABEL: func.func @manual(
// CHECK-SAME: %[[X:[^:]+]]: tensor<8xf32>, %[[Y:[^:]+]]: tensor<8xf32>)
// CHECK-NEXT: %[[NEG:.+]] = arith.negf %[[Y]]
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[X]], %[[NEG]]
// CHECK-NEXT: return %[[SUM]], %[[NEG]], %[[X]]
"sdy.mesh"() <{mesh = #sdy.mesh<["d"=1, "e"=2]>, sym_name = "mesh"}> : () -> ()
func.func @manual(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:2 = "sdy.manual_computation"(%x, %y) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}]>, <@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{"d"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}]>, <@mesh, [{}]>]>}> ({
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %1 = "sdy.named_computation"(%b) <{name = "inner"}> ({
    ^bb0(%c: tensor<8xf32>):
      %2 = arith.negf %c : tensor<8xf32>
      %3 = "sdy.sharding_constraint"(%2) <{sharding = #sdy.sharding<@mesh, [{}]>}> : (tensor<8xf32>) -> tensor<8xf32>
      "sdy.return"(%3) : (tensor<8xf32>) -> ()
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %4 = arith.addf %a, %1 : tensor<8xf32>
    "sdy.return"(%4, %1) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %5 = "sdy.manual_computation"() <{in_shardings = #sdy.sharding_per_value<[]>, manual_axes = #sdy<manual_axes{"d"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}]>]>}> ({
    "sdy.return"(%x) : (tensor<8xf32>) -> ()
  }) : () -> tensor<8xf32>
  return %0#0, %0#1, %5 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["d"=2]>, sym_name = "mesh"}> : () -> ()
func.func @manual_devices(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected a module for one device, got sharding #sdy<manual_axes{"d"}> over the 2 devices of axis 'd'}}
  %0 = "sdy.manual_computation"(%x) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{"d"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{}]>]>}> ({
  ^bb0(%a: tensor<8xf32>):
    "sdy.return"(%a) : (tensor<8xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @other_types(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected an op of Shardy that returns its operand or what its region computes, got 'sdy.manual_computation'}}
  %0 = "sdy.manual_computation"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "sdy.return"(%x) : (tensor<8xf32>) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Bounds of dynamic sizes.

// CHECK-LABEL: func.func @bounds(
// CHECK-SAME: %[[X:[^:]+]]: tensor<?x4xf32>) -> tensor<?x4xf32> {
// CHECK-NEXT: %[[R:.+]] = arith.negf %[[X]] : tensor<?x4xf32>
// CHECK-NEXT: return %[[R]] : tensor<?x4xf32>
func.func @bounds(%x: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>> {
  %0 = arith.negf %x : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
  return %0 : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
}
