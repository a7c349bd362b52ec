//===- CompilerTest.cpp - objects and programs of a library user ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Compiler/Compiler.h"
#include "BNGrad/InitAll.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Object/ObjectFile.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::bngrad;

/// A context with all dialects, and the errors that it reports.
class CompilerTest : public testing::Test {
protected:
  CompilerTest()
      : handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            errors.push_back(diagnostic.str());
        }) {
    DialectRegistry registry;
    mlir::bngrad::registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.allowUnregisteredDialects();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  MLIRContext context;
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler;
};

/// Gradient of two channels over four rows of elements of type TYPE, as another
/// dialect has it, and a call to be inlined.
static std::string getGradient(StringRef type) {
  std::string text = R"mlir(
    func.func private @negate(%a: tensor<4x2xTYPE>) -> tensor<4x2xTYPE> {
      %0 = arith.negf %a : tensor<4x2xTYPE>
      return %0 : tensor<4x2xTYPE>
    }
    func.func @gradient(%x: tensor<4x2xTYPE>, %scale: tensor<2xTYPE>,
                        %mean: tensor<2xTYPE>, %variance: tensor<2xTYPE>,
                        %dy: tensor<4x2xTYPE>)
        -> (tensor<4x2xTYPE>, tensor<2xTYPE>, tensor<2xTYPE>) {
      %0 = call @negate(%dy) : (tensor<4x2xTYPE>) -> tensor<4x2xTYPE>
      %1:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %0)
          <{epsilon = 0.0 : f32, feature_index = 1 : i64}>
          : (tensor<4x2xTYPE>, tensor<2xTYPE>, tensor<2xTYPE>,
             tensor<2xTYPE>, tensor<4x2xTYPE>)
          -> (tensor<4x2xTYPE>, tensor<2xTYPE>, tensor<2xTYPE>)
      return %1#0, %1#1, %1#2
          : tensor<4x2xTYPE>, tensor<2xTYPE>, tensor<2xTYPE>
    })mlir";
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, type.str());
  return text;
}

namespace {
/// Operands whose channels differ, with mean 0, and results.
struct Data {
  std::array<float, 8> x = {1, -2, 2, 4, -1, 6, -2, -8};
  std::array<float, 2> scale = {1, 3}, mean = {0, 0}, variance = {4, 16};
  std::array<float, 8> dy = {1, 0, 3, 2, -5, 4, 7, -1}, dx = {};
  std::array<float, 2> dscale = {}, doffset = {};

  /// Compares the results with the formula in double; the gradient of -dy.
  void check() const {
    for (size_t channel : {0, 1}) {
      double sum = 0, product = 0, invStd = 1 / std::sqrt(variance[channel]);
      for (size_t i = channel; i < 8; i += 2) {
        sum -= dy[i];
        product -= static_cast<double>(dy[i]) * x[i];
      }
      EXPECT_FLOAT_EQ(doffset[channel], sum);
      EXPECT_FLOAT_EQ(dscale[channel], product * invStd);
      for (size_t i = channel; i < 8; i += 2)
        EXPECT_NEAR(
            dx[i],
            scale[channel] * invStd *
                (-dy[i] - sum / 4 - x[i] * invStd * invStd * product / 4),
            1e-6);
    }
  }
};
} // namespace

TEST_F(CompilerTest, ProgramComputesTheGradient) {
  OwningOpRef<ModuleOp> module = parse(getGradient("f32"));
  FailureOr<CompiledProgram> program = compileToProgram(*module, {});
  ASSERT_TRUE(succeeded(program));
  using Gradient =
      int32_t(const float *, const float *, const float *, const float *,
              const float *, float *, float *, float *);
  auto *gradient = reinterpret_cast<Gradient *>(program->lookup("gradient"));
  ASSERT_NE(gradient, nullptr);
  Data data;
  EXPECT_EQ(gradient(data.x.data(), data.scale.data(), data.mean.data(),
                     data.variance.data(), data.dy.data(), data.dx.data(),
                     data.dscale.data(), data.doffset.data()),
            0);
  data.check();
  // The checks of compiled functions.
  EXPECT_EQ(gradient(nullptr, data.scale.data(), data.mean.data(),
                     data.variance.data(), data.dy.data(), data.dx.data(),
                     data.dscale.data(), data.doffset.data()),
            -1);
}

TEST_F(CompilerTest, ProgramsWithThreadsFindOpenMP) {
  OwningOpRef<ModuleOp> module = parse(R"mlir(
    func.func @sums(%dy: tensor<64x64x64x64xf32>, %x: tensor<64x64x64x64xf32>,
                    %mean: tensor<64xf32>, %variance: tensor<64xf32>)
        -> tensor<64xf32> {
      %0:3 = bngrad.batch_norm_backward
          grad_output(%dy : tensor<64x64x64x64xf32>)
          input(%x : tensor<64x64x64x64xf32>) mean(%mean : tensor<64xf32>)
          variance(%variance : tensor<64xf32>)
          : tensor<64x64x64x64xf32>, tensor<64xf32>, tensor<64xf32>
      return %0#2 : tensor<64xf32>
    })mlir");
  CompileOptions options;
  options.threads = 2;
  FailureOr<CompiledProgram> program = compileToProgram(*module, options);
  ASSERT_TRUE(succeeded(program));
  std::vector<float> dy(64 * 64 * 64 * 64, 0.5f), x(dy.size());
  std::vector<float> mean(64), variance(64, 1), sums(64);
  void *arguments[] = {dy.data(), x.data(), mean.data(), variance.data(),
                       sums.data()};
  int32_t status = 1;
  std::vector<void *> packed;
  for (void *&argument : arguments)
    packed.push_back(static_cast<void *>(&argument));
  packed.push_back(&status);
  CompiledProgram::PackedFunction function = program->lookupPacked("sums");
  ASSERT_NE(function, nullptr);
  function(packed.data());
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sums, std::vector<float>(64, 64 * 64 * 64 * 0.5f));
}

TEST_F(CompilerTest, ProgramsLookUpOnlyWhatTheyHave) {
  OwningOpRef<ModuleOp> module = parse(getGradient("f32"));
  FailureOr<CompiledProgram> program = compileToProgram(*module, {});
  ASSERT_TRUE(succeeded(program));
  EXPECT_EQ(program->lookup("negate"), nullptr);
  EXPECT_EQ(program->lookupPacked("nothing"), nullptr);
  EXPECT_EQ(errors.size(), 2u);
}

TEST_F(CompilerTest, ObjectExportsAllEntries) {
  for (StringRef type : {"f16", "bf16", "f32", "f64"}) {
    OwningOpRef<ModuleOp> module = parse(getGradient(type));
    FailureOr<std::string> bytes = compileToObject(*module, {});
    ASSERT_TRUE(succeeded(bytes));
    llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> object =
        llvm::object::ObjectFile::createObjectFile({*bytes, "object"});
    ASSERT_TRUE(static_cast<bool>(object));
    std::set<std::string> exported;
    for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
      uint32_t flags = llvm::cantFail(symbol.getFlags());
      if ((flags & llvm::object::SymbolRef::SF_Global) &&
          !(flags & llvm::object::SymbolRef::SF_Undefined))
        exported.insert(llvm::cantFail(symbol.getName()).str());
    }
    EXPECT_EQ(exported, (std::set<std::string>{
                            "gradient", "gradient_checked", "gradient_diagnose",
                            "gradient_workspace", "_mlir_ciface_gradient"}));
  }
}

TEST_F(CompilerTest, CudaProgramsNeedTheirLibrary) {
  OwningOpRef<ModuleOp> module = parse(getGradient("f32"));
  CompileOptions options;
  options.device = Device::Cuda;
  EXPECT_TRUE(failed(compileToProgram(*module, options)));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find("expected ops that need only libc and "
                           "libm, got a use of '"),
            0u);
}

TEST_F(CompilerTest, ContextsNeedNoRegistration) {
  MLIRContext bare;
  bare.loadDialect<BNGradDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(R"mlir(
    func.func @f(%dy: tensor<8x2xf32>, %x: tensor<8x2xf32>,
                 %mean: tensor<2xf32>, %variance: tensor<2xf32>)
        -> tensor<8x2xf32> {
      %0:3 = bngrad.batch_norm_backward grad_output(%dy : tensor<8x2xf32>)
          input(%x : tensor<8x2xf32>) mean(%mean : tensor<2xf32>)
          variance(%variance : tensor<2xf32>)
          : tensor<8x2xf32>, tensor<2xf32>, tensor<2xf32>
      return %0#0 : tensor<8x2xf32>
    })mlir",
                                            &bare);
  FailureOr<CompiledProgram> program = compileToProgram(*module, {});
  ASSERT_TRUE(succeeded(program));
  EXPECT_NE(program->lookup("f"), nullptr);
}

TEST_F(CompilerTest, LibrariesMustExist) {
  OwningOpRef<ModuleOp> module = parse(getGradient("f32"));
  CompileOptions options;
  options.device = Device::Cuda;
  EXPECT_TRUE(failed(compileToProgram(*module, options, "/none/none.so")));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find("cannot load /none/none.so: "), 0u);
}

TEST_F(CompilerTest, ErrorsAreDiagnostics) {
  OwningOpRef<ModuleOp> module = parse(getGradient("f32"));
  CompileOptions options;
  options.codeGen.triple = "vax";
  EXPECT_TRUE(failed(compileToObject(*module, options)));
  std::string reason;
  EXPECT_TRUE(failed(verifyTarget(options.codeGen, reason)));
  EXPECT_EQ(errors, std::vector<std::string>{reason});
  EXPECT_EQ(reason.find("triple: expected one such as "), 0u);

  errors.clear();
  EXPECT_TRUE(failed(compileToProgram(*module, options)));
  EXPECT_EQ(errors, std::vector<std::string>{
                        "expected code for this machine, got triple 'vax', "
                        "cpu '' and features ''"});

  errors.clear();
  module = parse(R"mlir(func.func @f() { "vax.op"() : () -> () return })mlir");
  EXPECT_TRUE(failed(compileToObject(*module, {})));
  EXPECT_EQ(errors, std::vector<std::string>{
                        "expected an op of a registered dialect, got "
                        "'vax.op'"});
}
