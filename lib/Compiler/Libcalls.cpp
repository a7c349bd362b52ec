//===- Libcalls.cpp - library functions of generated code -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libcalls.h"

#include "BNGrad/Transforms/CAbi/ExportC.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace mlir::bngrad;

LogicalResult mlir::bngrad::verifyCalls(const llvm::Module &module,
                                        Location loc,
                                        ArrayRef<StringRef> prefixes) {
  for (const llvm::Function &function : module) {
    StringRef name = function.getName();
    if (!function.isDeclaration() || function.isIntrinsic() ||
        function.use_empty() || isCLibraryName(name) ||
        llvm::any_of(prefixes, [&](StringRef prefix) {
          return name.starts_with(prefix);
        }))
      continue;
    return emitError(loc) << "expected ops that need only libc and "
                             "libm, got a call of '"
                          << name << "'";
  }
  for (const llvm::GlobalVariable &global : module.globals())
    if (global.isDeclaration() && !global.use_empty())
      return emitError(loc)
             << "expected data to be defined where it is used, got a use of '"
             << global.getName() << "'";
  return success();
}

/// Rounding to nearest even, subnormals included. LLVM 22 rounds to bf16 inline
/// on x86, and calls __truncsfbf2 for values that need no rounding. f64 goes
/// through an f32 that is rounded to odd (--bngrad-expand-truncf documents why
/// this is correct).
static constexpr char kHalfConversions[] = R"(
define internal float @__extendhfsf2(half %value) {
  %bits16 = bitcast half %value to i16
  %bits = zext i16 %bits16 to i32
  %signbit = and i32 %bits, 32768
  %sign = shl i32 %signbit, 16
  %magnitude = and i32 %bits, 32767
  %shifted = shl i32 %magnitude, 13
  %rebiased = add i32 %shifted, 939524096
  ; NaN and infinity have the greatest exponent; a NaN becomes a quiet one.
  %special = add i32 %rebiased, 939524096
  %quiet = or i32 %special, 4194304
  %isnan = icmp ugt i32 %magnitude, 31744
  %isspecial = icmp uge i32 %magnitude, 31744
  %nonfinite = select i1 %isnan, i32 %quiet, i32 %special
  ; A subnormal one is a difference of normal ones.
  %plusone = add i32 %shifted, 947912704
  %offset = bitcast i32 %plusone to float
  %difference = fsub float %offset, 0x3F10000000000000
  %subnormal = bitcast float %difference to i32
  %issubnormal = icmp ult i32 %magnitude, 1024
  %finite = select i1 %issubnormal, i32 %subnormal, i32 %rebiased
  %unsigned = select i1 %isspecial, i32 %nonfinite, i32 %finite
  %result = or i32 %unsigned, %sign
  %float = bitcast i32 %result to float
  ret float %float
}

define internal half @__truncsfhf2(float %value) {
  %bits = bitcast float %value to i32
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %magnitude = and i32 %bits, 2147483647
  %payload = lshr i32 %magnitude, 13
  %payload10 = and i32 %payload, 1023
  %nan = or i32 %payload10, 32256
  %isnan = icmp ugt i32 %magnitude, 2139095040
  %isoverflow = icmp uge i32 %magnitude, 1199570944
  %nonfinite = select i1 %isnan, i32 %nan, i32 31744
  %odd = and i32 %payload, 1
  %rebiased = sub i32 %magnitude, 939524096
  %half = add i32 %odd, 4095
  %rounded = add i32 %rebiased, %half
  %normal = lshr i32 %rounded, 13
  ; The addition rounds to multiples of the smallest f16.
  %absolute = bitcast i32 %magnitude to float
  %sum = fadd float %absolute, 5.000000e-01
  %sumbits = bitcast float %sum to i32
  %subnormal = sub i32 %sumbits, 1056964608
  %issubnormal = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %issubnormal, i32 %subnormal, i32 %normal
  %unsigned = select i1 %isoverflow, i32 %nonfinite, i32 %finite
  %result = or i32 %unsigned, %sign
  %result16 = trunc i32 %result to i16
  %float = bitcast i16 %result16 to half
  ret half %float
}

define internal half @__truncdfhf2(double %value) {
  %odd = call float @bngrad.round_to_odd(double %value)
  %float = call half @__truncsfhf2(float %odd)
  ret half %float
}
)";

static constexpr char kBFloatConversions[] = R"(
define internal bfloat @__truncsfbf2(float %value) {
  %bits = bitcast float %value to i32
  %last = lshr i32 %bits, 16
  %odd = and i32 %last, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %isnan = fcmp uno float %value, %value
  %quiet = or i32 %bits, 4194304
  %result = select i1 %isnan, i32 %quiet, i32 %sum
  %high = lshr i32 %result, 16
  %result16 = trunc i32 %high to i16
  %float = bitcast i16 %result16 to bfloat
  ret bfloat %float
}

define internal bfloat @__truncdfbf2(double %value) {
  %odd = call float @bngrad.round_to_odd(double %value)
  %float = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %float
}
)";

static constexpr char kRoundToOdd[] = R"(
define internal float @bngrad.round_to_odd(double %value) {
  %nearest = fptrunc double %value to float
  %back = fpext float %nearest to double
  %inexact = fcmp one double %back, %value
  %isnegative = fcmp olt double %value, 0.000000e+00
  %isbelow = fcmp olt double %back, %value
  %isabove = fcmp ogt double %back, %value
  %isaway = select i1 %isnegative, i1 %isbelow, i1 %isabove
  %bits = bitcast float %nearest to i32
  %stepped = sub i32 %bits, 1
  %towards = select i1 %isaway, i32 %stepped, i32 %bits
  %odd = or i32 %towards, 1
  %result = select i1 %inexact, i32 %odd, i32 %bits
  %float = bitcast i32 %result to float
  ret float %float
}
)";

/// Whether an instruction has values of this type. Any of them may need
/// conversions: x86 selects between two bf16 as if they were f32.
static bool uses(const llvm::Module &module,
                 bool (llvm::Type::*isType)() const) {
  auto is = [&](const llvm::Value *value) {
    return (value->getType()->getScalarType()->*isType)();
  };
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (is(&instruction) || llvm::any_of(instruction.operand_values(), is))
        return true;
  return false;
}

void mlir::bngrad::addFloatConversions(llvm::Module &module) {
  // AArch64 has instructions for all of them.
  if (!module.getTargetTriple().isX86())
    return;
  bool usesHalf = uses(module, &llvm::Type::isHalfTy);
  bool usesBFloat = uses(module, &llvm::Type::isBFloatTy);
  if (!usesHalf && !usesBFloat)
    return;
  std::string text = kRoundToOdd;
  if (usesHalf)
    text += kHalfConversions;
  if (usesBFloat)
    text += kBFloatConversions;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> conversions =
      llvm::parseAssemblyString(text, diagnostic, module.getContext());
  assert(conversions && "a constant");
  conversions->setDataLayout(module.getDataLayout());
  conversions->setTargetTriple(module.getTargetTriple());
  // Instruction selection adds the only calls.
  SmallVector<llvm::GlobalValue *> used;
  for (llvm::Function &function : *conversions)
    used.push_back(&function);
  llvm::appendToCompilerUsed(*conversions, used);
  [[maybe_unused]] bool failed =
      llvm::Linker::linkModules(module, std::move(conversions));
  assert(!failed && "names with dots or reserved ones");
}
