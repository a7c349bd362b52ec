/* InfiniOp's BatchNormBackward over BNGrad's C library. */

#include "infiniop.h"

#include "BNGrad/Runtime/Runtime.h"
#include <stdlib.h>

struct infiniopBatchNormBackward {
  bngradHandle_t handle;
  bngradBatchNormBackwardDescriptor_t gradient;
};

/* In the order of bngradStatus_t. */
static const infiniStatus_t statuses[] = {
    INFINI_STATUS_SUCCESS,          INFINI_STATUS_BAD_PARAM,          INFINI_STATUS_BAD_PARAM,
    INFINI_STATUS_BAD_TENSOR_DTYPE, INFINI_STATUS_BAD_TENSOR_SHAPE,   INFINI_STATUS_BAD_TENSOR_STRIDES,
    INFINI_STATUS_INSUFFICIENT_WORKSPACE, INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED,
    INFINI_STATUS_INTERNAL_ERROR,   INFINI_STATUS_INTERNAL_ERROR};

static infiniStatus_t translate(bngradStatus_t status) { return statuses[status]; }

/* Of grad_input, grad_weight, grad_bias, input, grad_output, weight, mean and variance. */
static infiniStatus_t describe(infiniopTensorDescriptor_t const *from, bngradTensorDescriptor_t *to) {
  static const bngradDtype_t types[] = {BNGRAD_DTYPE_F16, BNGRAD_DTYPE_BF16, BNGRAD_DTYPE_F32};
  for (int i = 0; i < 8; ++i) {
    int is_data = i == 0 || i == 3 || i == 4;
    int64_t stride = 1;
    if (!from[i])
      return INFINI_STATUS_BAD_PARAM;
    if (from[i]->dtype > INFINI_DTYPE_F32 || from[i]->dtype != from[3]->dtype)
      return INFINI_STATUS_BAD_TENSOR_DTYPE;
    if (from[i]->ndim != (is_data ? 3 : 1))
      return INFINI_STATUS_BAD_TENSOR_SHAPE;
    for (int dim = 2; is_data && dim >= 0; stride *= from[i]->shape[dim--])
      if (from[i]->strides[dim] != stride)
        return INFINI_STATUS_BAD_TENSOR_STRIDES;
    infiniStatus_t status = translate(bngradCreateTensorDescriptor(&to[i], types[from[i]->dtype], from[i]->ndim,
                                                                   from[i]->shape, from[i]->strides));
    if (status)
      return status;
  }
  return INFINI_STATUS_SUCCESS;
}

infiniStatus_t infiniopCreateBatchNormBackwardDescriptor(
    infiniopHandle_t handle, infiniopBatchNormBackwardDescriptor_t *desc_ptr,
    infiniopTensorDescriptor_t grad_input, infiniopTensorDescriptor_t grad_weight,
    infiniopTensorDescriptor_t grad_bias, infiniopTensorDescriptor_t input,
    infiniopTensorDescriptor_t grad_output, infiniopTensorDescriptor_t weight,
    infiniopTensorDescriptor_t running_mean, infiniopTensorDescriptor_t running_var) {
  infiniopTensorDescriptor_t from[] = {grad_input,  grad_weight, grad_bias,    input,
                                       grad_output, weight,      running_mean, running_var};
  bngradTensorDescriptor_t to[8] = {0};
  if (!handle || !desc_ptr || !input)
    return INFINI_STATUS_BAD_PARAM;
  if (handle->device)
    return INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED;
  infiniopBatchNormBackwardDescriptor_t desc = calloc(1, sizeof *desc);
  infiniStatus_t status = desc ? describe(from, to) : INFINI_STATUS_INTERNAL_ERROR;
  if (!status)
    status = translate(bngradCreateHandle(&desc->handle, BNGRAD_DEVICE_CPU, 0));
  if (!status)
    status = translate(bngradCreateBatchNormBackwardDescriptor(
        desc->handle, &desc->gradient, NULL, to[0], to[1], to[2], to[4], to[3], to[5], to[6], to[7], NULL));
  for (int i = 0; i < 8; ++i)
    bngradDestroyTensorDescriptor(to[i]);
  if (status)
    infiniopDestroyBatchNormBackwardDescriptor(desc);
  else
    *desc_ptr = desc;
  return status;
}

infiniStatus_t infiniopGetBatchNormBackwardWorkspaceSize(infiniopBatchNormBackwardDescriptor_t desc, size_t *size) {
  return translate(bngradGetBatchNormBackwardWorkspaceSize(desc ? desc->gradient : NULL, size));
}

infiniStatus_t infiniopBatchNormBackward(
    infiniopBatchNormBackwardDescriptor_t desc, void *workspace, size_t workspace_size, void *grad_input,
    void *grad_weight, void *grad_bias, const void *input, const void *grad_output, const void *weight,
    const void *running_mean, const void *running_var, void *stream) {
  return translate(bngradBatchNormBackward(desc ? desc->gradient : NULL, workspace, workspace_size, grad_input,
                                           grad_weight, grad_bias, grad_output, input, weight, running_mean,
                                           running_var, NULL, stream));
}

infiniStatus_t infiniopDestroyBatchNormBackwardDescriptor(infiniopBatchNormBackwardDescriptor_t desc) {
  if (desc) {
    bngradDestroyBatchNormBackwardDescriptor(desc->gradient);
    bngradDestroyHandle(desc->handle);
  }
  free(desc);
  return INFINI_STATUS_SUCCESS;
}
