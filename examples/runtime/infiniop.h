/* The interface of InfiniOp's BatchNormBackward, as far as this example needs
 * it: (N, C, L) without gaps, one type for all, no epsilon. */

#ifndef INFINIOP_H
#define INFINIOP_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
  INFINI_STATUS_SUCCESS,
  INFINI_STATUS_INTERNAL_ERROR,
  INFINI_STATUS_BAD_PARAM,
  INFINI_STATUS_BAD_TENSOR_DTYPE,
  INFINI_STATUS_BAD_TENSOR_SHAPE,
  INFINI_STATUS_BAD_TENSOR_STRIDES,
  INFINI_STATUS_INSUFFICIENT_WORKSPACE,
  INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED
} infiniStatus_t;

typedef enum {
  INFINI_DTYPE_F16,
  INFINI_DTYPE_BF16,
  INFINI_DTYPE_F32,
  INFINI_DTYPE_F64
} infiniDtype_t;

typedef struct {
  int device;
} *infiniopHandle_t; /* 0: the CPU */

typedef struct {
  infiniDtype_t dtype;
  int ndim;
  int64_t shape[3], strides[3];
} *infiniopTensorDescriptor_t;

typedef struct infiniopBatchNormBackward *infiniopBatchNormBackwardDescriptor_t;

infiniStatus_t infiniopCreateBatchNormBackwardDescriptor(
    infiniopHandle_t handle, infiniopBatchNormBackwardDescriptor_t *desc_ptr,
    infiniopTensorDescriptor_t grad_input,
    infiniopTensorDescriptor_t grad_weight,
    infiniopTensorDescriptor_t grad_bias, infiniopTensorDescriptor_t input,
    infiniopTensorDescriptor_t grad_output, infiniopTensorDescriptor_t weight,
    infiniopTensorDescriptor_t running_mean,
    infiniopTensorDescriptor_t running_var);

infiniStatus_t infiniopGetBatchNormBackwardWorkspaceSize(
    infiniopBatchNormBackwardDescriptor_t desc, size_t *size);

infiniStatus_t infiniopBatchNormBackward(
    infiniopBatchNormBackwardDescriptor_t desc, void *workspace,
    size_t workspace_size, void *grad_input, void *grad_weight, void *grad_bias,
    const void *input, const void *grad_output, const void *weight,
    const void *running_mean, const void *running_var, void *stream);

infiniStatus_t infiniopDestroyBatchNormBackwardDescriptor(
    infiniopBatchNormBackwardDescriptor_t desc);

#endif
