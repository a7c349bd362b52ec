//===- DeviceBuffers.cpp - the buffers of a group on the device -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ops on the device depend on the one token that the first gpu.wait
// returns. Upstream lowers that token to the stream, and a stream keeps the
// order of calls.
//
//===----------------------------------------------------------------------===//

#include "DeviceBuffers.h"
#include "Utils/IndexBuilder.h"
#include "Utils/Utils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::bngrad;

/// The source of a view that has a twin on the device, or null.
static Value getViewSource(Value memref) {
  Operation *def = memref.getDefiningOp();
  if (isa_and_present<memref::CollapseShapeOp, memref::ExpandShapeOp,
                      memref::CastOp>(def) &&
      isa<MemRefType>(def->getOperand(0).getType()))
    return def->getOperand(0);
  return {};
}

static Value getRoot(Value memref) {
  while (Value source = getViewSource(memref))
    memref = source;
  return memref;
}

static bool isMemRef(Value value) { return isa<MemRefType>(value.getType()); }

/// The ancestor of `op` in `block`; null if there is none, or if an op between
/// them may run `op` several times or not at all.
static Operation *findOnce(Block *block, Operation *op) {
  while (op->getBlock() != block) {
    op = op->getParentOp();
    if (!isa<scf::ExecuteRegionOp>(op))
      return nullptr;
  }
  return op;
}

/// True if only `group` uses `root`, apart from the fills in `fills`: it needs
/// no host buffer.
static bool isLocal(Value root, const ScheduledGroup &group,
                    const llvm::SetVector<Operation *> &fills) {
  auto alloc = root.getDefiningOp<memref::AllocOp>();
  SmallVector<linalg::GenericOp> members = group.getMembers();
  if (!alloc || !findOnce(alloc->getBlock(), members.front()))
    return false;
  SmallVector<Operation *> users;
  collectUsers(root, users);
  return llvm::all_of(users, [&](Operation *user) {
    return isa<memref::DeallocOp>(user) || fills.contains(user) ||
           (user->getNumResults() == 1 && getViewSource(user->getResult(0))) ||
           llvm::is_contained(members, user);
  });
}

/// The fill that always writes output `memref` last before `generic`, or null.
static linalg::FillOp findFill(Value memref, linalg::GenericOp generic) {
  SmallVector<Operation *> users;
  collectUsers(getMemory(memref), users);
  auto isOfOtherPart = [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return !isMemRef(operand) || areDisjoint(operand, getRoot(memref)) ||
             getMemory(operand) != getMemory(memref);
    });
  };
  for (Operation *user : users) {
    auto fill = dyn_cast<linalg::FillOp>(user);
    if (!fill || getRoot(fill.getDpsInits()[0]) != getRoot(memref))
      continue;
    Operation *later = findOnce(fill->getBlock(), generic);
    if (!later || !fill->isBeforeInBlock(later))
      continue;
    bool isLast = llvm::none_of(users, [&](Operation *other) {
      if (other == generic || isa<memref::DeallocOp>(other) ||
          isMemoryEffectFree(other) || isOfOtherPart(other))
        return false;
      Operation *inBlock = fill->getBlock()->findAncestorOpInBlock(*other);
      if (!inBlock || !fill->isBeforeInBlock(inBlock))
        return false;
      Operation *beside = generic->getBlock()->findAncestorOpInBlock(*other);
      return !(beside ? generic->isBeforeInBlock(beside)
                      : later->isBeforeInBlock(inBlock));
    });
    if (isLast)
      return fill;
  }
  return {};
}

static MemRefType getDenseType(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return MemRefType::get(type.getShape(), type.getElementType());
}

static SmallVector<Value> getDynamicSizes(OpBuilder &b, Location loc,
                                          Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<Value> sizes;
  for (int64_t dim : llvm::seq(type.getRank()))
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(b, loc, memref, dim));
  return sizes;
}

/// A dense copy of `root` on the host, with its elements if it `isRead`; null
/// if `root` itself is dense.
static Value createDense(OpBuilder &b, Location loc, Value root, bool isRead) {
  MemRefType denseType = getDenseType(root);
  if (root.getType() == denseType)
    return Value();
  Value dense =
      memref::AllocOp::create(b, loc, denseType, getDynamicSizes(b, loc, root));
  if (isRead)
    memref::CopyOp::create(b, loc, root, dense);
  return dense;
}

/// Calls `visit` with each memref that the body of `member` reads besides its
/// operands.
static void forEachReadBeside(linalg::GenericOp member,
                              function_ref<void(OpOperand &)> visit) {
  SmallVector<OpOperand *> operands;
  visitUsedValuesDefinedAbove(member.getRegion(), [&](OpOperand *operand) {
    if (isMemRef(operand->get()))
      operands.push_back(operand);
  });
  for (OpOperand *operand : operands)
    visit(*operand);
}

DeviceBuffers::DeviceBuffers(OpBuilder &b, const ScheduledGroup &group,
                             bool deviceArguments)
    : loc(group.getMembers().front().getLoc()),
      deviceArguments(deviceArguments) {
  SmallVector<Value> roots;
  auto access = [&](Value memref) -> Access & {
    Value root = getRoot(memref);
    if (!llvm::is_contained(roots, root))
      roots.push_back(root);
    return accesses[root];
  };
  llvm::SetVector<Operation *> fills;
  for (linalg::GenericOp member : group.getMembers()) {
    for (OpOperand *operand : member.getDpsInputOperands())
      if (isMemRef(operand->get()))
        access(operand->get()).isRead = true;
    forEachReadBeside(member, [&](OpOperand &operand) {
      access(operand.get()).isRead = true;
    });
    for (OpOperand &init : member.getDpsInitsMutable()) {
      Access &output = access(init.get());
      output.isWritten = true;
      if (member.getMatchingBlockArgument(&init).use_empty())
        continue;
      unsigned i = init.getOperandNumber() - member.getNumDpsInputs();
      const Stage *stage = llvm::find_if(group.stages, [&](const Stage &each) {
        return each.reduction == member;
      });
      linalg::FillOp fill;
      if (stage != group.stages.end())
        fill = findFill(init.get(), member);
      if (fill) {
        unsigned number = stage - group.stages.begin();
        initialValues[{number, i}] = fill.getInputs()[0];
        fills.insert(fill);
      } else {
        output.isRead = true;
      }
    }
  }
  // The fills are dead: the sums overwrite them.
  SmallVector<Operation *> dead(fills.begin(), fills.end());
  // Allocate host memory first: if it runs out, the function returns, and there
  // is no device memory to free.
  for (Value root : roots)
    if (!(deviceArguments && isArgument(root)) && !isLocal(root, group, fills))
      if (Value dense = createDense(b, loc, root, accesses[root].isRead))
        denseForms.push_back({dense, root});
  auto tokenType = b.getType<gpu::AsyncTokenType>();
  stream = gpu::WaitOp::create(b, loc, tokenType, ValueRange()).getAsyncToken();
  for (Value root : roots) {
    auto type = cast<MemRefType>(root.getType());
    if (deviceArguments && isArgument(root)) {
      devices[root] = root;
    } else if (isLocal(root, group, fills)) {
      SmallVector<Value> sizes(
          root.getDefiningOp<memref::AllocOp>().getDynamicSizes());
      devices[root] = allocate(b, type, sizes);
      SmallVector<Operation *> users;
      collectUsers(root, users);
      for (Operation *user : users)
        if (isa<memref::DeallocOp>(user))
          dead.push_back(user);
    } else {
      devices[root] = mirror(b, root, accesses[root]);
    }
  }
  for (linalg::GenericOp member : group.getMembers())
    for (OpOperand &operand : member->getOpOperands())
      if (isMemRef(operand.get()))
        operand.set(getDevice(b, operand.get()));
  for (linalg::GenericOp member : group.getMembers())
    forEachReadBeside(member, [&](OpOperand &operand) {
      operand.set(getDevice(b, operand.get()));
    });
  for (Operation *op : dead)
    op->erase();
}

Value DeviceBuffers::allocate(OpBuilder &b, MemRefType type, ValueRange sizes) {
  Value memref = gpu::AllocOp::create(b, loc, type, stream.getType(), stream,
                                      sizes, ValueRange())
                     .getMemref();
  allocated.push_back(memref);
  return memref;
}

void DeviceBuffers::free(OpBuilder &b, Value memref) {
  llvm::erase(allocated, memref);
  gpu::DeallocOp::create(b, loc, stream.getType(), stream, memref);
}

void DeviceBuffers::copy(OpBuilder &b, Value to, Value from) const {
  gpu::MemcpyOp::create(b, loc, stream.getType(), stream, to, from);
}

Value DeviceBuffers::mirror(OpBuilder &b, Value root, Access access) {
  auto type = cast<MemRefType>(root.getType());
  MemRefType denseType = getDenseType(root);
  SmallVector<Value> sizes = getDynamicSizes(b, loc, root);
  Value host = root;
  for (auto [dense, strided] : denseForms)
    if (strided == root)
      host = dense;
  std::string text;
  llvm::raw_string_ostream(text)
      << "copied " << (access.isRead ? "to" : "from")
      << (access.isRead && access.isWritten ? " and from" : "")
      << " the device: a buffer of type " << type;
  remark::analysis(
      loc, remark::RemarkOpts::name("copy").category("bngrad-apply-schedule"))
      << text;
  Value device = allocate(b, denseType, sizes);
  if (access.isRead)
    copy(b, device, host);
  if (access.isWritten)
    results.push_back({device, host});
  return device;
}

Value DeviceBuffers::getDevice(OpBuilder &b, Value memref) {
  if (Value device = devices.lookup(memref))
    return device;
  Value source = getViewSource(memref);
  // This member already uses its device buffer.
  if (!source)
    return memref;
  Value device = getDevice(b, source);
  auto type = cast<MemRefType>(memref.getType());
  // The copy of a strided buffer is dense, and so are its views.
  if (device.getType() != source.getType())
    type = MemRefType::get(type.getShape(), type.getElementType());
  if (device.getType() == type)
    return devices[memref] = device;
  // Equal views of the same data share one value, by which readers recognize
  // it.
  Value &view = views[{device, type}];
  if (!view) {
    IRMapping mapping;
    mapping.map(source, device);
    Operation *op = b.clone(*memref.getDefiningOp(), mapping);
    op->getResult(0).setType(type);
    view = op->getResult(0);
  }
  return devices[memref] = view;
}

bool DeviceBuffers::isTemporary(Value memref) const {
  Value root = getRoot(memref);
  return llvm::is_contained(allocated, root) &&
         llvm::none_of(results,
                       [&](auto result) { return result.first == root; });
}

bool DeviceBuffers::isAligned(Value memref) const {
  return isTestedAligned || !deviceArguments || !isArgument(getRoot(memref));
}

Value DeviceBuffers::testAlignment(OpBuilder &b,
                                   ArrayRef<linalg::GenericOp> generics,
                                   unsigned inner) const {
  llvm::SetVector<Value> unknown;
  for (linalg::GenericOp generic : generics)
    for (OpOperand &operand : generic->getOpOperands())
      if (isMemRef(operand.get()) &&
          generic.getMatchingIndexingMap(&operand).isFunctionOfDim(inner) &&
          !isAligned(operand.get()))
        unknown.insert(operand.get());
  IndexBuilder index = {b, loc};
  Value result;
  for (Value memref : unknown) {
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
    Value isMultiple = index.compare(arith::CmpIPredicate::eq,
                                     index.rem(address, index.constant(16)),
                                     index.constant(0));
    result = result ? b.createOrFold<arith::AndIOp>(loc, result, isMultiple)
                    : isMultiple;
  }
  return result;
}

void DeviceBuffers::finish(OpBuilder &b) {
  for (auto [device, host] : results)
    copy(b, host, device);
  for (Value memref : allocated)
    gpu::DeallocOp::create(b, loc, stream.getType(), stream, memref);
  // Upstream folds away a wait for the token of another wait. Any other token
  // of the stream serves as well, as it comes after all calls so far.
  Value token = stream;
  for (Operation *user : stream.getUsers())
    if (auto async = dyn_cast<gpu::AsyncOpInterface>(user);
        async && async.getAsyncToken() && user->getBlock() == b.getBlock() &&
        (token == stream || token.getDefiningOp()->isBeforeInBlock(user)))
      token = async.getAsyncToken();
  // All calls may be in nested blocks.
  if (token == stream) {
    Value byte = allocate(b, MemRefType::get({1}, b.getI8Type()), {});
    token = gpu::DeallocOp::create(b, loc, stream.getType(), stream, byte)
                .getAsyncToken();
  }
  gpu::WaitOp::create(b, loc, Type(), token);
  for (auto [dense, strided] : denseForms) {
    if (accesses.lookup(strided).isWritten)
      memref::CopyOp::create(b, loc, dense, strided);
    memref::DeallocOp::create(b, loc, dense);
  }
}

/// The dense argument that the host op `op` writes as a whole and does not
/// read; null if there is none.
static OpOperand *getWrittenArgument(Operation *op) {
  OpOperand *written = nullptr;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    written = fill.getDpsInitOperand(0);
  else if (auto store = dyn_cast<memref::StoreOp>(op))
    written = &store.getMemrefMutable();
  auto type =
      written ? dyn_cast<MemRefType>(written->get().getType()) : MemRefType();
  bool isWhole = type && type.getLayout().isIdentity() &&
                 (isa<linalg::FillOp>(op) || type.getRank() == 0);
  return isWhole && isArgument(written->get()) ? written : nullptr;
}

/// Emits a copy on the device at the rewriter's insertion point.
static void copyOnDevice(RewriterBase &rewriter, Location loc, Value target,
                         Value source) {
  auto tokenType = rewriter.getType<gpu::AsyncTokenType>();
  Value stream = gpu::WaitOp::create(rewriter, loc, tokenType, ValueRange())
                     .getAsyncToken();
  Value token =
      gpu::MemcpyOp::create(rewriter, loc, tokenType, stream, target, source)
          .getAsyncToken();
  gpu::WaitOp::create(rewriter, loc, Type(), token);
}

/// Makes `op` write a host buffer, which is then copied to the argument.
static void writeOnHost(RewriterBase &rewriter, Operation *op,
                        OpOperand &written) {
  Location loc = op->getLoc();
  Value argument = written.get();
  auto type = cast<MemRefType>(argument.getType());
  rewriter.setInsertionPoint(op);
  Value host = memref::AllocOp::create(
      rewriter, loc, type, getDynamicSizes(rewriter, loc, argument));
  written.set(host);
  rewriter.setInsertionPointAfter(op);
  copyOnDevice(rewriter, loc, argument, host);
  memref::DeallocOp::create(rewriter, loc, host);
}

void mlir::bngrad::copyDeviceArguments(RewriterBase &rewriter,
                                       func::FuncOp function) {
  SmallVector<memref::CopyOp> copies;
  SmallVector<std::pair<Operation *, OpOperand *>> writes;
  auto isDense = [](Value memref) {
    auto type = dyn_cast<MemRefType>(memref.getType());
    return type && type.getLayout().isIdentity();
  };
  function.walk([&](Operation *op) {
    if (op->getParentOfType<gpu::LaunchOp>())
      return;
    auto copy = dyn_cast<memref::CopyOp>(op);
    if (copy && isDense(copy.getSource()) && isDense(copy.getTarget()) &&
        (isArgument(copy.getSource()) || isArgument(copy.getTarget())))
      copies.push_back(copy);
    if (OpOperand *written = getWrittenArgument(op))
      writes.push_back({op, written});
  });
  for (memref::CopyOp copy : copies) {
    rewriter.setInsertionPoint(copy);
    copyOnDevice(rewriter, copy.getLoc(), copy.getTarget(), copy.getSource());
    rewriter.eraseOp(copy);
  }
  for (auto [op, written] : writes)
    writeOnHost(rewriter, op, *written);
}

LogicalResult mlir::bngrad::verifyDeviceArguments(func::FuncOp function) {
  // A callee's arguments are in device memory, too.
  WalkResult calls = function.walk([&](func::CallOp call) {
    for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
      if (!isMemRef(operand) || isArgument(operand))
        continue;
      call.emitOpError() << "expected operand " << i
                         << " to be an argument, in memory of the device, got "
                            "a buffer of the host";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (calls.wasInterrupted())
    return failure();
  for (BlockArgument argument : function.getArguments()) {
    if (!isMemRef(argument))
      continue;
    SmallVector<Operation *> users;
    collectUsers(argument, users);
    for (Operation *user : users) {
      auto effects = dyn_cast<MemoryEffectOpInterface>(user);
      bool isAccess = effects && (effects.hasEffect<MemoryEffects::Read>() ||
                                  effects.hasEffect<MemoryEffects::Write>());
      // Its result may be any of several buffers.
      bool isChoice = isa<arith::SelectOp>(user) ||
                      (user->hasTrait<OpTrait::IsTerminator>() &&
                       !isa<func::ReturnOp>(user));
      if ((!isAccess && !isChoice) || user->getParentOfType<gpu::LaunchOp>() ||
          isa<gpu::GPUDialect>(user->getDialect()))
        continue;
      return user->emitOpError()
             << "expected a kernel to access argument "
             << argument.getArgNumber() << ", which is in memory of the "
             << "device, got code of the host; only gradients with something "
                "to sum over, and what is fused with them, become kernels";
    }
  }
  return success();
}
