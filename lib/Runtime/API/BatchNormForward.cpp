//===- BatchNormForward.cpp - the forward pass in C -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpCall.h"

using namespace bngrad;

bngradStatus_t bngradCreateBatchNormTrainingDescriptor(
    bngradHandle_t handle, bngradBatchNormTrainingDescriptor_t *descriptor,
    const bngradBatchNormTrainingOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t variance, bngradTensorDescriptor_t invStd,
    bngradTensorDescriptor_t runningMean,
    bngradTensorDescriptor_t runningVariance, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset) {
  return createOp(OpKind::Training, handle, descriptor, options,
                  {output, mean, variance, invStd, runningMean, runningVariance,
                   input, scale, offset});
}

bngradStatus_t bngradCreateBatchNormTrainingReluDescriptor(
    bngradHandle_t handle, bngradBatchNormTrainingDescriptor_t *descriptor,
    const bngradBatchNormTrainingOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t variance, bngradTensorDescriptor_t invStd,
    bngradTensorDescriptor_t runningMean,
    bngradTensorDescriptor_t runningVariance, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset,
    bngradTensorDescriptor_t residual) {
  return createOp(OpKind::TrainingRelu, handle, descriptor, options,
                  {output, mean, variance, invStd, runningMean, runningVariance,
                   input, scale, offset, residual});
}

bngradStatus_t bngradDestroyBatchNormTrainingDescriptor(
    bngradBatchNormTrainingDescriptor_t descriptor) {
  delete descriptor;
  return BNGRAD_SUCCESS;
}

bngradStatus_t bngradGetBatchNormTrainingWorkspaceSize(
    bngradBatchNormTrainingDescriptor_t descriptor, size_t *size) {
  return getWorkspaceSize(descriptor, size);
}

bngradStatus_t
bngradDescribeBatchNormTraining(bngradBatchNormTrainingDescriptor_t descriptor,
                                char *text, size_t size) {
  return describeOp(descriptor, text, size);
}

bngradStatus_t bngradBatchNormTraining(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *output, void *mean, void *variance,
    void *invStd, void *runningMean, void *runningVariance, const void *input,
    const void *scale, const void *offset, void *stream) {
  return runOp(OpKind::Training, descriptor, {workspace, workspaceSize},
               {output, mean, variance, invStd, runningMean, runningVariance,
                input, scale, offset},
               stream);
}

bngradStatus_t bngradBatchNormTrainingRelu(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *output, void *mean, void *variance,
    void *invStd, void *runningMean, void *runningVariance, const void *input,
    const void *scale, const void *offset, const void *residual, void *stream) {
  return runOp(OpKind::TrainingRelu, descriptor, {workspace, workspaceSize},
               {output, mean, variance, invStd, runningMean, runningVariance,
                input, scale, offset, residual},
               stream);
}

bngradStatus_t bngradBatchNormTrainingAsync(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *output, void *mean, void *variance,
    void *invStd, void *runningMean, void *runningVariance, const void *input,
    const void *scale, const void *offset, void *stream,
    const bngradExecutor_t *executor, const bngradCompletion_t *done) {
  return submitOp(OpKind::Training, descriptor, {workspace, workspaceSize},
                  {output, mean, variance, invStd, runningMean, runningVariance,
                   input, scale, offset},
                  stream, executor, done);
}

bngradStatus_t bngradCreateBatchNormInferenceDescriptor(
    bngradHandle_t handle, bngradBatchNormInferenceDescriptor_t *descriptor,
    const bngradBatchNormInferenceOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic) {
  return createOp(OpKind::Inference, handle, descriptor, options,
                  {output, input, scale, offset, mean, statistic});
}

bngradStatus_t bngradDestroyBatchNormInferenceDescriptor(
    bngradBatchNormInferenceDescriptor_t descriptor) {
  delete descriptor;
  return BNGRAD_SUCCESS;
}

bngradStatus_t bngradGetBatchNormInferenceWorkspaceSize(
    bngradBatchNormInferenceDescriptor_t descriptor, size_t *size) {
  return getWorkspaceSize(descriptor, size);
}

bngradStatus_t bngradDescribeBatchNormInference(
    bngradBatchNormInferenceDescriptor_t descriptor, char *text, size_t size) {
  return describeOp(descriptor, text, size);
}

bngradStatus_t bngradBatchNormInference(
    bngradBatchNormInferenceDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *output, const void *input, const void *scale,
    const void *offset, const void *mean, const void *statistic, void *stream) {
  return runOp(OpKind::Inference, descriptor, {workspace, workspaceSize},
               {output, input, scale, offset, mean, statistic}, stream);
}

bngradStatus_t bngradBatchNormInferenceAsync(
    bngradBatchNormInferenceDescriptor_t descriptor, void *workspace,
    size_t workspaceSize, void *output, const void *input, const void *scale,
    const void *offset, const void *mean, const void *statistic, void *stream,
    const bngradExecutor_t *executor, const bngradCompletion_t *done) {
  return submitOp(OpKind::Inference, descriptor, {workspace, workspaceSize},
                  {output, input, scale, offset, mean, statistic}, stream,
                  executor, done);
}
