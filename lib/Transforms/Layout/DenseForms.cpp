//===- DenseForms.cpp - versions of a group by strides --------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DenseForms.h"
#include "DataOrders.h"
#include "MergeLoops.h"
#include "PackData.h"
#include "StridedData.h"
#include "Utils/IndexBuilder.h"

#include "BNGrad/Dialect/Alignment.h"
#include "BNGrad/Dialect/BNGrad.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "bngrad-apply-schedule"

using namespace mlir;
using namespace mlir::bngrad;

static bool areOnMemRefs(const GroupMembers &members) {
  return llvm::all_of(members, [](linalg::GenericOp member) {
    return member.hasPureBufferSemantics();
  });
}

static bool isDense(Value memref) {
  return cast<MemRefType>(memref.getType()).getLayout().isIdentity();
}

/// The generics of `region`, in order.
static GroupMembers getGenerics(Operation *region) {
  return llvm::to_vector(region->getRegion(0).getOps<linalg::GenericOp>());
}

static bool hasWholeBytes(Value memref) {
  Type type = getElementTypeOrSelf(memref);
  return type.isIntOrFloat() &&
         (type.isInteger(1) || type.getIntOrFloatBitWidth() % 8 == 0);
}

/// Whether all users of `memref` in `region` are generics, which take it as an
/// operand or load single elements, so that data in another order, or a copy,
/// can replace it.
static bool isReadByGenerics(Value memref, scf::ExecuteRegionOp region) {
  return llvm::all_of(memref.getUsers(), [&](Operation *user) {
    return !region->isProperAncestor(user) ||
           isa<linalg::GenericOp, memref::LoadOp>(user);
  });
}

namespace {
class RegionVersioner {
public:
  RegionVersioner(RewriterBase &rewriter, scf::ExecuteRegionOp region,
                  const ScheduledGroup &group,
                  const llvm::SetVector<Value> &memrefs);

  /// Like versionByStrides; `members` are the generics of the region.
  FailureOr<SmallVector<GroupMembers>> build(const GroupMembers &members);

private:
  using Order = ArrayRef<int64_t>;
  using MakeVersion = function_ref<LogicalResult()>;
  /// The merged dims of each of the group's data.
  using MergedData = SmallVector<MergedDims>;

  // Versions.
  /// Calls `make` to add a version that runs if `test` holds, and sets the
  /// insertion point into the else branch. Returns true if `test` always holds,
  /// so that there is no else branch.
  FailureOr<bool> addVersion(Value test, MakeVersion make);
  /// Adds a clone of the region for data that are dense in `order` and start at
  /// `starts`.
  LogicalResult addDense(Order order, ArrayRef<DataBytes> starts);
  /// Adds a clone of the region for data with contiguous rows in `order`.
  LogicalResult addWithRows(Order order,
                            ArrayRef<ReassociationIndices> mergedLoops,
                            const MergedData &merged);
  /// Interchanges the loops of `generic` to follow `order`. The dims of its
  /// data are in `dataOrder`.
  LogicalResult reorderLoops(linalg::GenericOp generic, Order order,
                             Order dataOrder);

  // Dense data.
  /// An i1: whether all data are dense in `order`.
  Value areDense(Order order);
  FailureOr<bool> versionDense(Order order);

  // Rows.
  Value mergeOuterLoops(Order order, ArrayRef<ReassociationIndices> mergedLoops,
                        MergedData &merged);
  Value mergeRowLoops(Order order, const ReassociationIndices &rowLoops,
                      MergedData &merged);
  FailureOr<bool> versionWithRows(Order order);

  // Other data.
  LogicalResult versionPacked(CpuSchedule schedule);
  /// Adds a version for each order. `chosen` is the number of the order whose
  /// version runs.
  LogicalResult addDenseInChosen(Value chosen, ArrayRef<DataBytes> starts);
  /// Emits the number of the order in which the most data are dense.
  Value chooseOrder();
  Value isDenseInChosen(const StridedData &strided, Value chosen);
  struct Packed {
    DataBytes start;    // the start of the data or of their copy
    Value isCopy, copy; // null if the data are always dense
  };
  bool mayPack();
  Packed pack(const StridedData &strided, Value chosen);
  void unpack(const StridedData &strided, Value chosen, const Packed &packed);
  /// Views the copy as a memref with the dims of `strided`.
  Value getCopyView(OpBuilder &b, const StridedData &strided, Value chosen,
                    Value copy);
  void emitIf(Value condition, function_ref<void(OpBuilder &)> body);
  Value isChosen(OpBuilder &b, Value chosen, size_t order);

  IndexBuilder index() { return {rewriter, loc}; }
  Value constantBool(bool value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 1);
  }
  Value negate(OpBuilder &b, Value condition) {
    return b.createOrFold<arith::XOrIOp>(
        loc, condition, arith::ConstantIntOp::create(b, loc, 1, 1));
  }

  RewriterBase &rewriter;
  scf::ExecuteRegionOp region;
  Location loc;
  const ScheduledGroup &group;
  SmallVector<StridedData> data;
  /// Whether some dense data are allocated in the region, so that their sizes
  /// are not available before it.
  bool hasInside = false;
  /// The orders in which data may be dense, row-major first.
  SmallVector<SmallVector<int64_t>> orders;
  Value isStreamed; // an i1: whether copies use streaming stores
  SmallVector<GroupMembers> versions;
};
} // namespace

RegionVersioner::RegionVersioner(RewriterBase &rewriter,
                                 scf::ExecuteRegionOp region,
                                 const ScheduledGroup &group,
                                 const llvm::SetVector<Value> &memrefs)
    : rewriter(rewriter), region(region), loc(region.getLoc()), group(group),
      orders(getOrders(group)) {
  rewriter.setInsertionPoint(region);
  for (Value memref : memrefs) {
    bool isInside = region.getRegion().isAncestor(memref.getParentRegion());
    hasInside |= isInside;
    data.push_back(isInside ? StridedData(memref)
                            : StridedData::get(rewriter, loc, memref));
  }
  bool mayReorder = llvm::all_of(data, [&](const StridedData &strided) {
    return !strided.isDense() && isReadByGenerics(strided.memref, region);
  });
  if (!mayReorder)
    orders.truncate(1);
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

FailureOr<bool> RegionVersioner::addVersion(Value test, MakeVersion make) {
  if (matchPattern(test, m_Zero()))
    return false;
  bool isCertain = matchPattern(test, m_One());
  scf::IfOp choice;
  if (!isCertain) {
    choice = scf::IfOp::create(rewriter, loc, test, /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(choice.thenBlock());
  }
  if (failed(make()))
    return failure();
  if (!isCertain)
    rewriter.setInsertionPointToStart(choice.elseBlock());
  return isCertain;
}

LogicalResult RegionVersioner::reorderLoops(linalg::GenericOp generic,
                                            Order order, Order dataOrder) {
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  for (AffineMap &map : maps)
    if (isDataMap(map))
      map = AffineMap::getPermutationMap(dataOrder, rewriter.getContext());
  generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  SmallVector<unsigned> interchange(order.begin(), order.end());
  if (failed(linalg::interchangeGenericOp(rewriter, generic, interchange)))
    return generic.emitOpError() << "expected loops that can be interchanged";
  return success();
}

LogicalResult RegionVersioner::addDense(Order order,
                                        ArrayRef<DataBytes> starts) {
  IRMapping mapping;
  for (auto [strided, start] : llvm::zip_equal(data, starts))
    if (!strided.isDense())
      mapping.map(strided.memref,
                  strided.getDenseView(rewriter, loc, start, order));
  Operation *version = rewriter.clone(*region, mapping);
  // Loads in the bodies use indices of the original data, so they keep reading
  // the original memref.
  auto isLoad = [](OpOperand &use) {
    return isa<memref::LoadOp>(use.getOwner());
  };
  for (const StridedData &strided : data)
    if (!strided.isDense())
      rewriter.replaceUsesWithIf(mapping.lookup(strided.memref), strided.memref,
                                 isLoad);
  bool isRowMajor = llvm::is_sorted(order);
  for (linalg::GenericOp generic : getGenerics(version))
    if (!isRowMajor && generic.getNumLoops() == group.numLoops &&
        failed(reorderLoops(generic, order, order)))
      return failure();
  versions.push_back(getGenerics(version));
  return success();
}

LogicalResult
RegionVersioner::addWithRows(Order order,
                             ArrayRef<ReassociationIndices> mergedLoops,
                             const MergedData &merged) {
  DenseMap<Value, Value> views;
  for (auto [strided, mergedDims] : llvm::zip_equal(data, merged)) {
    DataDims dims = mergedDims;
    dims.strides.back() = index().constant(1);
    views[strided.memref] = strided.getStridedView(
        rewriter, loc, strided.getBytes(rewriter, loc), dims);
  }
  Operation *version = rewriter.clone(*region);
  LoopMerger merger(rewriter, std::move(views));
  for (linalg::GenericOp generic : getGenerics(version)) {
    if (generic.getNumLoops() != group.numLoops)
      continue;
    if (failed(reorderLoops(generic, order, orders.front())))
      return failure();
    merger.merge(generic, mergedLoops);
  }
  versions.push_back(getGenerics(version));
  return success();
}

//===----------------------------------------------------------------------===//
// Dense data
//===----------------------------------------------------------------------===//

Value RegionVersioner::areDense(Order order) {
  Value result = constantBool(true);
  for (const StridedData &strided : data)
    if (!strided.isDense())
      result = index().bitAnd(result, strided.isDenseIn(rewriter, loc, order));
  return result;
}

FailureOr<bool> RegionVersioner::versionDense(Order order) {
  return addVersion(areDense(order), [&] {
    SmallVector<DataBytes> starts;
    for (const StridedData &strided : data)
      starts.push_back(strided.isDense() ? DataBytes()
                                         : strided.getBytes(rewriter, loc));
    return addDense(order, starts);
  });
}

//===----------------------------------------------------------------------===//
// Contiguous rows
//===----------------------------------------------------------------------===//

/// For orders with the channels innermost: stores the dims of all data, merged
/// to [N, C], in `merged`, and returns the test whether this is possible.
Value RegionVersioner::mergeOuterLoops(
    Order order, ArrayRef<ReassociationIndices> mergedLoops,
    MergedData &merged) {
  Value test = constantBool(true);
  for (const StridedData &strided : data) {
    merged.push_back(strided.mergeDims(rewriter, loc, order, mergedLoops));
    test = index().bitAnd(test, merged.back().isPossible);
  }
  return test;
}

/// Does the same for the other orders, [N, C, S] or [C, S]. All loops are kept:
/// if the loops of `rowLoops` can be merged in all data, the last of them gets
/// all iterations, and the others get one iteration each.
Value RegionVersioner::mergeRowLoops(Order order,
                                     const ReassociationIndices &rowLoops,
                                     MergedData &merged) {
  auto isOne = [&](Value value) {
    return index().compare(arith::CmpIPredicate::eq, value,
                           index().constant(1));
  };
  MergedData rows;
  Value areMerged = mergeOuterLoops(order, rowLoops, rows);
  Value areContiguous = constantBool(true);
  for (auto [strided, row] : llvm::zip_equal(data, rows)) {
    MergedDims &dims = merged.emplace_back();
    dims.sizes = applyPermutation(ArrayRef(strided.sizes), order);
    dims.strides = applyPermutation(ArrayRef(strided.strides), order);
    areContiguous =
        index().bitAnd(areContiguous, index().bitOr(isOne(dims.strides.back()),
                                                    isOne(dims.sizes.back())));
    for (int64_t position : rowLoops) {
      bool isLast = position == rowLoops.back();
      Value size = isLast ? row.sizes.front() : index().constant(1);
      dims.sizes[position] =
          index().select(areMerged, size, dims.sizes[position]);
    }
  }
  return index().bitOr(areMerged, areContiguous);
}

FailureOr<bool> RegionVersioner::versionWithRows(Order order) {
  SmallVector<ReassociationIndices> loops = getRowLoops(group, order);
  if (hasInside || !mayMergeRows(group, order, loops))
    return false;
  MergedData merged;
  Value test;
  if (group.isFeature(order.back())) {
    test = mergeOuterLoops(order, loops, merged);
  } else {
    test = mergeRowLoops(order, loops.back(), merged);
    loops.clear();
    for (int64_t position : llvm::seq<int64_t>(order.size()))
      loops.push_back({position});
  }
  // Dense data have versions of their own.
  for (Order dense : orders)
    test = index().bitAnd(test, negate(rewriter, areDense(dense)));
  return addVersion(test, [&] { return addWithRows(order, loops, merged); });
}

//===----------------------------------------------------------------------===//
// Other data
//===----------------------------------------------------------------------===//

Value RegionVersioner::isChosen(OpBuilder &b, Value chosen, size_t order) {
  IndexBuilder at = {b, loc};
  return at.compare(arith::CmpIPredicate::eq, chosen, at.constant(order));
}

Value RegionVersioner::chooseOrder() {
  Value chosen = index().constant(0), most;
  if (orders.size() == 1)
    return chosen;
  for (auto [number, order] : llvm::enumerate(orders)) {
    Value count = index().constant(0);
    for (const StridedData &strided : data)
      count = index().add(
          count, index().select(strided.isDenseIn(rewriter, loc, order),
                                index().constant(1), index().constant(0)));
    if (number > 0) {
      Value isMore = index().compare(arith::CmpIPredicate::ugt, count, most);
      chosen = index().select(isMore, index().constant(number), chosen);
      most = index().select(isMore, count, most);
    } else {
      most = count;
    }
  }
  return chosen;
}

Value RegionVersioner::isDenseInChosen(const StridedData &strided,
                                       Value chosen) {
  Value result = strided.isDenseIn(rewriter, loc, orders.front());
  for (size_t number : llvm::seq<size_t>(1, orders.size()))
    result = index().select(isChosen(rewriter, chosen, number),
                            strided.isDenseIn(rewriter, loc, orders[number]),
                            result);
  return result;
}

Value RegionVersioner::getCopyView(OpBuilder &b, const StridedData &strided,
                                   Value chosen, Value copy) {
  IndexBuilder at = {b, loc};
  DataDims dims = {strided.sizes,
                   strided.getDenseStrides(b, loc, orders.front())};
  for (size_t number : llvm::seq<size_t>(1, orders.size()))
    for (auto [stride, other] : llvm::zip_equal(
             dims.strides, strided.getDenseStrides(b, loc, orders[number])))
      stride = at.select(isChosen(b, chosen, number), other, stride);
  return strided.getStridedView(b, loc, {copy, at.constant(0)}, dims);
}

void RegionVersioner::emitIf(Value condition,
                             function_ref<void(OpBuilder &)> body) {
  scf::IfOp::create(rewriter, loc, condition, [&](OpBuilder &b, Location) {
    body(b);
    scf::YieldOp::create(b, loc);
  });
}

/// Whether copies can replace the data: the generics are their only users, and
/// no generic accesses the memory of a result through another view.
bool RegionVersioner::mayPack() {
  auto isAnotherView = [](Value value, Value memref) {
    auto other = dyn_cast<MemrefValue>(value);
    return other && other != memref &&
           memref::skipViewLikeOps(other) ==
               memref::skipViewLikeOps(cast<MemrefValue>(memref));
  };
  return llvm::all_of(data, [&](const StridedData &strided) {
    Value memref = strided.memref;
    if (!strided.isDense() && !isReadByGenerics(memref, region))
      return false;
    return !DataUse::get(group, memref).isWritten ||
           llvm::none_of(group.getMembers(), [&](linalg::GenericOp member) {
             return llvm::any_of(member->getOperands(), [&](Value operand) {
               return isAnotherView(operand, memref);
             });
           });
  });
}

/// Copies `strided` unless it is dense in the chosen order. The size of the
/// copy depends only on the arguments, so the copy can be in the workspace.
RegionVersioner::Packed RegionVersioner::pack(const StridedData &strided,
                                              Value chosen) {
  Packed packed;
  if (strided.isDense())
    return packed;
  packed.start = strided.getBytes(rewriter, loc);
  Value isDense = isDenseInChosen(strided, chosen);
  if (matchPattern(isDense, m_One()))
    return packed;
  packed.isCopy = negate(rewriter, isDense);
  Value zero = index().constant(0);
  packed.copy = memref::AllocOp::create(
      rewriter, loc, cast<MemRefType>(packed.start.bytes.getType()),
      index().select(isDense, zero, strided.getByteCount(rewriter, loc)),
      rewriter.getI64IntegerAttr(kBufferAlignment));
  emitIf(packed.isCopy, [&](OpBuilder &b) {
    if (DataUse::get(group, strided.memref).isRead)
      emitCopy(b, loc, group, strided.memref,
               getCopyView(b, strided, chosen, packed.copy), isStreamed);
  });
  packed.start = {index().select(isDense, packed.start.bytes, packed.copy),
                  index().select(isDense, packed.start.offset, zero)};
  return packed;
}

/// Copies results back, and frees the copy.
void RegionVersioner::unpack(const StridedData &strided, Value chosen,
                             const Packed &packed) {
  if (!packed.copy)
    return;
  emitIf(packed.isCopy, [&](OpBuilder &b) {
    if (DataUse::get(group, strided.memref).isWritten)
      emitCopy(b, loc, group, getCopyView(b, strided, chosen, packed.copy),
               strided.memref, isStreamed);
  });
  memref::DeallocOp::create(rewriter, loc, packed.copy);
}

LogicalResult RegionVersioner::addDenseInChosen(Value chosen,
                                                ArrayRef<DataBytes> starts) {
  OpBuilder::InsertionGuard guard(rewriter);
  for (size_t number : llvm::seq<size_t>(1, orders.size())) {
    FailureOr<bool> isLast =
        addVersion(isChosen(rewriter, chosen, number),
                   [&] { return addDense(orders[number], starts); });
    if (failed(isLast))
      return failure();
    if (*isLast)
      return success();
  }
  return addDense(orders.front(), starts);
}

LogicalResult RegionVersioner::versionPacked(CpuSchedule schedule) {
  Value chosen = chooseOrder(), bytes = index().constant(0);
  for (const StridedData &strided : data)
    if (!strided.isDense())
      bytes = index().add(bytes, strided.getByteCount(rewriter, loc));
  isStreamed = areCopiesStreamed(rewriter, loc, schedule, bytes);
  SmallVector<Packed> packed;
  SmallVector<DataBytes> starts;
  for (const StridedData &strided : data) {
    packed.push_back(pack(strided, chosen));
    starts.push_back(packed.back().start);
  }
  if (failed(addDenseInChosen(chosen, starts)))
    return failure();
  for (auto [strided, copy] : llvm::zip_equal(data, packed))
    unpack(strided, chosen, copy);
  return success();
}

FailureOr<SmallVector<GroupMembers>>
RegionVersioner::build(const GroupMembers &members) {
  auto schedule =
      members.front()->getAttrOfType<ScheduleAttr>(ScheduleAttr::kAttrName);
  bool isVectorized = schedule && isCpuKind(schedule.getKind());
  auto isCertain = [&](ArrayRef<int64_t> order) {
    return matchPattern(areDense(order), m_One());
  };
  bool hasLast = false;
  for (const SmallVector<int64_t> &order : orders) {
    if (hasLast || (isVectorized && !isCertain(order)))
      continue;
    FailureOr<bool> isLast = versionDense(order);
    if (failed(isLast))
      return failure();
    hasLast = *isLast;
  }
  // The order of the outer dims does not matter; try one per innermost loop.
  llvm::SmallSet<int64_t, 4> lastLoops;
  for (const SmallVector<int64_t> &order : getOrders(group)) {
    if (hasLast || !isVectorized)
      break;
    if (!lastLoops.insert(order.back()).second)
      continue;
    FailureOr<bool> isLast = versionWithRows(order);
    if (failed(isLast))
      return failure();
    hasLast = *isLast;
  }
  if (!hasLast && !(isVectorized && mayPack())) {
    rewriter.moveOpBefore(region, rewriter.getInsertionBlock(),
                          rewriter.getInsertionPoint());
    versions.push_back(members);
    return versions;
  }
  if (!hasLast && failed(versionPacked(schedule.getCpu())))
    return failure();
  rewriter.eraseOp(region);
  return versions;
}

FailureOr<SmallVector<GroupMembers>>
mlir::bngrad::versionByStrides(RewriterBase &rewriter,
                               const GroupMembers &members) {
  SmallVector<GroupMembers> unversioned = {members};
  auto region = dyn_cast<scf::ExecuteRegionOp>(members.front()->getParentOp());
  if (!areOnMemRefs(members))
    return unversioned;
  std::string reason;
  std::optional<ScheduledGroup> group = ScheduledGroup::get(members, reason);
  if (!region || !region.getRegion().hasOneBlock() ||
      region.getNumResults() > 0 || !group || getGenerics(region) != members) {
    LDBG() << "no versions: expected a region without results that contains "
              "only the group; "
           << reason;
    return unversioned;
  }
  std::optional<llvm::SetVector<Value>> data = getData(*group);
  // Strides are tested before the region, where its views do not exist yet.
  auto isStridedInside = [&](Value memref) {
    return !isDense(memref) &&
           region.getRegion().isAncestor(memref.getParentRegion());
  };
  if (data && llvm::all_of(*data, isDense))
    return unversioned;
  if (!data || !llvm::all_of(*data, hasWholeBytes) ||
      llvm::any_of(*data, isStridedInside)) {
    LDBG() << "no versions: expected data from outside of the region, with "
              "elements of whole bytes and dims in the order of the loops: "
           << members.front();
    return unversioned;
  }
  OpBuilder::InsertionGuard guard(rewriter);
  return RegionVersioner(rewriter, region, *group, *data).build(members);
}
