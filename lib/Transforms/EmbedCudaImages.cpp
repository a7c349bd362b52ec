//===- EmbedCudaImages.cpp - kernels for several chips --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches are translated by upstream's handler, which takes the module from a
// variable of a certain name; here that is filled by bngradCudaModuleLoad, with
// a table of bngradCudaImage_t, before main.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/CudaImages.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Runtime/Cuda.h"
#include "BNGrad/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADEMBEDCUDAIMAGESPASS
#include "BNGrad/Transforms/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// Upstream's, which are not public: of constructors, and of the variable that
/// holds the module of binary NAME.
static constexpr int kPriority = 123;
static constexpr StringLiteral kModuleSuffix = "_module";

/// An internal function without arguments that runs before or after main.
static llvm::Function *addStartFunction(llvm::Module &module,
                                        const Twine &name) {
  auto *type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), {});
  auto *function = llvm::Function::Create(
      type, llvm::GlobalValue::InternalLinkage, name, module);
  function->setSection(".text.startup");
  llvm::BasicBlock::Create(module.getContext(), "entry", function);
  return function;
}

static llvm::GlobalVariable *
addConstant(llvm::Module &module, llvm::Constant *value, const Twine &name) {
  auto *global =
      new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::InternalLinkage, value, name);
  global->setAlignment(llvm::Align(8));
  return global;
}

/// A bngradCudaImage_t.
static FailureOr<llvm::Constant *> makeImage(gpu::BinaryOp binary, unsigned i,
                                             llvm::Module &module) {
  auto object = cast<gpu::ObjectAttr>(binary.getObjects()[i]);
  auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
  if (!target)
    return binary.emitOpError()
           << "expected objects for NVIDIA GPUs with " << CudaImagesAttr::name
           << ", got target " << object.getTarget();
  llvm::LLVMContext &context = module.getContext();
  bool isPtx = object.getFormat() == gpu::CompilationTarget::Assembly;
  StringRef bytes = object.getObject().getValue();
  if (isPtx)
    bytes = bytes.rtrim('\0');
  std::string stem = (binary.getName() + "_" + target.getChip()).str();
  llvm::Constant *chip = addConstant(
      module, llvm::ConstantDataArray::getString(context, target.getChip()),
      stem + "_chip");
  llvm::Constant *data = addConstant(
      module,
      llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/isPtx),
      stem + "_image");
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *i64 = llvm::Type::getInt64Ty(context);
  int32_t format = isPtx ? BNGRAD_CUDA_IMAGE_PTX : BNGRAD_CUDA_IMAGE_BINARY;
  return llvm::ConstantStruct::getAnon(
      {chip, llvm::ConstantInt::get(i32, format),
       llvm::ConstantInt::get(i32, target.getO()),
       llvm::ConstantInt::get(i64, bytes.size()), data});
}

static LogicalResult embed(gpu::BinaryOp binary, llvm::Module &module) {
  llvm::LLVMContext &context = module.getContext();
  SmallVector<llvm::Constant *> images;
  for (unsigned i : llvm::seq<unsigned>(binary.getObjects().size())) {
    FailureOr<llvm::Constant *> image = makeImage(binary, i, module);
    if (failed(image))
      return failure();
    images.push_back(*image);
  }
  std::string name = binary.getName().str();
  auto *tableType =
      llvm::ArrayType::get(images.front()->getType(), images.size());
  llvm::GlobalVariable *table = addConstant(
      module, llvm::ConstantArray::get(tableType, images), name + "_images");
  auto *pointer = llvm::PointerType::getUnqual(context);
  auto *loaded = new llvm::GlobalVariable(
      module, pointer, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantPointerNull::get(pointer), name + kModuleSuffix);

  auto *i64 = llvm::Type::getInt64Ty(context);
  llvm::Function *load = addStartFunction(module, name + "_load");
  llvm::IRBuilder<> b(&load->getEntryBlock());
  llvm::FunctionCallee loadModule =
      module.getOrInsertFunction("bngradCudaModuleLoad", pointer, pointer, i64);
  b.CreateStore(b.CreateCall(loadModule, {table, llvm::ConstantInt::get(
                                                     i64, images.size())}),
                loaded);
  b.CreateRetVoid();
  llvm::appendToGlobalCtors(module, load, kPriority);

  llvm::Function *unload = addStartFunction(module, name + "_unload");
  b.SetInsertPoint(&unload->getEntryBlock());
  llvm::FunctionCallee unloadModule =
      module.getOrInsertFunction("mgpuModuleUnload", b.getVoidTy(), pointer);
  b.CreateCall(unloadModule, {b.CreateLoad(pointer, loaded)});
  b.CreateRetVoid();
  llvm::appendToGlobalDtors(module, unload, kPriority);
  return success();
}

namespace {
struct CudaImagesTranslation
    : gpu::OffloadingLLVMTranslationAttrInterface::ExternalModel<
          CudaImagesTranslation, CudaImagesAttr> {
  LogicalResult embedBinary(Attribute, Operation *op, llvm::IRBuilderBase &,
                            LLVM::ModuleTranslation &translation) const {
    return embed(cast<gpu::BinaryOp>(op), *translation.getLLVMModule());
  }

  LogicalResult launchKernel(Attribute attr, Operation *launch, Operation *op,
                             llvm::IRBuilderBase &builder,
                             LLVM::ModuleTranslation &translation) const {
    // Upstream's handler takes itself to be the one of the binary.
    auto binary = cast<gpu::BinaryOp>(op);
    auto upstream = gpu::SelectObjectAttr::get(attr.getContext(), nullptr);
    binary.setOffloadingHandlerAttr(upstream);
    LogicalResult result =
        cast<gpu::OffloadingLLVMTranslationAttrInterface>(Attribute(upstream))
            .launchKernel(launch, op, builder, translation);
    binary.setOffloadingHandlerAttr(attr);
    return result;
  }
};

struct BNGradEmbedCudaImagesPass
    : bngrad::impl::BNGradEmbedCudaImagesPassBase<BNGradEmbedCudaImagesPass> {
  void runOnOperation() override {
    for (auto binary : getOperation().getOps<gpu::BinaryOp>())
      if (binary.getObjects().size() > 1)
        binary.setOffloadingHandlerAttr(CudaImagesAttr::get(&getContext()));
  }
};
} // namespace

void mlir::bngrad::registerCudaImagesTranslation(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, BNGradDialect *) {
    CudaImagesAttr::attachInterface<CudaImagesTranslation>(*context);
  });
}
