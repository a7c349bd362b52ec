//===- compiler.cpp - compiles a gradient and calls it --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/InitAll.h"

#include "mlir/Parser/Parser.h"

#include <cstdio>

using namespace mlir;

static constexpr char kGradient[] = R"mlir(
func.func @gradient(%dy: tensor<4x2xf32>, %x: tensor<4x2xf32>, %mean: tensor<2xf32>, %variance: tensor<2xf32>)
    -> tensor<2xf32> {
  %dx, %dscale, %doffset = bngrad.batch_norm_backward grad_output(%dy : tensor<4x2xf32>) input(%x : tensor<4x2xf32>)
      mean(%mean : tensor<2xf32>) variance(%variance : tensor<2xf32>) : tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>
  return %doffset : tensor<2xf32>
}
)mlir";

int main() {
  DialectRegistry registry;
  mlir::bngrad::registerAllDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(kGradient, &context);
  if (!module)
    return 1;
  FailureOr<bngrad::CompiledProgram> program =
      bngrad::compileToProgram(*module, bngrad::CompileOptions());
  if (failed(program))
    return 1;
  using Gradient = int32_t (*)(const float *, const float *, const float *,
                               const float *, float *);
  auto gradient = reinterpret_cast<Gradient>(program->lookup("gradient"));
  float dy[] = {1, 2, 3, 4, 5, 6, 7, 8}, x[] = {0, 1, 2, 3, 4, 5, 6, 7};
  float mean[] = {3, 4}, variance[] = {5, 5}, offset[2] = {};
  if (!gradient || gradient(dy, x, mean, variance, offset) != 0)
    return 1;
  std::printf("grad_offset %.1f %.1f\n", offset[0], offset[1]);
  return 0;
}
