// RUN: bngrad-opt %s --split-input-file --allow-unregistered-dialect --bngrad-drop-annotations --verify-diagnostics | \
// RUN:   FileCheck %s

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

// Spaces, escapes, and names that look like other parts of the grammar.

// CHECK-LABEL: func.func @names(
// CHECK-SAME: %{{[^:]+}}: tensor<8x4xf32>) -> tensor<8x4xf32> {
"sdy.mesh"() <{mesh = #sdy.mesh< ["a>b"=1, "replicated={"=1,"\22]"=1, "@x"=2] , device_ids = [1, 0]>, sym_name = "m\22>"}> : () -> ()
func.func @names(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@"m\22>", [ {"a>b" , "\"]", ?}p1, {"replicated={"}] , replicated = {"@x"}>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["a>b"=1, "c"=2]>, [{"a>b"}, {}], replicated={"c"}>}) {
  return %x : tensor<8x4xf32>
}

// -----

// expected-error @+1 {{over the 2 devices of axis 'c'}}
func.func @quoted_bracket(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a>b"=1, "c"=2]>, [{"c"}]>}) {
  return
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["x"=8]>, sym_name = "mesh"}> : () -> ()
// expected-error @+1 {{over 2 of the 8 devices of axis 'x'}}
func.func @part(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}], replicated={"x":(1)4}, unreduced=max{"x":(4)2}>}) {
  return
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["x"=8]>, sym_name = "mesh"}> : () -> ()
// expected-error @+1 {{expected a part of the 8 devices of axis 'x' before this in sharding #sdy.sharding<@mesh, [{"x":(2)8}]>, got '}]>'}}
func.func @no_part(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)8}]>}) {
  return
}

// -----

// Attributes of other ops; debugging information and rules name no devices.

// CHECK-LABEL: func.func @debug(
// CHECK-NEXT: "some.op"() : () -> ()
// CHECK-NEXT: return
"sdy.mesh"() <{mesh = #sdy.mesh<["x"=1, "y"=4]>, sym_name = "mesh"}> : () -> ()
"sdy.mesh"() <{mesh = #sdy.mesh<[], device_ids=[3]>, sym_name = "maximal"}> : () -> ()
func.func @debug() {
  "some.op"() {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>, #sdy.sharding<@maximal, []>]>,
               sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} reduction={j}, custom>,
               sdy.sharding_origins = {y = "input: 0"},
               sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"y" = operand-0 -> [result-0]}]}]>} : () -> ()
  return
}

// -----

"sdy.mesh"() <{mesh = #sdy.mesh<["x"=1, "y"=4]>, sym_name = "mesh"}> : () -> ()
func.func @collective(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = "sdy.all_gather"(%x) <{gathering_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, out_sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = "sdy.all_to_all"(%0) <{out_sharding = #sdy.sharding<@mesh, [{}, {}]>, params = #sdy<all_to_all_param_list[{"x"}: 0->1]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-error @+1 {{expected a module for one device, got sharding #sdy<axis_ref_list{"y"}> over the 4 devices of axis 'y'}}
  %2 = "sdy.all_reduce"(%1) <{out_sharding = #sdy.sharding<@mesh, [{}, {}]>, reduction_axes = #sdy<axis_ref_list{"y"}>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// expected-error @+1 {{expected an integer of at least 1 in sharding #sdy.mesh<["x"=0]>, got '0]>'}}
"sdy.mesh"() <{mesh = #sdy.mesh<["x"=0]>, sym_name = "mesh"}> : () -> ()

// -----

// expected-error @+1 {{expected an integer of at least 1 in sharding #sdy.mesh<["x"=2, "y"=-2]>, got '-2]>'}}
"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=-2]>, sym_name = "mesh"}> : () -> ()

// -----

// expected-error @+1 {{expected one axis 'x' before this in sharding #sdy.mesh<["x"=2, "x"=1]>, got ']>'}}
"sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "x"=1]>, sym_name = "mesh"}> : () -> ()

// -----

// expected-error @+1 {{expected '}' after '?' in sharding #sdy.sharding<mesh<["x"=1]>, [{?, "x"}]>, got '"x"}]>'}}
func.func @malformed(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=1]>, [{?, "x"}]>}) {
  return
}

// -----

// expected-error @+1 {{expected a sharding, a mesh or axes in sharding #sdy.plan<["x"]>, got '<["x"]>'}}
func.func @unknown(%x: tensor<8xf32> {sdy.plan = #sdy.plan<["x"]>}) {
  return
}

// -----

// XLA's shardings.

// CHECK-LABEL: func.func @xla(
// CHECK-SAME: %{{[^:]+}}: tensor<8x4xf32>, %{{[^:]+}}: tensor<8x4xf32>, %{{[^:]+}}: tensor<8x4xf32>, %{{[^:]+}}: tensor<8x4xf32>, %{{[^:]+}}: tensor<8x4xf32>)
func.func @xla(%a: tensor<8x4xf32> {mhlo.sharding = ""}, %b: tensor<8x4xf32> {mhlo.sharding = "{maximal device=3 shard_as 1}"},
               %c: tensor<8x4xf32> {mhlo.sharding = "{devices=[1,1,2,2]<=[2,2]T(1,0) last_tile_dims={replicated, replicated} metadata={op_name=\"}\" {a}}}"},
               %d: tensor<8x4xf32> {mhlo.sharding = "{mesh['a'=2,b=1], device_ids=([2]), [{b, ?}, {'1'}], replicated={'a':(1)2}}"},
               %e: tensor<8x4xf32> {mhlo.sharding = "{manual}"}) {
  "some.op"() {mhlo.sharding = "{{replicated}, {unknown}, {devices=[1,1]0}, {manual shard_like 2}, {maximal device=0}, /*index=5*/{maximal_mesh[device_id=1]}, {mesh[a=2], replicated}}"} : () -> ()
  "some.op"() {mhlo.sharding = "{}"} : () -> ()
  return
}

// -----

func.func @tuple() {
  // expected-error @+1 {{expected a module for one device, got sharding "{{replicated}, {devices=[2]0,1}}" over 2 devices}}
  "some.op"() {mhlo.sharding = "{{replicated}, {devices=[2]0,1}}"} : () -> ()
  return
}

// -----

// expected-error @+1 {{over 2 devices}}
func.func @last_tile_dims(%x: tensor<8xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}"}) {
  return
}

// -----

// The word is in a name.

// expected-error @+1 {{over 4 devices}}
func.func @last_tile_dim(%x: tensor<8xf32> {mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dims={unreduced, maximal} metadata={op_name=\"last_tile_dim_replicate\"}}"}) {
  return
}

// -----

// expected-error @+1 {{over 9223372036854775807 devices}}
func.func @overflow(%x: tensor<8xf32> {mhlo.sharding = "{devices=[4294967296,4294967296]<=[4294967296,4294967296]}"}) {
  return
}

// -----

// expected-error @+1 {{over the 2 devices of axis 'a'}}
func.func @named(%x: tensor<8xf32> {mhlo.sharding = "{mesh[a=2,b=1], [{b, 0}]}"}) {
  return
}

// -----

// expected-error @+1 {{over 6 devices}}
func.func @named_manual(%x: tensor<8xf32> {mhlo.sharding = "{mesh['a'=2,'b'=3], manual}"}) {
  return
}

// -----

module attributes {mhlo.num_partitions = 2 : i32} {
  // expected-error @+1 {{expected a module for one device, got sharding "{manual}" over 2 devices}}
  func.func @manual_partitions(%x: tensor<8xf32> {mhlo.sharding = "{manual}"}) {
    return
  }
}

// -----

// expected-error @+1 {{expected one device for each tile before this in sharding "{devices=[1,1]0,1}", got '}'}}
func.func @too_many_devices(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[1,1]0,1}"}) {
  return
}

// -----

// expected-error @+1 {{expected an integer of at least 1 in sharding "{devices=[-1,-1]0}", got '-1,-1]0}'}}
func.func @negative_tiles(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[-1,-1]0}"}) {
  return
}

// -----

// expected-error @+1 {{expected ',' or ']' in sharding "{devices=[2", got the end}}
func.func @cut(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2"}) {
  return
}

// -----

// A serialized sharding.

// expected-error @+1 {{expected '{' in sharding "\08\03", got '\08\03'}}
func.func @bytes(%x: tensor<8xf32> {mhlo.sharding = "\08\03"}) {
  return
}

// -----

// expected-error @+1 {{expected the end in sharding "{replicated}}", got '}'}}
func.func @text_after(%x: tensor<8xf32> {mhlo.sharding = "{replicated}}"}) {
  return
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
