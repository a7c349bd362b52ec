// RUN: bngrad-opt %s --bngrad-embed-cuda-images | FileCheck %s
// RUN: bngrad-opt %s --bngrad-cuda-pipeline=chip=sm_80,sm_90 | FileCheck %s

// One object needs no choice.
// CHECK: gpu.binary @one [
gpu.binary @one [#gpu.object<#nvvm.target<chip = "sm_90">, assembly = "ptx">]

// CHECK: gpu.binary @two <#bngrad.cuda_images> [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "ptx80">,
// CHECK-SAME: #gpu.object<#nvvm.target<chip = "sm_90">, assembly = "ptx90">]
gpu.binary @two [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = "ptx80">, #gpu.object<#nvvm.target<chip = "sm_90">, assembly = "ptx90">]
