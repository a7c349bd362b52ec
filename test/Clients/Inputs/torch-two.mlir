// Two gradients in a row on types of torch, in generic form as torch-mlir prints it.
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[4,5,6,7],f32>)
      -> (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>), sym_name = "main"}> ({
  ^bb0(%x: !torch.vtensor<[4,5,6,7],f32>, %s: !torch.vtensor<[5],f32>, %m: !torch.vtensor<[5],f32>, %i: !torch.vtensor<[5],f32>,
       %z: !torch.vtensor<[4,5,6,7],f32>, %t: !torch.vtensor<[5],f32>, %n: !torch.vtensor<[5],f32>, %j: !torch.vtensor<[5],f32>, %g: !torch.vtensor<[4,5,6,7],f32>):
    %none = "torch.constant.none"() : () -> !torch.none
    %true = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %eps = "torch.constant.float"() <{value = 1.0e-5 : f64}> : () -> !torch.float
    %all = "torch.prim.ListConstruct"(%true, %true, %true) : (!torch.bool, !torch.bool, !torch.bool) -> !torch.list<bool>
    %outer:3 = "torch.aten.native_batch_norm_backward"(%g, %z, %t, %none, %none, %n, %j, %true, %eps, %all)
        : (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.none, !torch.none, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.bool, !torch.float, !torch.list<bool>) -> (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>)
    %inner:3 = "torch.aten.native_batch_norm_backward"(%outer#0, %x, %s, %none, %none, %m, %i, %true, %eps, %all)
        : (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.none, !torch.none, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.bool, !torch.float, !torch.list<bool>) -> (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>)
    "func.return"(%inner#0, %inner#1, %inner#2, %outer#1, %outer#2) : (!torch.vtensor<[4,5,6,7],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>, !torch.vtensor<[5],f32>) -> ()
  }) : () -> ()
}) : () -> ()
