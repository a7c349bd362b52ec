//===- BatchNormBackward.cpp - the gradient in C --------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpCall.h"

using namespace bngrad;

bngradStatus_t bngradCreateBatchNormBackwardDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t gradInput, bngradTensorDescriptor_t gradScale,
    bngradTensorDescriptor_t gradOffset, bngradTensorDescriptor_t gradOutput,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t scale,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic,
    bngradTensorDescriptor_t mask) {
  return createOp(OpKind::Backward, handle, descriptor, options,
                  {gradInput, gradScale, gradOffset, gradOutput, input, scale,
                   mean, statistic, mask});
}

bngradStatus_t bngradCreateBatchNormBackwardReduceDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t sums, bngradTensorDescriptor_t gradOutput,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t mask) {
  return createOp(OpKind::BackwardReduce, handle, descriptor, options,
                  {sums, gradOutput, input, mean, mask});
}

bngradStatus_t bngradCreateBatchNormBackwardElemtDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t gradInput, bngradTensorDescriptor_t gradOutput,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t scale,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic,
    bngradTensorDescriptor_t sums, bngradTensorDescriptor_t mask) {
  return createOp(
      OpKind::BackwardElemt, handle, descriptor, options,
      {gradInput, gradOutput, input, scale, mean, statistic, sums, mask});
}

bngradStatus_t bngradCreateBatchNormBackwardReluDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t gradInput, bngradTensorDescriptor_t gradScale,
    bngradTensorDescriptor_t gradOffset, bngradTensorDescriptor_t gradResidual,
    bngradTensorDescriptor_t gradOutput, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t statistic, bngradTensorDescriptor_t output) {
  return createOp(OpKind::BackwardRelu, handle, descriptor, options,
                  {gradInput, gradScale, gradOffset, gradResidual, gradOutput,
                   input, scale, mean, statistic, output});
}

bngradStatus_t bngradDestroyBatchNormBackwardDescriptor(
    bngradBatchNormBackwardDescriptor_t descriptor) {
  delete descriptor;
  return BNGRAD_SUCCESS;
}

bngradStatus_t bngradGetBatchNormBackwardWorkspaceSize(
    bngradBatchNormBackwardDescriptor_t descriptor, size_t *size) {
  return getWorkspaceSize(descriptor, size);
}

bngradStatus_t
bngradDescribeBatchNormBackward(bngradBatchNormBackwardDescriptor_t descriptor,
                                char *text, size_t size) {
  return describeOp(descriptor, text, size);
}

bngradStatus_t bngradBatchNormBackward(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *gradInput, void *gradScale, void *gradOffset,
    const void *gradOutput, const void *input, const void *scale,
    const void *mean, const void *statistic, const void *mask, void *stream) {
  return runOp(OpKind::Backward, descriptor, {workspace, workspaceSize},
               {gradInput, gradScale, gradOffset, gradOutput, input, scale,
                mean, statistic, mask},
               stream);
}

bngradStatus_t bngradBatchNormBackwardReduce(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *sums, const void *gradOutput, const void *input,
    const void *mean, const void *mask, void *stream) {
  return runOp(OpKind::BackwardReduce, descriptor, {workspace, workspaceSize},
               {sums, gradOutput, input, mean, mask}, stream);
}

bngradStatus_t bngradBatchNormBackwardElemt(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *gradInput, const void *gradOutput,
    const void *input, const void *scale, const void *mean,
    const void *statistic, const void *sums, const int64_t *count,
    const void *mask, void *stream) {
  return runOp(
      OpKind::BackwardElemt, descriptor, {workspace, workspaceSize},
      {gradInput, gradOutput, input, scale, mean, statistic, sums, count, mask},
      stream);
}

bngradStatus_t bngradBatchNormBackwardRelu(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *gradInput, void *gradScale, void *gradOffset,
    void *gradResidual, const void *gradOutput, const void *input,
    const void *scale, const void *mean, const void *statistic,
    const void *output, void *stream) {
  return runOp(OpKind::BackwardRelu, descriptor, {workspace, workspaceSize},
               {gradInput, gradScale, gradOffset, gradResidual, gradOutput,
                input, scale, mean, statistic, output},
               stream);
}

bngradStatus_t bngradBatchNormBackwardAsync(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *gradInput, void *gradScale, void *gradOffset,
    const void *gradOutput, const void *input, const void *scale,
    const void *mean, const void *statistic, const void *mask, void *stream,
    const bngradExecutor_t *executor, const bngradCompletion_t *done) {
  return submitOp(OpKind::Backward, descriptor, {workspace, workspaceSize},
                  {gradInput, gradScale, gradOffset, gradOutput, input, scale,
                   mean, statistic, mask},
                  stream, executor, done);
}
