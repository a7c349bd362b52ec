/*===- Runtime.h - batch normalization from C ------------------- -*- C -*-===*\
|*
|* Licensed under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/
/*
 * libBNGradRuntime.so: batch normalization and its gradient for programs
 * without a compiler. A tensor descriptor has a shape and strides, an operator
 * descriptor has the tensors of an operator, and a call passes their data. For
 * a gradient:
 *
 *   create a handle, tensor descriptors and an operator descriptor;
 *   ask for the size of the workspace, and allocate it;
 *   call bngradBatchNormBackward, as often as needed; destroy.
 *
 * Errors: every function returns a status, and bngradGetLastError() says which
 * argument is wrong, with the expected and the actual value. Nothing is written
 * before all arguments are checked.
 *
 * Threads: a handle and a descriptor may be used by several threads at once
 * while no thread changes or destroys them; each call needs its own workspace.
 * docs/runtime.md has a table for each of lifetimes, threads, aliasing,
 * alignment and errors.
 */

#ifndef BNGRAD_RUNTIME_RUNTIME_H
#define BNGRAD_RUNTIME_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in the style of C. */
/* NOLINTBEGIN(readability-identifier-naming) */

typedef enum {
  BNGRAD_SUCCESS = 0,
  BNGRAD_BAD_PARAM = 1,
  BNGRAD_NULL_POINTER = 2,
  BNGRAD_BAD_DTYPE = 3,
  BNGRAD_BAD_SHAPE = 4,
  BNGRAD_BAD_STRIDES = 5,
  BNGRAD_INSUFFICIENT_WORKSPACE = 6,
  BNGRAD_DEVICE_NOT_SUPPORTED = 7,
  BNGRAD_COMPILER_NOT_FOUND = 8,
  BNGRAD_INTERNAL_ERROR = 9,
  BNGRAD_PROCESS_ERROR = 10 /* another process is lost, or differs */
} bngradStatus_t;

typedef enum {
  BNGRAD_DEVICE_CPU = 0,
  BNGRAD_DEVICE_CUDA = 1,
  BNGRAD_DEVICE_CUDA_EMULATOR = 2
} bngradDevice_t;

typedef enum {
  BNGRAD_DTYPE_F16 = 0,
  BNGRAD_DTYPE_BF16 = 1,
  BNGRAD_DTYPE_F32 = 2,
  BNGRAD_DTYPE_F64 = 3,
  BNGRAD_DTYPE_BOOL = 4 /* a byte; 0 is false, 1 is true */
} bngradDtype_t;

/* How mean and variance were obtained: from this input (training), or as
 * constants (frozen batch normalization). */
typedef enum {
  BNGRAD_STATISTICS_BATCH = 0,
  BNGRAD_STATISTICS_GLOBAL = 1
} bngradStatistics_t;

/* The operand `statistic`: the variance, or 1 / sqrt(variance + epsilon). */
typedef enum {
  BNGRAD_STATISTIC_VARIANCE = 0,
  BNGRAD_STATISTIC_INV_STD = 1
} bngradStatistic_t;

/* The most dims of a tensor, and the most feature dims. */
#define BNGRAD_MAX_RANK 16
#define BNGRAD_MAX_FEATURE_DIMS 8

typedef struct bngradProcessGroup *bngradProcessGroup_t;

/* The defaults are zeros in all fields except struct_size. A struct of an older
 * version is shorter, and its missing fields count as zeros. */
typedef struct {
  size_t struct_size; /* sizeof(bngradBatchNormBackwardOptions_t) */
  double epsilon;     /* finite, at least 0, and 0 with an inv_std */
  bngradStatistics_t statistics;
  bngradStatistic_t statistic;
  int num_feature_dims;                      /* 0: one, dim 1 */
  int feature_dims[BNGRAD_MAX_FEATURE_DIMS]; /* ascending */
  /* If 1, asynchronous calls on a CPU complete grad_scale and grad_offset
   * before grad_input even with compiled kernels, for which two more kernels
   * are compiled. If 0, such calls complete all gradients of a compiled kernel
   * at its end. */
  int asynchronous;
  /* Null if only this process takes part. Otherwise the tensors are this
   * process's part of a batch that is spread over the group, and mean and
   * statistic are those of the whole batch: every process must call, even with
   * an empty part. grad_scale and grad_offset are sums over the whole batch, in
   * every process. */
  bngradProcessGroup_t process_group;
  /* If 1, grad_scale and grad_offset are sums over the part of this process,
   * for callers that add the gradients of parameters themselves. */
  int local_parameter_gradients;
} bngradBatchNormBackwardOptions_t;

#ifndef BNGRAD_THREADS_T_DEFINED
#define BNGRAD_THREADS_T_DEFINED
/*
 * The threads that run the loops of a call; null for OpenMP's. Results do not
 * depend on them. `count` returns their number, which must not change during a
 * call. `run` calls body(data, i, n) for each i from 0 to n - 1, in any order,
 * on any threads, at once or one after another, and returns when all have
 * returned.
 */
typedef struct {
  size_t struct_size; /* sizeof(bngrad_threads_t) */
  void *context;
  int (*count)(void *context);
  void (*run)(void *context, int n, void (*body)(void *data, int thread, int n),
              void *data);
} bngrad_threads_t;
#endif

/* Runs task(argument) once, on any thread, now or later. Returns 0, or nonzero
 * if the task will not run. */
typedef struct {
  size_t struct_size; /* sizeof(bngradExecutor_t) */
  void *context;
  int (*submit)(void *context, void (*task)(void *argument), void *argument);
} bngradExecutor_t;

/* `function` (may be null) is called once, when a result is final or will
 * never be. In the latter case `message` is the text of bngradGetLastError(),
 * which lives as long as the call. On a GPU `function` is null, and `context`
 * (may be null) is an event that is recorded in the stream after the result. */
typedef struct {
  void (*function)(void *context, bngradStatus_t status, const char *message);
  void *context;
} bngradCompletion_t;

typedef struct bngradHandle *bngradHandle_t;
typedef struct bngradTensorDescriptor *bngradTensorDescriptor_t;
typedef struct bngradBatchNormBackwardDescriptor
    *bngradBatchNormBackwardDescriptor_t;

/* The version of the library, such as "0.1.0". */
const char *bngradVersion(void);

/* The name of a status, such as "BNGRAD_BAD_SHAPE". */
const char *bngradGetStatusName(bngradStatus_t status);

/* The error of this thread's last call, as one line; empty after a success. It
 * lives until the thread's next call; functions that destroy keep it. */
const char *bngradGetLastError(void);

/* A handle for the device number `device` of a kind; 0 for the CPU. */
bngradStatus_t bngradCreateHandle(bngradHandle_t *handle, bngradDevice_t kind,
                                  int device);
bngradStatus_t bngradDestroyHandle(bngradHandle_t handle);

/* Sets the threads of calls on a CPU; null for OpenMP's, the default. `threads`
 * is copied; its context must outlive the calls. Must not run during a call. */
bngradStatus_t bngradSetThreads(bngradHandle_t handle,
                                const bngrad_threads_t *threads);

/*
 * Creates a group of the processes of `communicator`, the address of an
 * MPI_Comm or null for MPI_COMM_WORLD. All of them must call it. `backend` is
 * "openmpi", "mpich" or a path. If null, the environment variable BNGRAD_MPI
 * decides, or else the MPI that the process has loaded. If MPI is not
 * initialized yet, it is initialized, and then finalized at the end of the
 * process. docs/distributed.md describes timeouts and threads. A group must
 * outlive the descriptors that use it.
 *
 * Errors: BNGRAD_PROCESS_ERROR, also if no MPI can be loaded.
 */
bngradStatus_t bngradCreateProcessGroup(bngradProcessGroup_t *group,
                                        const char *backend,
                                        const void *communicator);
bngradStatus_t bngradDestroyProcessGroup(bngradProcessGroup_t group);

/* `shape` and `strides` have `rank` elements, 0 to BNGRAD_MAX_RANK, and are
 * copied. Strides are in elements and at least 0; null means row-major. */
bngradStatus_t
bngradCreateTensorDescriptor(bngradTensorDescriptor_t *descriptor,
                             bngradDtype_t dtype, int rank,
                             const int64_t *shape, const int64_t *strides);
bngradStatus_t
bngradDestroyTensorDescriptor(bngradTensorDescriptor_t descriptor);

/*
 * Describes a gradient. A null output is not wanted (at least one must be
 * wanted). A null `scale` means 1, a null `mask` means no mask, and null
 * `options` mean the defaults. The tensor descriptors may be destroyed
 * afterwards; the handle must outlive the descriptor.
 *
 *   grad_output, input, grad_input   one shape, rank >= 1; the first two of one
 *                                    type
 *   mask                             that shape, BNGRAD_DTYPE_BOOL; where it is
 *                                    0, grad_output counts as 0
 *   scale, mean, statistic           the sizes of the feature dims, of one type
 *   grad_scale, grad_offset          the sizes of the feature dims
 *
 * No two elements of an output may share an address.
 */
bngradStatus_t bngradCreateBatchNormBackwardDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t grad_input, bngradTensorDescriptor_t grad_scale,
    bngradTensorDescriptor_t grad_offset, bngradTensorDescriptor_t grad_output,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t scale,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic,
    bngradTensorDescriptor_t mask);
bngradStatus_t bngradDestroyBatchNormBackwardDescriptor(
    bngradBatchNormBackwardDescriptor_t descriptor);

/* The size in bytes of the workspace of one call, which needs no alignment. */
bngradStatus_t bngradGetBatchNormBackwardWorkspaceSize(
    bngradBatchNormBackwardDescriptor_t descriptor, size_t *size);

/* A size in bytes that suffices for every description. */
#define BNGRAD_DESCRIPTION_SIZE 1024

/* Describes how the gradient, or the half, is computed, in zero-terminated
 * lines key=value, which docs/runtime.md lists. `size` is the size of
 * `text`. */
bngradStatus_t
bngradDescribeBatchNormBackward(bngradBatchNormBackwardDescriptor_t descriptor,
                                char *text, size_t size);

/*
 * Computes the gradients that the descriptor wants; the pointers of its null
 * tensors are ignored. On a CPU, `stream` is ignored and the call returns when
 * all is done. With a process group the call waits for the other processes and,
 * on a GPU, for the stream. An error that only this process has leaves them
 * waiting until their timeout.
 *
 * grad_input may be grad_output or input: the same pointer, type and strides.
 * Otherwise an output must not overlap any other tensor, and the workspace must
 * not overlap any tensor.
 */
bngradStatus_t
bngradBatchNormBackward(bngradBatchNormBackwardDescriptor_t descriptor,
                        void *workspace, size_t workspace_size,
                        void *grad_input, void *grad_scale, void *grad_offset,
                        const void *grad_output, const void *input,
                        const void *scale, const void *mean,
                        const void *statistic, const void *mask, void *stream);

/*
 * Submits the same to `executor`, or to the calling thread if it is null; on a
 * GPU to `stream`, with a null `executor`. `done` (may be null) has an entry
 * for each of grad_input, grad_scale and grad_offset. Each is called as soon as
 * that gradient is final; the last two are final before grad_input is computed.
 * The workspace, all data, the descriptor and the handle must live until all
 * wanted gradients are done.
 *
 * Errors: for a wrong argument this function returns the status and calls
 * nothing. Any other error is passed to `done`; without an executor it is also
 * the status.
 */
bngradStatus_t bngradBatchNormBackwardAsync(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *grad_input, void *grad_scale,
    void *grad_offset, const void *grad_output, const void *input,
    const void *scale, const void *mean, const void *statistic,
    const void *mask, void *stream, const bngradExecutor_t *executor,
    const bngradCompletion_t *done);

/*
 * The two halves of a gradient with batch statistics, for channels whose
 * elements are spread over several calls or processes: the sums of all are
 * added between the halves. A descriptor is for the whole gradient or for one
 * half. The functions above destroy it and return the size of its workspace.
 *
 *   sums    (2, the sizes of the feature dims), row-major, of the accumulator
 *           type: f64 if an operand is f64, otherwise f32. Row 0 has the sums
 *           of grad_output, row 1 those of grad_output * (input - mean)
 *   count   an int64_t: the elements per channel of all calls, over which mean
 *           and statistic were computed; at least 1 if there are data. On a GPU
 *           it is in device memory, and its value is not checked
 *
 * grad_offset is row 0, and grad_scale row 1 times inv_std. An empty input has
 * sums of 0. Neither grad_input nor the workspace may overlap `count`.
 *
 * Errors: BNGRAD_BAD_PARAM for global statistics, and for a descriptor of
 * another part.
 */
bngradStatus_t bngradCreateBatchNormBackwardReduceDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t sums, bngradTensorDescriptor_t grad_output,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t mask);
bngradStatus_t bngradBatchNormBackwardReduce(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *sums, const void *grad_output,
    const void *input, const void *mean, const void *mask, void *stream);
bngradStatus_t bngradCreateBatchNormBackwardElemtDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t grad_input, bngradTensorDescriptor_t grad_output,
    bngradTensorDescriptor_t input, bngradTensorDescriptor_t scale,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic,
    bngradTensorDescriptor_t sums, bngradTensorDescriptor_t mask);
bngradStatus_t bngradBatchNormBackwardElemt(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *grad_input, const void *grad_output,
    const void *input, const void *scale, const void *mean,
    const void *statistic, const void *sums, const int64_t *count,
    const void *mask, void *stream);

/*
 * The forward pass: with the statistics of the batch, which are results
 * (training), or with given ones (inference). Its functions follow the same
 * rules as the functions of the gradient.
 */
typedef struct {
  size_t struct_size; /* sizeof(bngradBatchNormTrainingOptions_t) */
  double epsilon;     /* finite, at least 0 */
  /* The new value of a running statistic is
   *   (1 - momentum) * running + momentum * batch
   * and the old one if there are no elements. */
  double momentum;
  /* If 1, the variance of the batch is multiplied by M / (M - 1) for the
   * running variance, where M is the number of elements per channel. For M = 1
   * the new running variance is then NaN. */
  int unbiased_running_variance;
  int num_feature_dims;                      /* 0: one, dim 1 */
  int feature_dims[BNGRAD_MAX_FEATURE_DIMS]; /* ascending */
} bngradBatchNormTrainingOptions_t;

typedef struct {
  size_t struct_size; /* sizeof(bngradBatchNormInferenceOptions_t) */
  double epsilon;     /* finite, at least 0, and 0 with an inv_std */
  bngradStatistic_t statistic;
  int num_feature_dims;                      /* 0: one, dim 1 */
  int feature_dims[BNGRAD_MAX_FEATURE_DIMS]; /* ascending */
} bngradBatchNormInferenceOptions_t;

typedef struct bngradBatchNormTrainingDescriptor
    *bngradBatchNormTrainingDescriptor_t;
typedef struct bngradBatchNormInferenceDescriptor
    *bngradBatchNormInferenceDescriptor_t;

/*
 * Describes training. Output, mean, variance and inv_std are null if they are
 * not wanted, and running_mean and running_variance if there are none; at least
 * one of these six must not be null. A null `scale` means 1, a null `offset`
 * means 0, and null `options` mean the defaults.
 *
 *   input, output                      one shape, rank >= 1
 *   mean, variance, inv_std            the sizes of the feature dims; the
 *                                      variance is biased, and inv_std is
 *                                      1 / sqrt(variance + epsilon)
 *   running_mean, running_variance     the sizes of the feature dims; read and
 *                                      written
 *   scale, offset                      the sizes of the feature dims, of one
 *                                      type
 *
 * No two elements of a tensor that is written may share an address.
 */
bngradStatus_t bngradCreateBatchNormTrainingDescriptor(
    bngradHandle_t handle, bngradBatchNormTrainingDescriptor_t *descriptor,
    const bngradBatchNormTrainingOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t variance, bngradTensorDescriptor_t inv_std,
    bngradTensorDescriptor_t running_mean,
    bngradTensorDescriptor_t running_variance, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset);
bngradStatus_t bngradDestroyBatchNormTrainingDescriptor(
    bngradBatchNormTrainingDescriptor_t descriptor);
bngradStatus_t bngradGetBatchNormTrainingWorkspaceSize(
    bngradBatchNormTrainingDescriptor_t descriptor, size_t *size);
bngradStatus_t
bngradDescribeBatchNormTraining(bngradBatchNormTrainingDescriptor_t descriptor,
                                char *text, size_t size);

/* Output may be input: the same pointer, type and strides. Otherwise a tensor
 * that is written must not overlap any other tensor or the workspace. */
bngradStatus_t bngradBatchNormTraining(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *output, void *mean, void *variance,
    void *inv_std, void *running_mean, void *running_variance,
    const void *input, const void *scale, const void *offset, void *stream);

/* As bngradBatchNormBackwardAsync; `done` has an entry for each of output,
 * mean, variance, inv_std, running_mean and running_variance. */
bngradStatus_t bngradBatchNormTrainingAsync(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *output, void *mean, void *variance,
    void *inv_std, void *running_mean, void *running_variance,
    const void *input, const void *scale, const void *offset, void *stream,
    const bngradExecutor_t *executor, const bngradCompletion_t *done);

/*
 * Training followed by a ReLU, and the gradient of both, in the loops of the
 * batch norm: the ReLU takes no pass of its own over the data. With y, the
 * output of training:
 *
 *   output         max(y + residual, 0); a null `residual` means 0
 *   grad_residual  0 where output is at most 0, elsewhere grad_output; may be
 *                  null. The other gradients, at least one of which must be
 *                  wanted, are those of the batch norm for it
 *
 * All data have the type of the input. The functions above destroy these
 * descriptors and return the sizes of their workspaces. The option
 * `asynchronous` is ignored.
 *
 * Output may be input or residual, grad_input may be grad_output, input or
 * output, and grad_residual may be grad_output: the same pointer and strides.
 *
 * Errors: BNGRAD_COMPILER_NOT_FOUND without libBNGradCompiler.so, as there are
 * no ready kernels; BNGRAD_BAD_PARAM with a process group.
 */
bngradStatus_t bngradCreateBatchNormTrainingReluDescriptor(
    bngradHandle_t handle, bngradBatchNormTrainingDescriptor_t *descriptor,
    const bngradBatchNormTrainingOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t variance, bngradTensorDescriptor_t inv_std,
    bngradTensorDescriptor_t running_mean,
    bngradTensorDescriptor_t running_variance, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset,
    bngradTensorDescriptor_t residual);
bngradStatus_t bngradBatchNormTrainingRelu(
    bngradBatchNormTrainingDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *output, void *mean, void *variance,
    void *inv_std, void *running_mean, void *running_variance,
    const void *input, const void *scale, const void *offset,
    const void *residual, void *stream);
bngradStatus_t bngradCreateBatchNormBackwardReluDescriptor(
    bngradHandle_t handle, bngradBatchNormBackwardDescriptor_t *descriptor,
    const bngradBatchNormBackwardOptions_t *options,
    bngradTensorDescriptor_t grad_input, bngradTensorDescriptor_t grad_scale,
    bngradTensorDescriptor_t grad_offset,
    bngradTensorDescriptor_t grad_residual,
    bngradTensorDescriptor_t grad_output, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t mean,
    bngradTensorDescriptor_t statistic, bngradTensorDescriptor_t output);
bngradStatus_t bngradBatchNormBackwardRelu(
    bngradBatchNormBackwardDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *grad_input, void *grad_scale,
    void *grad_offset, void *grad_residual, const void *grad_output,
    const void *input, const void *scale, const void *mean,
    const void *statistic, const void *output, void *stream);

/* Describes inference. `scale`, `offset`, `mean` and `statistic` have one type
 * and the sizes of the feature dims; `scale` and `offset` may be null. */
bngradStatus_t bngradCreateBatchNormInferenceDescriptor(
    bngradHandle_t handle, bngradBatchNormInferenceDescriptor_t *descriptor,
    const bngradBatchNormInferenceOptions_t *options,
    bngradTensorDescriptor_t output, bngradTensorDescriptor_t input,
    bngradTensorDescriptor_t scale, bngradTensorDescriptor_t offset,
    bngradTensorDescriptor_t mean, bngradTensorDescriptor_t statistic);
bngradStatus_t bngradDestroyBatchNormInferenceDescriptor(
    bngradBatchNormInferenceDescriptor_t descriptor);
bngradStatus_t bngradGetBatchNormInferenceWorkspaceSize(
    bngradBatchNormInferenceDescriptor_t descriptor, size_t *size);
bngradStatus_t bngradDescribeBatchNormInference(
    bngradBatchNormInferenceDescriptor_t descriptor, char *text, size_t size);

/* Output may be input, as in training. */
bngradStatus_t bngradBatchNormInference(
    bngradBatchNormInferenceDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *output, const void *input, const void *scale,
    const void *offset, const void *mean, const void *statistic, void *stream);

/* As bngradBatchNormBackwardAsync; `done` has one entry. */
bngradStatus_t bngradBatchNormInferenceAsync(
    bngradBatchNormInferenceDescriptor_t descriptor, void *workspace,
    size_t workspace_size, void *output, const void *input, const void *scale,
    const void *offset, const void *mean, const void *statistic, void *stream,
    const bngradExecutor_t *executor, const bngradCompletion_t *done);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif /* BNGRAD_RUNTIME_RUNTIME_H */
