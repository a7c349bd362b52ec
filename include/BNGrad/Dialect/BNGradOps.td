//===- BNGradOps.td - operations ------------------------- -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_DIALECT_BNGRADOPS_TD
#define BNGRAD_DIALECT_BNGRADOPS_TD

include "BNGrad/Dialect/BNGradAttrs.td"
include "BNGrad/Dialect/BNGradInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/RuntimeVerifiableOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

// A method that returns roles by their names in Roles.def.
class BNGrad_RoleList<string getter, list<string> names> {
  code declaration = [{
    static ::llvm::ArrayRef<::mlir::bngrad::Role> }] # getter # [{() {
      using ::mlir::bngrad::getRole;
      static constexpr ::mlir::bngrad::Role kRoles[] = {getRole("}] #
          !interleave(names, "\"), getRole(\"") # [{")};
      return kRoles;
    }
  }];
}

// The syntax of operand `index`, such as `input` `(` $input `:` type($input) `)`.
class BNGrad_Clause<dag arguments, int index> {
  string name = !getdagname(arguments, index);
  bit isOptional = !isa<Optional>(!getdagarg<OpVariable>(arguments, index).constraint);
  string operand = "$" # name # !if(isOptional, "^", "");
  string clause = "`" # name # "` `(` " # operand # " `:` type($" # name # ") `)`";
  string text = !if(isOptional, "(" # clause # ")?", clause);
}

// Base class of the ops: pure computations on tensors with type and shape
// inference. Operands and results are named after roles of Roles.def, which
// determine verification and type inference. Operands come before attributes. An
// op defines the methods of BatchNormOpInterface for which neither the defaults
// nor its attribute accessors suffice.
class BNGrad_BatchNormOp<string mnemonic, list<Trait> traits = []>
    : BNGrad_Op<mnemonic, !listconcat(traits, [
        BNGrad_BatchNormOpInterface, NoMemoryEffect,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<InferTypeOpInterface,
                                  ["inferReturnTypes", "refineReturnTypes"]>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<RuntimeVerifiableOpInterface>
      ])> {
  let hasVerifier = 1;

  list<int> operandIndices = !filter(i, !range(!size(arguments)),
      !initialized(!getdagarg<OpVariable>(arguments, i)));
  let assemblyFormat =
      !interleave(!foreach(i, operandIndices, BNGrad_Clause<arguments, i>.text),
                  " ") # " attr-dict `:` type(results)";

  code baseClassDeclaration =
      BNGrad_RoleList<"getOperandRoles",
                      !foreach(i, operandIndices,
                               !getdagname(arguments, i))>.declaration #
      BNGrad_RoleList<"getResultRoles",
                      !foreach(i, !range(!size(results)),
                               !getdagname(results, i))>.declaration;
  let extraClassDeclaration = baseClassDeclaration;
  // For ops whose results may have any float types.
  code haveAnyFloatTypes = [{
    /// True if the shapes agree.
    static bool isCompatibleReturnTypes(::mlir::TypeRange inferred,
                                        ::mlir::TypeRange given) {
      return ::mlir::succeeded(
          ::mlir::verifyCompatibleShapes(inferred, given));
    }
  }];
  let extraClassDefinition = [{
    LogicalResult $cppClass::verify() { return detail::verify(*this); }
    LogicalResult $cppClass::inferReturnTypes(
        MLIRContext *context, std::optional<Location> location,
        ValueRange operands, DictionaryAttr attributes,
        OpaqueProperties properties, RegionRange regions,
        SmallVectorImpl<Type> &inferredReturnTypes) {
      Adaptor op(operands, attributes, properties, regions);
      return detail::inferTypes(location,
                                detail::Operands(op, getOperandRoles()),
                                getResultRoles(), inferredReturnTypes);
    }
    Speculation::Speculatability $cppClass::getSpeculatability() {
      return detail::getSpeculatability(*this);
    }
    LogicalResult $cppClass::reifyResultShapes(
        OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
      return detail::reifyResultShapes(*this, builder, reifiedReturnShapes);
    }
    void $cppClass::generateRuntimeVerification(
        OpBuilder &builder, Location loc,
        function_ref<std::string(Operation *, StringRef)>
            generateErrorMessage) {
      detail::generateSizeChecks(*this, builder, loc, generateErrorMessage);
    }
    LogicalResult $cppClass::refineReturnTypes(
        MLIRContext *context, std::optional<Location> location,
        ValueRange operands, DictionaryAttr attributes,
        OpaqueProperties properties, RegionRange regions,
        SmallVectorImpl<Type> &returnTypes) {
      SmallVector<Type> inferred;
      if (succeeded(inferReturnTypes(context, std::nullopt, operands,
                                     attributes, properties, regions,
                                     inferred)))
        detail::refineTypes(inferred, returnTypes);
      return success();
    }
  }];
}

// Operands of several ops.
def BNGrad_GradOutput : Arg<BNGrad_FloatTensor,
    "gradient of the loss with respect to the output; shape of input">;
def BNGrad_Input : Arg<BNGrad_FloatTensor, "input of the forward pass">;
def BNGrad_Scale : Arg<Optional<BNGrad_FloatTensor>, "per-channel factor, 1 if absent">;
def BNGrad_Mean : Arg<BNGrad_FloatTensor, "per-channel mean">;
def BNGrad_Variance : Arg<Optional<BNGrad_FloatTensor>, "per-channel biased variance">;
def BNGrad_InvStd : Arg<Optional<BNGrad_FloatTensor>,
    "per-channel 1/sqrt(variance + epsilon)">;
def BNGrad_Offset : Arg<Optional<BNGrad_FloatTensor>, "per-channel summand, 0 if absent">;
def BNGrad_Shift : Arg<Optional<BNGrad_FloatTensor>,
    "per-channel, near the mean; 0 if absent">;
def BNGrad_Mask : Arg<Optional<BNGrad_MaskTensor>,
    "false: grad_output counts as 0; shape of input">;

def BNGrad_BatchNormBackwardOp
    : BNGrad_BatchNormOp<"batch_norm_backward", [AttrSizedOperandSegments]> {
  let summary = "Gradient of batch normalization";
  let description = [{
    Computes the gradients of a loss with respect to the input, the scale and
    the offset of a batch normalization, given the gradient with respect to its
    output. For every channel (an index over `feature_dims`), with M the number
    of elements reduced per channel and r = 1/sqrt(variance + epsilon), or the
    given inv_std:

    ```
    sum_dy      = sum of grad_output
    sum_dy_xmu  = sum of grad_output * (input - mean)
    grad_offset = sum_dy
    grad_scale  = sum_dy_xmu * r
    batch:  grad_input = scale*r * (grad_output - sum_dy/M
                                    - (input - mean) * r*r * sum_dy_xmu/M)
    global: grad_input = scale*r * grad_output
    ```

    The statistics are operands and are never recomputed. All arithmetic is in
    the widest element type among the operands, at least f32; each result is
    rounded once to its own element type.

    An absent `scale` counts as 1. Where `mask` is false, grad_output counts as
    0 (a select, so a NaN there does not spread). This gives the gradient of a
    fused ReLU. An unused result costs nothing.

    The operands may be sharded over processes (docs/distributed.md). Then
    grad_input covers the shard, while grad_scale and grad_offset cover the
    whole batch. With `local_parameter_gradients` the latter are sums over the
    shard, for callers that reduce the gradients of all parameters themselves.
    The attribute has no effect if no reduced dim is sharded.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `grad_output` and `input` have the same element type and compatible
           shapes, with fewer than 2^63 elements per channel; the shape of
           `mask` is compatible with that of `input`.
      (C3) `scale`, `mean` and `variance` or `inv_std` have one element type and
           compatible shapes, equal to the sizes of `input` at `feature_dims`.
      (C4) exactly one of `variance` and `inv_std` is given.
      (C5) `epsilon` is finite and >= 0, and 0 with `inv_std`.
      (C6) the shape of `grad_input` is compatible with that of `input`, and the
           shapes of `grad_scale` and `grad_offset` with that of `mean`.

    Compatible means equal, or dynamic on one side.

    Example, training, NCHW:

    ```mlir
    func.func @training(%dy: tensor<32x64x8x8xf32>, %x: tensor<32x64x8x8xf32>,
                        %scale: tensor<64xf32>, %mean: tensor<64xf32>,
                        %variance: tensor<64xf32>)
        -> (tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>) {
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<32x64x8x8xf32>)
          input(%x : tensor<32x64x8x8xf32>)
          scale(%scale : tensor<64xf32>) mean(%mean : tensor<64xf32>)
          variance(%variance : tensor<64xf32>) {epsilon = 1.0e-5 : f64}
          : tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>
      return %dx, %dscale, %doffset
          : tensor<32x64x8x8xf32>, tensor<64xf32>, tensor<64xf32>
    }
    ```

    Example, frozen statistics, NHWC, bf16 data, inv_std, a ReLU mask and no
    scale:

    ```mlir
    func.func @frozen(%dy: tensor<?x8x8x64xbf16>, %x: tensor<?x8x8x64xbf16>,
                      %mean: tensor<64xf32>, %inv_std: tensor<64xf32>,
                      %mask: tensor<?x8x8x64xi1>) -> tensor<?x8x8x64xbf16> {
      %dx, %dscale, %doffset = bngrad.batch_norm_backward
          grad_output(%dy : tensor<?x8x8x64xbf16>)
          input(%x : tensor<?x8x8x64xbf16>) mean(%mean : tensor<64xf32>)
          inv_std(%inv_std : tensor<64xf32>)
          mask(%mask : tensor<?x8x8x64xi1>)
          {feature_dims = array<i64: 3>, statistics = #bngrad.statistics<global>}
          : tensor<?x8x8x64xbf16>, tensor<64xf32>, tensor<64xf32>
      return %dx : tensor<?x8x8x64xbf16>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_GradOutput:$grad_output,
    BNGrad_Input:$input,
    BNGrad_Scale:$scale,
    BNGrad_Mean:$mean,
    BNGrad_Variance:$variance,
    BNGrad_InvStd:$inv_std,
    BNGrad_Mask:$mask,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims,
    DefaultValuedAttr<F64Attr, "0.0">:$epsilon,
    DefaultValuedAttr<BNGrad_StatisticsAttr,
                      "::mlir::bngrad::Statistics::Batch">:$statistics,
    UnitAttr:$local_parameter_gradients
  );
  let results = (outs
    BNGrad_FloatTensor:$grad_input,
    BNGrad_FloatTensor:$grad_scale,
    BNGrad_FloatTensor:$grad_offset
  );

  let builders = [
    // Infers the types of the results. Absent operands are null. Invalid
    // operands are reported at the location and are then fatal, as in every
    // inferring builder.
    OpBuilder<(ins "::mlir::Value":$gradOutput, "::mlir::Value":$input,
                   "::mlir::Value":$scale, "::mlir::Value":$mean,
                   "::mlir::Value":$variance, "::mlir::Value":$invStd,
                   "::mlir::Value":$mask,
                   "::llvm::ArrayRef<int64_t>":$featureDims,
                   "double":$epsilon,
                   CArg<"::mlir::bngrad::Statistics",
                        "::mlir::bngrad::Statistics::Batch">:$statistics)>
  ];
  let extraClassDeclaration = baseClassDeclaration # haveAnyFloatTypes;
}

def BNGrad_BatchNormBackwardReduceOp
    : BNGrad_BatchNormOp<"batch_norm_backward_reduce"> {
  let summary = "The sums of the gradient of batch normalization";
  let description = [{
    The first half of `bngrad.batch_norm_backward`, for a batch that is spread
    over several devices: the two sums of each channel, and the number M of
    elements that they cover. Added up over the devices, they give the sums and
    the count of the whole batch, however uneven its parts are; a part without
    elements has sums and a count of 0.

    ```
    sums[0] = sum_dy     = sum of grad_output
    sums[1] = sum_dy_xmu = sum of grad_output * (input - mean)
    count   = M
    ```

    `mean` is the mean of the whole batch. Where `mask` is false, grad_output
    counts as 0; M counts all elements.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `grad_output` and `input` have the same element type and compatible
           shapes, with fewer than 2^63 elements per channel; the shape of
           `mask` is compatible with that of `input`.
      (C3) the shape of `mean` is compatible with the sizes of `input` at
           `feature_dims`.
      (C4) the element type of `sums` is the widest of the types of
           `grad_output`, `input` and `mean`, at least f32.
      (C5) the shape of `sums` is compatible with 2 followed by that of `mean`.

    Example:

    ```mlir
    func.func @sums_of_shard(%dy: tensor<?x64x8x8xbf16>,
                             %x: tensor<?x64x8x8xbf16>, %mean: tensor<64xf32>)
        -> (tensor<2x64xf32>, tensor<i64>) {
      %sums, %count = bngrad.batch_norm_backward_reduce
          grad_output(%dy : tensor<?x64x8x8xbf16>)
          input(%x : tensor<?x64x8x8xbf16>) mean(%mean : tensor<64xf32>)
          : tensor<2x64xf32>, tensor<i64>
      return %sums, %count : tensor<2x64xf32>, tensor<i64>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_GradOutput:$grad_output,
    BNGrad_Input:$input,
    BNGrad_Mean:$mean,
    BNGrad_Mask:$mask,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims
  );
  let results = (outs
    Res<BNGrad_FloatTensor, "row 0 sum_dy, row 1 sum_dy_xmu">:$sums,
    Res<BNGrad_CountTensor, "M">:$count
  );
}

def BNGrad_BatchNormBackwardElemtOp
    : BNGrad_BatchNormOp<"batch_norm_backward_elemt",
                        [AttrSizedOperandSegments,
                         // ODS generates this only for several results.
                         DeclareOpInterfaceMethods<OpAsmOpInterface,
                                                   ["getAsmResultNames"]>]> {
  let summary = "grad_input from the sums of a whole batch";
  let description = [{
    The second half of `bngrad.batch_norm_backward`: grad_input of a part of the
    batch, from the `sums` and `count` of the whole batch. Without `sums`, mean
    and variance are constants (global statistics). Without `count`, M is the
    number of elements per channel of `input` itself.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `grad_output` and `input` have the same element type and compatible
           shapes, with fewer than 2^63 elements per channel; the shape of
           `mask` is compatible with that of `input`.
      (C3) `scale`, `mean` and `variance` or `inv_std` have one element type and
           compatible shapes, equal to the sizes of `input` at `feature_dims`.
      (C4) exactly one of `variance` and `inv_std` is given.
      (C5) `epsilon` is finite and >= 0, and 0 with `inv_std`.
      (C6) the shape of `sums` is compatible with 2 followed by that of `mean`.
      (C7) `count` is given only with `sums`.
      (C8) the shape of `grad_input` is compatible with that of `input`.

    Example:

    ```mlir
    func.func @gradient_of_shard(
        %dy: tensor<?x64x8x8xbf16>, %x: tensor<?x64x8x8xbf16>,
        %mean: tensor<64xf32>, %inv_std: tensor<64xf32>,
        %sums: tensor<2x64xf32>, %count: tensor<i64>) -> tensor<?x64x8x8xbf16> {
      %dx = bngrad.batch_norm_backward_elemt
          grad_output(%dy : tensor<?x64x8x8xbf16>)
          input(%x : tensor<?x64x8x8xbf16>) mean(%mean : tensor<64xf32>)
          inv_std(%inv_std : tensor<64xf32>) sums(%sums : tensor<2x64xf32>)
          count(%count : tensor<i64>) : tensor<?x64x8x8xbf16>
      return %dx : tensor<?x64x8x8xbf16>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_GradOutput:$grad_output,
    BNGrad_Input:$input,
    BNGrad_Scale:$scale,
    BNGrad_Mean:$mean,
    BNGrad_Variance:$variance,
    BNGrad_InvStd:$inv_std,
    Arg<Optional<BNGrad_FloatTensor>, "row 0 sum_dy, row 1 sum_dy_xmu, of the whole batch">:$sums,
    Arg<Optional<BNGrad_CountTensor>, "M of the whole batch">:$count,
    BNGrad_Mask:$mask,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims,
    DefaultValuedAttr<F64Attr, "0.0">:$epsilon
  );
  let results = (outs BNGrad_FloatTensor:$grad_input);

  let extraClassDeclaration = baseClassDeclaration # [{
    /// `batch` with `sums`.
    ::mlir::bngrad::Statistics getStatistics() {
      return getSums() ? Statistics::Batch : Statistics::Global;
    }
  }] # haveAnyFloatTypes;
}

def BNGrad_BatchNormTrainingOp
    : BNGrad_BatchNormOp<"batch_norm_training", [AttrSizedOperandSegments]> {
  let summary = "Batch normalization with the statistics of the batch";
  let description = [{
    Normalizes each channel of a batch by its own mean and variance. For every
    channel (an index over `feature_dims`), with M the number of elements
    reduced per channel:

    ```
    mean     = sum of input / M
    variance = sum of (input - mean)^2 / M
    inv_std  = 1/sqrt(variance + epsilon)
    output   = (input - mean) * (scale * inv_std) + offset
    ```

    All arithmetic is in the widest element type among the operands, at least
    f32; each result is rounded once to its own element type. The error of
    `output` does not grow with the ratio of the mean to the standard deviation
    (docs/numerics.md). If all elements of a channel are equal, its variance is 0
    and, with an epsilon above 0, its output is exactly the offset. A variance is
    never negative. Infinities and NaN follow from the formulas.

    An absent `scale` counts as 1, an absent `offset` as 0. Without elements,
    mean and variance are 0 and inv_std is 1/sqrt(epsilon). An unused result
    costs nothing. Running statistics are not part of the op: they follow from
    `mean` and `variance` by per-channel ops.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `input` has fewer than 2^63 elements per channel.
      (C3) `scale` and `offset` have one element type and compatible shapes,
           equal to the sizes of `input` at `feature_dims`.
      (C4) `epsilon` is finite and >= 0.
      (C5) the shape of `output` is compatible with that of `input`, and the
           shapes of `mean`, `variance` and `inv_std` with the sizes of `input`
           at `feature_dims`.

    The results may have any float types. Type inference gives `output` the
    element type of `input`, and the statistics the type of the arithmetic.

    Example:

    ```mlir
    func.func @forward(%x: tensor<32x8x8x64xbf16>, %scale: tensor<64xf32>,
                       %offset: tensor<64xf32>)
        -> (tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf32>) {
      %y, %mean, %variance, %inv_std = bngrad.batch_norm_training
          input(%x : tensor<32x8x8x64xbf16>) scale(%scale : tensor<64xf32>)
          offset(%offset : tensor<64xf32>)
          {epsilon = 1.0e-5 : f64, feature_dims = array<i64: 3>}
          : tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
      return %y, %mean, %inv_std
          : tensor<32x8x8x64xbf16>, tensor<64xf32>, tensor<64xf32>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_Input:$input,
    BNGrad_Scale:$scale,
    BNGrad_Offset:$offset,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims,
    DefaultValuedAttr<F64Attr, "0.0">:$epsilon
  );
  let results = (outs
    BNGrad_FloatTensor:$output,
    BNGrad_FloatTensor:$mean,
    Res<BNGrad_FloatTensor, "biased">:$variance,
    BNGrad_FloatTensor:$inv_std
  );

  let extraClassDeclaration = baseClassDeclaration # haveAnyFloatTypes;
}

def BNGrad_BatchNormInferenceOp
    : BNGrad_BatchNormOp<"batch_norm_inference",
                        [AttrSizedOperandSegments,
                         // ODS generates this only for several results.
                         DeclareOpInterfaceMethods<OpAsmOpInterface,
                                                   ["getAsmResultNames"]>]> {
  let summary = "Batch normalization with given statistics";
  let description = [{
    Normalizes each channel by the given statistics. For every channel (an index
    over `feature_dims`), with r = 1/sqrt(variance + epsilon), or the given
    inv_std:

    ```
    output = (input - mean) * (scale * r) + offset
    ```

    It is computed in this form, because the difference of input * (scale * r)
    and mean * (scale * r) would lose digits. All arithmetic is in the widest
    element type among the operands, at least f32; the result is rounded once. An
    absent `scale` counts as 1, an absent `offset` as 0.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `input` has fewer than 2^63 elements per channel.
      (C3) `scale`, `offset`, `mean` and `variance` or `inv_std` have one element
           type and compatible shapes, equal to the sizes of `input` at
           `feature_dims`.
      (C4) exactly one of `variance` and `inv_std` is given.
      (C5) `epsilon` is finite and >= 0, and 0 with `inv_std`.
      (C6) the shape of `output` is compatible with that of `input`.

    Example:

    ```mlir
    func.func @inference(%x: tensor<?x64x8x8xf32>, %scale: tensor<64xf32>,
                         %offset: tensor<64xf32>, %mean: tensor<64xf32>,
                         %variance: tensor<64xf32>) -> tensor<?x64x8x8xf32> {
      %y = bngrad.batch_norm_inference input(%x : tensor<?x64x8x8xf32>)
          scale(%scale : tensor<64xf32>) offset(%offset : tensor<64xf32>)
          mean(%mean : tensor<64xf32>) variance(%variance : tensor<64xf32>)
          {epsilon = 1.0e-5 : f64} : tensor<?x64x8x8xf32>
      return %y : tensor<?x64x8x8xf32>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_Input:$input,
    BNGrad_Scale:$scale,
    BNGrad_Offset:$offset,
    BNGrad_Mean:$mean,
    BNGrad_Variance:$variance,
    BNGrad_InvStd:$inv_std,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims,
    DefaultValuedAttr<F64Attr, "0.0">:$epsilon
  );
  let results = (outs BNGrad_FloatTensor:$output);

  let extraClassDeclaration = baseClassDeclaration # [{
    /// The statistics are constants.
    ::mlir::bngrad::Statistics getStatistics() { return Statistics::Global; }
  }] # haveAnyFloatTypes;
}

def BNGrad_BatchNormTrainingReduceOp
    : BNGrad_BatchNormOp<"batch_norm_training_reduce"> {
  let summary = "The sums of the statistics of batch normalization";
  let description = [{
    The sums that give the statistics of a batch that is spread over several
    devices, and the number M of elements that they cover. All three may be added
    up over the devices, however uneven the parts are; a part without elements
    has sums and a count of 0.

    ```
    sum        = sum of (input - shift)
    square_sum = sum of (input - shift)^2
    count      = M
    ```

    An absent `shift` counts as 0. The sum without a shift gives the mean of the
    whole batch, and the sums with this mean as `shift` give its variance. If
    `shift` is far from the mean, the variance loses digits.

    Constraints:
      (C1) rank(input) >= 1; `feature_dims` is non-empty, strictly ascending and
           in [0, rank(input)).
      (C2) `input` has fewer than 2^63 elements per channel.
      (C3) the shape of `shift` is compatible with the sizes of `input` at
           `feature_dims`.
      (C4) the element type of `sum` and `square_sum` is the widest of the types
           of `input` and `shift`, at least f32.
      (C5) the shapes of `sum` and `square_sum` are compatible with the sizes of
           `input` at `feature_dims`.

    Example:

    ```mlir
    func.func @sums_of_shard(%x: tensor<?x64x8x8xbf16>, %mean: tensor<64xf32>)
        -> (tensor<64xf32>, tensor<64xf32>, tensor<i64>) {
      %sum, %square_sum, %count = bngrad.batch_norm_training_reduce
          input(%x : tensor<?x64x8x8xbf16>) shift(%mean : tensor<64xf32>)
          : tensor<64xf32>, tensor<64xf32>, tensor<i64>
      return %sum, %square_sum, %count
          : tensor<64xf32>, tensor<64xf32>, tensor<i64>
    }
    ```
  }];

  let arguments = (ins
    BNGrad_Input:$input,
    BNGrad_Shift:$shift,
    DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$feature_dims
  );
  let results = (outs
    BNGrad_FloatTensor:$sum,
    BNGrad_FloatTensor:$square_sum,
    Res<BNGrad_CountTensor, "M">:$count
  );
}

def BNGrad_ElementCastOp
    : BNGrad_Op<"element_cast", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "view of a buffer with another element type";
  let description = [{
    A view of the memory of `source` with the element type of `result`. No bits
    change. `i1` occupies a byte, 0 or 1. `bngrad-apply-schedule` loads vectors
    of i1 through it, as MLIR's vectors of i1 are bit-packed;
    `bngrad-lower-element-cast` lowers it.

    Constraints:
      (C1) the elements of `source` and `result` are floats, or integers of 1, 8,
           16, 32 or 64 bits.
      (C2) `source` and `result` have the same memory space, and either elements
           of the same size in memory, the same shape and the same layout, or
           rank 1, the identity layout and, if it is known, the same size in
           bytes.

    Example:

    ```mlir
    func.func @bytes(%mask: memref<?x8xi1>, %data: memref<16xf32>) {
      %0 = bngrad.element_cast %mask : memref<?x8xi1> to memref<?x8xi8>
      %1 = bngrad.element_cast %data : memref<16xf32> to memref<64xi8>
      return
    }
    ```
  }];

  let arguments = (ins AnyMemRef:$source);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def BNGrad_ParallelOp
    : BNGrad_Op<"parallel", [AutomaticAllocationScope, RecursiveMemoryEffects]> {
  let summary = "phases that the threads of a pool run";
  let description = [{
    Each thread runs each phase once. All threads end a phase before any starts
    the next, and the op ends after the last phase. A phase gets the number of
    its thread and the number of threads, which is positive. The threads need
    not run at the same time, so a phase never waits for another thread. If
    `condition` is false, the calling thread is the only one.

    `bngrad-share-loops` creates this op, `bngrad-outline-parallel` lowers it.

    Constraints:
      (C1) there is at least one phase; each has two arguments of type i32.

    Example:

    ```mlir
    func.func @numbers(%m: memref<?xi32>, %many: i1) {
      bngrad.parallel if(%many) {
      ^bb0(%thread: i32, %threads: i32):
        %i = arith.index_cast %thread : i32 to index
        memref.store %thread, %m[%i] : memref<?xi32>
        bngrad.yield
      }
      return
    }
    ```
  }];

  let arguments = (ins Optional<I1>:$condition);
  let regions = (region VariadicRegion<MinSizedRegion<1>>:$phases);
  let assemblyFormat = "(`if` `(` $condition^ `)`)? attr-dict-with-keyword $phases";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def BNGrad_NumThreadsOp : BNGrad_Op<"num_threads", [Pure]> {
  let summary = "number of threads that run parallel loops";
  let description = [{
    The number of threads of the caller's pool, at least 1 and at most `max`. It
    does not change during a call. Loops may run on fewer threads.

    `bngrad-outline-parallel` lowers it.

    Constraints:
      (C1) `max` is in [1, 4096].

    Example:

    ```mlir
    func.func @count() -> i32 {
      %0 = bngrad.num_threads max 64
      return %0 : i32
    }
    ```
  }];

  let arguments = (ins I32Attr:$max);
  let results = (outs I32:$result);
  let assemblyFormat = "`max` $max attr-dict";
  let hasVerifier = 1;
}

def BNGrad_YieldOp
    : BNGrad_Op<"yield", [Pure, Terminator, HasParent<"ParallelOp">]> {
  let summary = "end of a phase";
  let description = [{
    Ends a phase of `bngrad.parallel`.
  }];
  let assemblyFormat = "attr-dict";
}

#endif // BNGRAD_DIALECT_BNGRADOPS_TD
