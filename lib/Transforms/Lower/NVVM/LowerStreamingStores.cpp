//===- LowerStreamingStores.cpp - bngrad-lower-streaming-stores -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM ignores `nontemporal` in kernels. PTX has a cache operator for such
// stores, `.cs`, which makes the second-level cache evict their lines first.
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Lower/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::bngrad {
#define GEN_PASS_DEF_BNGRADLOWERSTREAMINGSTORESPASS
#include "BNGrad/Transforms/Lower/Passes.h.inc"
} // namespace mlir::bngrad

using namespace mlir;
using namespace mlir::bngrad;

/// The size of the longest access in PTX, in bytes.
static constexpr int64_t kMostBytes = 16;

/// The size in bytes of the vector that `store` stores, or 0 unless it consists
/// of whole words of 4 bytes and is aligned for PTX's vector stores.
static int64_t countBytes(LLVM::StoreOp store) {
  auto type = dyn_cast<VectorType>(store.getValue().getType());
  if (!type || type.isScalable() || !type.getElementType().isIntOrFloat())
    return 0;
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  int64_t bytes = bits / 8;
  int64_t alignment = store.getAlignment().value_or(1);
  bool isWhole = bits % 32 == 0 && llvm::isPowerOf2_64(bytes);
  return isWhole && alignment >= std::min(bytes, kMostBytes) ? bytes : 0;
}

/// The value that was inserted where `extract` reads, or null if unknown.
static Value findInserted(LLVM::ExtractValueOp extract) {
  ArrayRef<int64_t> wanted = extract.getPosition();
  Value container = extract.getContainer();
  while (auto insert = container.getDefiningOp<LLVM::InsertValueOp>()) {
    ArrayRef<int64_t> inserted = insert.getPosition();
    if (inserted == wanted)
      return insert.getValue();
    size_t common = std::min(inserted.size(), wanted.size());
    if (inserted.take_front(common) == wanted.take_front(common))
      return {}; // inserts only a part of the value, or more than it
    container = insert.getContainer();
  }
  return {};
}

/// Whether `address` is known to be in global memory, either from its type or
/// because it is derived from an argument of a kernel. Any other generic
/// address may be in local or shared memory.
static bool isGlobal(Value address) {
  for (;;) {
    auto type = cast<LLVM::LLVMPointerType>(address.getType());
    auto space = static_cast<NVVM::NVVMMemorySpace>(type.getAddressSpace());
    if (space != NVVM::NVVMMemorySpace::Generic)
      return space == NVVM::NVVMMemorySpace::Global;
    Operation *op = address.getDefiningOp();
    if (auto gep = dyn_cast_or_null<LLVM::GEPOp>(op)) {
      address = gep.getBase();
      continue;
    }
    if (auto cast = dyn_cast_or_null<LLVM::AddrSpaceCastOp>(op)) {
      address = cast.getArg();
      continue;
    }
    if (auto extract = dyn_cast_or_null<LLVM::ExtractValueOp>(op)) {
      address = findInserted(extract);
      if (!address)
        return false;
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(address);
    auto kernel =
        argument
            ? dyn_cast<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())
            : nullptr;
    return kernel && argument.getOwner()->isEntryBlock() &&
           kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) &&
           !kernel.getArgAttr(argument.getArgNumber(),
                              LLVM::LLVMDialect::getByValAttrName());
  }
}

/// Stores one, two or four 32-bit `words` at `address`.
static void storeWords(OpBuilder &b, Location loc, Value address,
                       ValueRange words) {
  SmallVector<Value> operands = {address};
  llvm::append_range(operands, words);
  StringRef ptx = words.size() == 4
                      ? "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};"
                  : words.size() == 2 ? "st.global.cs.v2.b32 [$0], {$1, $2};"
                                      : "st.global.cs.b32 [$0], $1;";
  NVVM::InlinePtxOp::create(b, loc, TypeRange(), operands, ValueRange(), ptx,
                            /*predicate=*/Value());
}

static void lower(OpBuilder &b, LLVM::StoreOp store, int64_t bytes) {
  Location loc = store.getLoc();
  b.setInsertionPoint(store);
  auto type = VectorType::get({bytes / 4}, b.getI32Type());
  Value all = LLVM::BitcastOp::create(b, loc, type, store.getValue());
  auto global = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
  Value address = store.getAddr();
  if (address.getType() != global)
    address = LLVM::AddrSpaceCastOp::create(b, loc, global, address);
  int64_t wordsAtOnce = std::min(bytes, kMostBytes) / 4;
  for (int64_t first = 0; first < bytes / 4; first += wordsAtOnce) {
    SmallVector<Value> words;
    for (int64_t word : llvm::seq(first, first + wordsAtOnce)) {
      Value number =
          LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(word));
      words.push_back(LLVM::ExtractElementOp::create(b, loc, all, number));
    }
    Value at = LLVM::GEPOp::create(b, loc, global, b.getI32Type(), address,
                                   LLVM::GEPArg(static_cast<int32_t>(first)));
    storeWords(b, loc, at, words);
  }
  store.erase();
}

namespace {
struct BNGradLowerStreamingStoresPass
    : bngrad::impl::BNGradLowerStreamingStoresPassBase<
          BNGradLowerStreamingStoresPass> {
  void runOnOperation() override {
    OpBuilder b(&getContext());
    getOperation().walk([&](LLVM::StoreOp store) {
      if (!store.getNontemporal() || store.getVolatile_() ||
          !isGlobal(store.getAddr()))
        return;
      if (int64_t bytes = countBytes(store); bytes > 0)
        lower(b, store, bytes);
    });
  }
};
} // namespace
