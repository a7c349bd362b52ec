//===- CudaImages.h - kernels for several chips --------------- -*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BNGRAD_TRANSFORMS_CUDAIMAGES_H
#define BNGRAD_TRANSFORMS_CUDAIMAGES_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::bngrad {

/// Lets #bngrad.cuda_images be translated to LLVM IR: needed in a context whose
/// modules with kernels for several chips are.
void registerCudaImagesTranslation(DialectRegistry &registry);

} // namespace mlir::bngrad

#endif // BNGRAD_TRANSFORMS_CUDAIMAGES_H
