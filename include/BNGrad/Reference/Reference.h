//===- Reference.h - ground truth of the ops ------------------ -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_REFERENCE_REFERENCE_H
#define BNGRAD_REFERENCE_REFERENCE_H

#include "BNGrad/Dialect/Role.h"
#include "BNGrad/Runtime/ElementType.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace bngrad {

using mlir::bngrad::Role;

/// An operand or a result. Only the type of a result counts, for its bounds.
struct ReferenceTensor {
  ElementType type = ElementType::F32;
  /// Null if absent.
  const void *data = nullptr;
  /// A bound on how far each element of `data` may be from the operand that the
  /// computed results used, for a role that takes errors. The bounds of the
  /// results include its effect. Null means no error.
  const double *error = nullptr;
};

/// One op with its operands.
///
/// Shapes: `shape` is that of input, rank >= 1, extents >= 0; `featureDims` is
///         not empty, strictly ascending, in [0, rank). Tensors are dense
///         row-major, with the shapes of their roles.
/// Errors: none are reported, as the problem has been verified.
struct ReferenceProblem {
  std::vector<int64_t> shape;
  std::vector<int64_t> featureDims;
  double epsilon = 0;
  /// Whether mean and statistic are constants, not functions of input.
  bool globalStatistics = false;
  /// By role. Absent sums are computed over input itself; if the count is
  /// absent, M is the number of elements per channel of input.
  ReferenceTensor tensors[mlir::bngrad::kNumRoles];

  ReferenceTensor &operator[](Role role) {
    return tensors[static_cast<uint32_t>(role)];
  }
  const ReferenceTensor &operator[](Role role) const {
    return tensors[static_cast<uint32_t>(role)];
  }
};

/// One result, row-major, and the bound of a computed result's error.
struct ReferenceResult {
  /// The exact value, up to one rounding to double and errors far below
  /// `bound`.
  std::vector<double> value;
  /// The greatest error allowed; infinite or NaN if `value` is.
  std::vector<double> bound;
};

/// Shapes: grad_input has the shape of input; grad_scale and grad_offset have
/// that of mean.
struct ReferenceResults {
  ReferenceResult gradInput;
  ReferenceResult gradScale;
  ReferenceResult gradOffset;
};

/// The gradients of batch normalization, independent of the compiler. With M
/// the number of elements per channel, every sum over one channel, and
/// r = 1/sqrt(variance + epsilon) or the given inv_std:
///
///   sum_dy      = sum of grad_output
///   sum_dy_xmu  = sum of grad_output * (input - mean)
///   grad_offset = sum_dy
///   grad_scale  = sum_dy_xmu * r
///   batch:  grad_input = scale*r * ((grad_output - sum_dy/M)
///                            - (input - mean) * ((sum_dy_xmu/M * r) * r))
///   global: grad_input = scale*r * grad_output
///
/// computed in long double with compensated sums, which is more exact than the
/// bound of f64. Infinities and NaN follow from these formulas in that order. A
/// masked-out grad_output is 0, so its NaN does not spread, but input there
/// still takes part as 0 * (input - mean). M = 0: grad_scale and grad_offset
/// are 0, whatever r is.
///
/// The bound of a result is
///
///   u_out*|exact| + 4*u_acc*(4 + log2(M + 1))*A + smallest subnormal
///
/// with A the same formula with every term replaced by its absolute value,
/// u_out and the smallest subnormal of the result's type, and u_acc of the
/// accumulator type: the widest of the operands' types, at least f32.
///
/// Units:  one thread, about 40 ns per element of input.
/// Errors: throws std::bad_alloc if there is not enough memory.
/// Source: S. Ioffe, C. Szegedy, "Batch Normalization", 2015, section 3. The
///         bound: N. Higham, "Accuracy and Stability of Numerical Algorithms",
///         section 4.2, for sums of logarithmic depth; the 4 + and the factor 4
///         leave room for the other operations and for less balanced sums.
ReferenceResults computeReference(const ReferenceProblem &problem);

/// The sums that the gradients start from, [sum_dy, sum_dy_xmu] by channel,
/// with the bound of a sum in the type of `sums`. Scale and statistic are
/// ignored.
///
/// Errors: throws std::bad_alloc if memory runs out.
ReferenceResult computeReferenceSums(const ReferenceProblem &problem);

/// Shapes: output has the shape of input, the others have one value per
/// channel.
struct ReferenceTraining {
  ReferenceResult output;
  ReferenceResult mean;
  ReferenceResult variance;
  ReferenceResult invStd;
};

/// Batch normalization with the statistics of the batch. With M the number of
/// elements per channel and every sum over one channel:
///
///   mean     = sum of input / M
///   variance = sum of (input - mean)^2 / M
///   inv_std  = 1/sqrt(variance + epsilon)
///   output   = (input - mean) * (scale * inv_std) + offset
///
/// Epsilon is rounded to the accumulator type. If M = 0, mean and variance are
/// 0. Infinities and NaN follow from the formulas.
///
/// With G = 4*u_acc*(4 + log2(M + 1)), t = G * sqrt(mean^2 + variance) and
/// A_var = (sqrt(variance) + 2t)^2, the bound of a result is
/// u_out*|exact| + G*A + smallest subnormal, where A is
///
///   mean     sqrt(A_var) + u_acc*|mean|/G
///   variance A_var
///   inv_std  inv_std * relative, relative = 1 + A_var/(variance + epsilon)
///   output   |scale|*inv_std * (|input - mean| * relative + sqrt(A_var)
///                               + u_acc*|mean|) + |offset|
///
/// For inv_std and output, it is infinite if G*A_var exceeds
/// (variance + epsilon)/2. If all elements of a channel are equal, A_var counts
/// as 0, and the bound of output has no A: it allows one rounding of offset.
/// The bounds are infinite if the sums may overflow in the accumulator type.
///
/// Errors: throws std::bad_alloc if memory runs out.
/// Source: docs/numerics.md.
ReferenceTraining computeReferenceTraining(const ReferenceProblem &problem);

/// output = (input - mean) * (scale*r) + offset, with r as in computeReference.
/// A of its bound is |input - mean| * |scale*r| + |offset|.
///
/// Errors: throws std::bad_alloc if memory runs out.
ReferenceResult computeReferenceInference(const ReferenceProblem &problem);

/// Shapes: one value per channel.
struct ReferenceMoments {
  ReferenceResult sum;
  ReferenceResult squareSum;
};

/// The sums of input - shift and of its square, with the bounds of sums of the
/// type of the results.
///
/// Errors: throws std::bad_alloc if memory runs out.
ReferenceMoments computeReferenceMoments(const ReferenceProblem &problem);

/// Computes the results of a problem on request. Results of one formula are
/// computed together.
class Reference {
public:
  /// `problem` must outlive this object.
  explicit Reference(const ReferenceProblem &problem) : problem(problem) {}

  /// Returns the result of `role`, which must be the role of a float result.
  ///
  /// Errors: throws std::bad_alloc if memory runs out.
  std::shared_ptr<const ReferenceResult> compute(Role role);

private:
  const ReferenceProblem &problem;
  std::shared_ptr<ReferenceResults> gradients;
  std::shared_ptr<ReferenceTraining> training;
  std::shared_ptr<ReferenceMoments> moments;
};

/// True if `result`, an element of `type`, is acceptable for `exact`: equal
/// (infinities included), both NaN, or no further away than `bound`. If
/// infinity is involved because `type` overflows, `result` must lie between
/// `exact - bound` and `exact + bound`, each rounded to `type`.
///
/// Shapes: `type` is a float type.
bool isWithinBound(double result, double exact, double bound, ElementType type);

/// The comparison of one result with its bounds. `maxError` and `bound` belong
/// to the element with the greatest ratio of error to bound: since each element
/// has its own bound, the greatest error alone is not meaningful.
struct CheckSummary {
  /// |result - exact|. Infinite for an unexpected or missing NaN or infinity;
  /// at most `bound` for an infinity that is accepted because the type
  /// overflows there.
  double maxError = 0;
  double bound = 0;
  /// Row-major; -1 if there are no elements.
  int64_t index = -1;
  /// True if every element is within its bound.
  bool ok = true;
};

/// Compares a computed result with the reference.
///
/// Shapes: `data` has as many elements, of the float type `type`, as
///         `reference`.
CheckSummary checkResult(ElementType type, const void *data,
                         const ReferenceResult &reference);

} // namespace bngrad

#endif // BNGRAD_REFERENCE_REFERENCE_H
