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
  // expected-error @+1 {{expected a module for one device, got sharding}}
  %0 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"data"}]>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @+1 {{expected a mesh @other of sharding #sdy.sharding<@other, [{}]>, got none}}
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

func.func @manual(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected an op of Shardy that returns its operand, got 'sdy.manual_computation'}}
  %0 = "sdy.manual_computation"(%x) ({
  ^bb0(%a: tensor<8xf32>):
    "sdy.return"(%a) : (tensor<8xf32>) -> ()
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
