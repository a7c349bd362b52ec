// kept

// REQUIRES: numpy
// RUN: %python %bngrad_src_root/fuzz/programs/hunt.py --bin=%bngrad_obj_root/bin --replay=%s

// WAY: cpu threads=1
// WAY: cpu threads=2
// WAY: cpu threads=3
// WAY: cpu entry=ciface
// WAY: cpu mcpu=x86-64-v3
// WAY: cpu mcpu=x86-64
// WAY: cpu schedule=#bngrad.schedule<sizes,threads=7,vector_bits=512,streaming_bytes=0,columns=1024,blocks=2,fma=false>
// WAY: cpu schedule=#bngrad.schedule<rows,threads=3,vector_bits=512,streaming_bytes=1,columns=64,blocks=2,fma=true>
// WAY: cpu schedule=#bngrad.schedule<tiles,threads=2,vector_bits=512,streaming_bytes=0,columns=1024,blocks=5,fma=false>
// WAY: cpu schedule=#bngrad.schedule<tiles,threads=3,vector_bits=512,streaming_bytes=1,columns=1024,blocks=16,fma=true>
// WAY: cpu from=to-linalg
// WAY: cpu from=import
// WAY: cpu from=decompose
// WAY: cpu from=fuse
// WAY: cpu from=group
// WAY: cpu form=generic
// WAY: cpu form=bytecode
// WAY: cpu form=verified
// WAY: cuda chip=sm_75
// WAY: cuda chip=sm_80
// WAY: cuda chip=sm_90
// WAY: cuda chip=sm_120
// WAY: cuda chip=sm_120
// WAY: cuda chip=sm_120 form=bytecode
// WAY: cuda chip=sm_120 schedule=#bngrad.schedule<two_pass,threads=64,vector_bits=128,columns=32,blocks=4,fma=true>
// WAY: runner target=cpu
// WAY: runner target=cuda-emulator chip=sm_90
// PROGRAM: {"arguments": [{"shape": [64, 13], "element": "f32", "dynamic": [true, false], "role": "plain", "seed": 929811679, "special": "largest", "layout": null, "by_channel": [0, 1]}, {"shape": [64, 13], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 929811680, "special": "", "layout": null, "by_channel": [0, 1]}, {"shape": [64, 13], "element": "f32", "dynamic": [false, false], "role": "plain", "seed": 929811681, "special": "largest", "layout": null, "by_channel": [0, 1]}, {"shape": [64, 13], "element": "f32", "dynamic": [false, true], "role": "positive", "seed": 929811682, "special": "largest", "layout": null, "by_channel": [0, 1]}, {"shape": [2, 64, 13], "element": "f32", "dynamic": [true, false, true], "role": "plain", "seed": 929811683, "special": "largest", "layout": null, "by_channel": [0, 1]}, {"shape": [], "element": "i64", "dynamic": [], "role": "count", "seed": 929811684, "special": "", "layout": null, "by_channel": []}, {"shape": [2, 64, 13], "element": "f32", "dynamic": [false, true, false], "role": "plain", "seed": 929811685, "special": "largest", "layout": null, "by_channel": [0, 1]}], "ops": [{"kind": "element", "operands": [0, 1, 2, 3, 4, 5], "attrs": {"names": ["grad_output", "input", "mean", "inv_std", "sums", "count"], "features": [0, 1], "epsilon": 0.0, "statistics": "batch", "elements": ["f32", "f32", "f32"]}}, {"kind": "broadcast", "operands": [7], "attrs": {"dims": [0], "sizes": [2]}}, {"kind": "if", "operands": [8, 6], "attrs": {"otherwise": 0, "taken": true, "by": 0}, "body": {"arguments": [{"shape": [2, 64, 13], "element": "f32", "dynamic": [false, false, false], "role": "plain", "seed": 0, "special": "", "layout": null, "by_channel": []}, {"shape": [2, 64, 13], "element": "f32", "dynamic": [false, true, false], "role": "plain", "seed": 406732882, "special": "largest", "layout": null, "by_channel": [0, 1]}], "ops": [{"kind": "map", "operands": [0, 0, 1], "attrs": {"style": "generic", "maps": [[0, 1, 2], [0, 1, 2], [0, 1, 2]], "steps": [["addf", 0, 1], ["subf", 3, 2]], "outs": [4], "flags": ""}}], "returns": [2], "form": "tensor", "result_layouts": [], "joined": -1}}], "returns": [8, 9], "form": "tensor", "result_layouts": [], "joined": -1}
// SEED: 880015

func.func @f880015(%a0: tensor<?x13xf32>, %a1: tensor<64x13xf32>, %a2: tensor<64x13xf32>, %a3: tensor<64x?xf32>, %a4: tensor<?x64x?xf32>, %a5: tensor<i64>, %a6: tensor<2x?x13xf32>) -> (tensor<2x64x13xf32>, tensor<2x64x13xf32>) {
  %1 = bngrad.batch_norm_backward_elemt grad_output(%a0 : tensor<?x13xf32>) input(%a1 : tensor<64x13xf32>) mean(%a2 : tensor<64x13xf32>) inv_std(%a3 : tensor<64x?xf32>) sums(%a4 : tensor<?x64x?xf32>) count(%a5 : tensor<i64>) {feature_dims = array<i64: 0, 1>} : tensor<64x13xf32>
  %2 = tensor.empty() : tensor<2x64x13xf32>
  %3 = linalg.broadcast ins(%1 : tensor<64x13xf32>) outs(%2 : tensor<2x64x13xf32>) dimensions = [0]
  %4 = arith.constant 0 : index
  %5 = tensor.dim %3, %4 : tensor<2x64x13xf32>
  %6 = arith.constant 2 : index
  %7 = arith.cmpi eq, %5, %6 : index
  %8 = scf.if %7 -> (tensor<2x64x13xf32>) {
  %9 = tensor.empty() : tensor<2x64x13xf32>
  %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %3, %a6 : tensor<2x64x13xf32>, tensor<2x64x13xf32>, tensor<2x?x13xf32>) outs(%9 : tensor<2x64x13xf32>) {
  ^bb0(%in9_0: f32, %in9_1: f32, %in9_2: f32, %out9_0: f32):
  %11 = arith.addf %in9_0, %in9_1 : f32
  %12 = arith.subf %11, %in9_2 : f32
  linalg.yield %12 : f32
  } -> tensor<2x64x13xf32>
  scf.yield %10 : tensor<2x64x13xf32>
  } else {
  scf.yield %3 : tensor<2x64x13xf32>
  }
  return %3, %8 : tensor<2x64x13xf32>, tensor<2x64x13xf32>
}
