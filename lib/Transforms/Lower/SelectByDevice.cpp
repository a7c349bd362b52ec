//===- SelectByDevice.cpp - kernels for several chips ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/SelectByDevice.h"

#include "BNGrad/Dialect/BNGrad.h"
#include "BNGrad/Runtime/Cuda.h"

#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Target/LLVMIR/ModuleTranslation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The priority of the module's constructor. It must run before the
/// constructors of the program, which may launch kernels.
static constexpr int kPriority = 123;

/// Embeds `object` as `name`, and returns its bngradCudaImage_t.
static FailureOr<llvm::Constant *>
embedImage(gpu::BinaryOp binary, gpu::ObjectAttr object, const Twine &name,
           llvm::Module &module, llvm::StructType *imageType) {
  auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
  if (!target)
    return binary.emitOpError()
           << "expected the target of each object to be #nvvm.target, got "
           << object.getTarget();
  llvm::LLVMContext &context = module.getContext();
  auto embed = [&](StringRef bytes, const Twine &symbol, bool addNull) {
    llvm::Constant *data =
        llvm::ConstantDataArray::getString(context, bytes, addNull);
    auto *global = new llvm::GlobalVariable(
        module, data->getType(),
        /*isConstant=*/true, llvm::GlobalValue::InternalLinkage, data, symbol);
    global->setAlignment(llvm::Align(16));
    return global;
  };
  bool isText = object.getFormat() == gpu::CompilationTarget::Assembly;
  int format = isText ? BNGRAD_CUDA_IMAGE_PTX
               : object.getFormat() == gpu::CompilationTarget::Fatbin
                   ? BNGRAD_CUDA_IMAGE_FATBIN
                   : BNGRAD_CUDA_IMAGE_BINARY;
  StringRef bytes = object.getObject().getValue();
  int64_t optLevel = target.getO();
  auto constant = [&](unsigned bits, int64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context, bits), value);
  };
  return llvm::ConstantStruct::get(
      imageType,
      {embed(target.getChip(), name + "_chip", /*addNull=*/true),
       constant(32, format), constant(32, optLevel), constant(64, bytes.size()),
       embed(bytes, name, /*addNull=*/isText)});
}

/// The names of the kernels of `binary` that are launched, in the order of
/// their launches.
static llvm::SetVector<StringRef> getLaunchedKernels(gpu::BinaryOp binary) {
  llvm::SetVector<StringRef> names;
  binary->getParentOp()->walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() == binary.getName())
      names.insert(launch.getKernelName().getValue());
  });
  return names;
}

namespace {
struct SelectByDeviceTranslation
    : gpu::OffloadingLLVMTranslationAttrInterface::ExternalModel<
          SelectByDeviceTranslation, SelectByDeviceAttr> {
  LogicalResult embedBinary(Attribute, Operation *op, llvm::IRBuilderBase &,
                            LLVM::ModuleTranslation &translation) const {
    auto binary = cast<gpu::BinaryOp>(op);
    llvm::Module &module = *translation.getLLVMModule();
    llvm::LLVMContext &context = module.getContext();
    auto *pointer = llvm::PointerType::get(context, 0);
    auto *i32 = llvm::Type::getInt32Ty(context);
    auto *i64 = llvm::Type::getInt64Ty(context);
    auto *imageType =
        llvm::StructType::get(context, {pointer, i32, i32, i64, pointer});
    std::string name = binary.getName().str();
    SmallVector<llvm::Constant *> images;
    for (auto [i, object] :
         llvm::enumerate(binary.getObjects().getAsRange<gpu::ObjectAttr>())) {
      auto image = embedImage(binary, object, name + "_image_" + Twine(i),
                              module, imageType);
      if (failed(image))
        return failure();
      images.push_back(*image);
    }
    auto *tableType = llvm::ArrayType::get(imageType, images.size());
    auto *table = new llvm::GlobalVariable(
        module, tableType, /*isConstant=*/true,
        llvm::GlobalValue::InternalLinkage,
        llvm::ConstantArray::get(tableType, images), name + "_images");
    // Upstream's launches load the module handle from the global of this name.
    auto *handle = new llvm::GlobalVariable(
        module, pointer, /*isConstant=*/false,
        llvm::GlobalValue::InternalLinkage,
        llvm::ConstantPointerNull::get(pointer), name + "_module");

    auto createFunction = [&](StringRef suffix) {
      auto *function = llvm::Function::Create(
          llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
          llvm::GlobalValue::InternalLinkage, name + suffix, module);
      return std::pair(function,
                       llvm::BasicBlock::Create(context, "entry", function));
    };
    auto [load, loadBody] = createFunction("_load");
    llvm::IRBuilder<> b(loadBody);
    llvm::FunctionCallee loader = module.getOrInsertFunction(
        "bngradCudaModuleLoad",
        llvm::FunctionType::get(pointer, {pointer, i64}, false));
    llvm::Value *loaded =
        b.CreateCall(loader, {table, b.getInt64(images.size())});
    b.CreateStore(loaded, handle);
    // Register the names of the kernels: the first launch loads all kernels
    // whose names are known by then.
    llvm::FunctionCallee getKernel = module.getOrInsertFunction(
        "mgpuModuleGetFunction",
        llvm::FunctionType::get(pointer, {pointer, pointer}, false));
    for (StringRef kernel : getLaunchedKernels(binary))
      b.CreateCall(getKernel,
                   {loaded, b.CreateGlobalString(kernel, name + "_kernel")});
    b.CreateRetVoid();
    llvm::appendToGlobalCtors(module, load, kPriority);

    auto [unload, unloadBody] = createFunction("_unload");
    b.SetInsertPoint(unloadBody);
    llvm::FunctionCallee unloader = module.getOrInsertFunction(
        "mgpuModuleUnload",
        llvm::FunctionType::get(b.getVoidTy(), {pointer}, false));
    b.CreateCall(unloader, {b.CreateLoad(pointer, handle)});
    b.CreateRetVoid();
    llvm::appendToGlobalDtors(module, unload, kPriority);
    return success();
  }

  LogicalResult launchKernel(Attribute attribute, Operation *launch,
                             Operation *binary, llvm::IRBuilderBase &builder,
                             LLVM::ModuleTranslation &translation) const {
    // Once the module has been loaded, launches are the same as with upstream's
    // handler, so delegate to it. It expects itself as the handler of the
    // binary.
    auto select =
        gpu::SelectObjectAttr::get(attribute.getContext(), Attribute());
    OwningOpRef<gpu::BinaryOp> twin = cast<gpu::BinaryOp>(binary).clone();
    twin->setOffloadingHandlerAttr(select);
    return cast<gpu::OffloadingLLVMTranslationAttrInterface>(Attribute(select))
        .launchKernel(launch, *twin, builder, translation);
  }
};
} // namespace

void mlir::bngrad::registerSelectByDeviceTranslation(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, BNGradDialect *) {
    SelectByDeviceAttr::attachInterface<SelectByDeviceTranslation>(*context);
  });
}
