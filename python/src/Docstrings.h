//===- Docstrings.h - docstrings of bngrad._numpy ---------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_PYTHON_SRC_DOCSTRINGS_H
#define BNGRAD_PYTHON_SRC_DOCSTRINGS_H

#include <nanobind/nanobind.h>

namespace bngrad::python {

inline const nanobind::sig kBackwardSignature(
    "def batch_norm_backward(grad_output, input, mean, *, scale=None, "
    "variance=None, inv_std=None, epsilon=0.0, mask=None, feature_dims=(1,), "
    "statistics='batch', out=None, "
    "wanted=('grad_input', 'grad_scale', 'grad_offset'))");

inline constexpr const char *kBackwardDoc =
    R"doc(The gradient of batch normalization, (grad_input, grad_scale, grad_offset).

With r = 1 / sqrt(variance + epsilon), the forward pass was
scale * (input - mean) * r + offset.

Arrays are numpy arrays, with the bfloat16 of ml_dtypes, or any objects on the
CPU with DLPack, such as tensors of PyTorch. Strides may be any. Results are of
the library of grad_output.

Args:
    grad_output: the gradient of the result of the forward pass; the shape of
        input and its type.
    input: at least one dim; float16, bfloat16, float32 or float64.
    mean: the mean of each channel; its shape is that of the feature dims of
        input, its type any of those.
    scale: the factor of each channel; shape and type of mean. None: 1.
    variance: the biased variance of each channel; shape and type of mean.
    inv_std: r, instead of variance.
    epsilon: at least 0; 0 with inv_std, which contains it.
    mask: bool, the shape of input; grad_output counts as 0 where it is False.
        None: none.
    feature_dims: the dims of input that tell channels apart, ascending;
        negative ones count from the end.
    statistics: "batch" if mean and variance were computed from input, "global"
        if they are constants.
    out: (grad_input, grad_scale, grad_offset), arrays to write to; None: a new
        array. grad_input may be grad_output or input themselves; no other two
        arrays of which one is an output may overlap.
    wanted: names of the gradients to compute.

Returns:
    grad_input, which has the shape, type and layout of input, and grad_scale
    and grad_offset, which have the shape and type of mean; None for those not
    wanted.

Raises:
    bngrad.Error: an argument is wrong. Its class is also a ValueError or a
        TypeError, its text names the argument, and status is that of the C
        library.)doc";

inline const nanobind::sig kReduceSignature(
    "def batch_norm_backward_reduce(grad_output, input, mean, *, mask=None, "
    "feature_dims=(1,), out=None)");

inline constexpr const char *kReduceDoc =
    R"doc(The sums that grad_input needs, over the data of this process.

Args:
    grad_output, input, mean, mask, feature_dims: as those of
        batch_norm_backward; mean is that of all processes.
    out: an array to write to; None: a new one.

Returns:
    An array of shape (2, <sizes of the feature dims>): row 0 is the sum of
    grad_output, row 1 that of grad_output * (input - mean). float32; float64
    for data of float64. Row 0 is grad_offset, and row 1 times inv_std is
    grad_scale.

Raises:
    bngrad.Error: an argument is wrong.)doc";

inline const nanobind::sig kElemtSignature(
    "def batch_norm_backward_elemt(grad_output, input, mean, sums, count, *, "
    "scale=None, variance=None, inv_std=None, epsilon=0.0, mask=None, "
    "feature_dims=(1,), out=None)");

inline constexpr const char *kElemtDoc =
    R"doc(grad_input of batch statistics, from sums over all processes.

Args:
    grad_output, input, mean, scale, variance, inv_std, epsilon, mask,
        feature_dims: as those of batch_norm_backward; mean and variance are
        those of all processes.
    sums: those of batch_norm_backward_reduce, added up over all processes.
    count: the elements per channel of all processes, an integer.
    out: an array to write to; None: a new one. It may be grad_output or input.

Returns:
    grad_input, which has the shape, type and layout of input.

Raises:
    bngrad.Error: an argument is wrong.)doc";

inline const nanobind::sig kTrainingSignature(
    "def batch_norm_training(input, *, scale=None, offset=None, epsilon=1e-05, "
    "feature_dims=(1,), out=None, "
    "wanted=('output', 'mean', 'variance', 'inv_std'))");

inline constexpr const char *kTrainingDoc =
    R"doc(Batch normalization with the statistics of the batch.

mean and variance are those of each channel of input, the variance is biased,
inv_std is 1 / sqrt(variance + epsilon), and output is
(input - mean) * (scale * inv_std) + offset. Without elements mean and variance
are 0.

Args:
    input: an array as that of batch_norm_backward.
    scale, offset: the factor and the offset of each channel, of one type; their
        shape is that of the feature dims of input. None: 1 and 0.
    epsilon: at least 0.
    feature_dims: as those of batch_norm_backward.
    out: (output, mean, variance, inv_std), arrays to write to; None: a new
        array. output may be input itself.
    wanted: names of the results to compute.

Returns:
    (output, mean, variance, inv_std). output has the shape, type and layout of
    input; the others are of float32, or float64 if an argument is. None for
    those not wanted.

Raises:
    bngrad.Error: an argument is wrong.)doc";

inline const nanobind::sig kInferenceSignature(
    "def batch_norm_inference(input, mean, *, scale=None, offset=None, "
    "variance=None, inv_std=None, epsilon=0.0, feature_dims=(1,), out=None)");

inline constexpr const char *kInferenceDoc =
    R"doc(Batch normalization with given statistics.

output is (input - mean) * (scale * r) + offset, with
r = 1 / sqrt(variance + epsilon).

Args:
    input, mean, variance, inv_std, epsilon, feature_dims: as those of
        batch_norm_backward.
    scale, offset: the factor and the offset of each channel; shape and type of
        mean. None: 1 and 0.
    out: an array to write to; None: a new one. It may be input itself.

Returns:
    output, which has the shape, type and layout of input.

Raises:
    bngrad.Error: an argument is wrong.)doc";

inline constexpr const char *kGetNumThreadsDoc =
    R"doc(The number of threads of a call.

At first that of the environment variable BNGRAD_NUM_THREADS, else of
OMP_NUM_THREADS, else the number of CPUs that the process may use. Results do
not depend on it.)doc";

inline constexpr const char *kSetNumThreadsDoc =
    R"doc(Sets the number of threads of later calls, 1 to 1024.

Calls at the same time share them: one has the threads, and others run on their
own.)doc";

} // namespace bngrad::python

#endif // BNGRAD_PYTHON_SRC_DOCSTRINGS_H
