//===- Header.cpp - C headers ---------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Header.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::bngrad;

static Type getElementType(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.getElementType();
  return type;
}

/// The type of an element, and of a scalar.
static std::string getCType(Type type) {
  type = getElementType(type);
  if (type.isInteger(1))
    return "uint8_t";
  if (type.isF16() || type.isBF16())
    return "uint16_t";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isIndex())
    return "int64_t";
  return "int" + std::to_string(type.getIntOrFloatBitWidth()) + "_t";
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// `8x?x4xf32`, and the strides unless the buffer is row-major.
static std::string printShape(const Parameter &parameter) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto shaped = dyn_cast<ShapedType>(parameter.type);
  if (!shaped)
    return print(parameter.type);
  for (int64_t size : shaped.getShape())
    ShapedType::isDynamic(size) ? os << "?x" : os << size << "x";
  os << shaped.getElementType();
  MemRefLayoutAttrInterface layout = parameter.layout;
  if (auto memref = dyn_cast<MemRefType>(parameter.type))
    layout = memref.getLayout();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!layout || layout.isIdentity() ||
      failed(layout.getStridesAndOffset(shaped.getShape(), strides, offset)))
    return text;
  auto printValue = [&](int64_t value) {
    ShapedType::isDynamic(value) ? os << "?" : os << value;
  };
  os << ", strides [";
  llvm::interleaveComma(strides, os, printValue);
  os << "], offset ";
  printValue(offset);
  return text;
}

/// The name of the descriptor's type, `bngrad_memref_f32_4_t`.
static std::string getDescriptorType(Type type) {
  return "bngrad_memref_" + print(getElementType(type)) + "_" +
         std::to_string(cast<ShapedType>(type).getRank()) + "_t";
}

/// Gives each type its own guard, since several headers may be included.
static void printDescriptorType(raw_ostream &os, Type type) {
  std::string name = getDescriptorType(type), element = getCType(type);
  int64_t rank = cast<ShapedType>(type).getRank();
  std::string guard = StringRef(name).upper() + "_DEFINED";
  os << "#ifndef " << guard << "\n#define " << guard << "\ntypedef struct {\n"
     << "  " << element << " *allocated; /* not read */\n"
     << "  " << element << " *aligned;\n  int64_t offset;\n";
  if (rank > 0)
    os << "  int64_t sizes[" << rank << "];\n  int64_t strides[" << rank
       << "];\n";
  os << "} " << name << ";\n#endif\n";
}

/// Describes the parameters.
static void printComment(raw_ostream &os, const ExportedFunction &function) {
  os << "/*\n * " << function.name << "\n *\n";
  for (const Parameter &parameter : function.parameters) {
    bool isMemRef = isa<MemRefType>(parameter.type);
    os << " * "
       << (parameter.isResult ? "[out] "
           : isMemRef         ? "[in,out] "
                              : "[in] ")
       << parameter.name << ": " << printShape(parameter) << "\n";
    for (auto [dim, text] : llvm::enumerate(parameter.sizes))
      if (!text.empty())
        os << " *   sizes[" << dim << "] = " << text << "\n";
  }
  os << " */\n";
}

static void printDeclaration(raw_ostream &os, StringRef result, StringRef name,
                             ArrayRef<std::string> parameters) {
  std::string start = (result + " " + name + "(").str();
  os << start;
  if (parameters.empty())
    os << "void";
  size_t column = start.size();
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    bool isLast = i + 1 == parameters.size();
    if (i > 0 && column + parameter.size() + 3 > 80) {
      os << "\n    ";
      column = 4;
    } else if (i > 0) {
      os << " ";
      ++column;
    }
    os << parameter << (isLast ? "" : ",");
    column += parameter.size() + 1;
  }
  os << ");\n";
}

/// The guard contains a hash of the declarations: headers may have equal names,
/// or names that differ only in characters that a macro cannot contain.
static std::string makeGuard(StringRef fileName, StringRef declarations) {
  std::string guard = "BNGRAD_GENERATED_";
  for (char c : fileName)
    guard += llvm::isAlnum(c) ? llvm::toUpper(c) : '_';
  return guard + "_" + llvm::utohexstr(llvm::xxh3_64bits(declarations));
}

// These texts follow the order of the header.

static constexpr StringLiteral kData = R"(/*
 * Made by bngrad-compile; link with the output it was made beside.
 *
 * Arrays are dense and row-major (the last index varies fastest) unless strides
 * are given, and aligned as their elements; f16 and bf16 are the uint16_t of
 * their bits, i1 is a uint8_t per element, 0 or 1, index is int64_t. Scalars are
 * passed by value, an i1 as 0 for false. The caller owns all memory; arrays
 * marked [out] are written and must not overlap with any other, but for the one
 * case below.
 *
)";

static constexpr StringLiteral kCudaHost =
    R"( * Arrays are in memory of the host; they are copied to the GPU and back.
 *
)";

static constexpr StringLiteral kCudaDevice =
    R"( * Arrays are in memory of the GPU of the calling thread's current context, or
 * of its default device where no context is current; descriptors are in memory
 * of the host.
 *
)";

static constexpr StringLiteral kCpuStatus =
    R"( * Functions take pointers to the data and return 0; or -1, with nothing computed,
 * if a pointer to an array that is not empty is null; or -2 if there was not
 * enough memory for what it needs beside its arrays: then [out] arrays hold
 * nothing of use, and nothing is leaked.
)";

static constexpr StringLiteral kCudaStatus =
    R"( * Functions take pointers to the data and return 0; or -1, with nothing computed,
 * if a pointer to an array that is not empty is null; or -2 if there was not
 * enough memory of the host for what it needs beside its arrays; or the code of
 * the first error (a CUresult, or -1), whose text goes to the handler of
 * bngradCudaSetErrorHandler or to standard error. [out] arrays hold nothing of
 * use then, and nothing is leaked.
)";

static constexpr StringLiteral kShardedStatus =
    R"( * They return 10 if a sum over processes has failed, as another process is lost
 * or runs another program: then [out] arrays hold nothing of use, and
 * bngradGetCollectiveError() of BNGrad/Runtime/Collectives.h says why. So does
 * NAME_checked. Arrays are the shards of the calling process.
)";

static constexpr StringLiteral kChecked = R"(
/*
 * Checked entries, for every shape.
 *
 * They take pointers to descriptors. Element (i, j) is
 * aligned[offset + i*strides[0] + j*strides[1]]. [out] arrays have their sizes
 * before the call.
 *
 * NAME_checked checks all arguments before it reads or writes any data. It returns
 *   0  success
 *   1  a misaligned address, or threads of an older version
 *   2  a null pointer
 *   4  a size that is not the shape's, or that does not agree with another
 *   5  a stride or an offset that is not the array's
 *   6  a workspace that is too small
 *   9  another error: [out] arrays hold nothing of use
 * NAME_diagnose checks the same, computes nothing, and prints the first error,
 * which names the argument, to a text of text_size bytes.
 * NAME_workspace returns the bytes that a call with these sizes needs beside its
 * arrays, wherever they are.
 *
 * Of a function that is one bngrad.batch_norm_backward alone, grad_input may be
 * grad_output or input: the same address, type and strides. No other array may
 * overlap with an [out] array.
 */

)";

static constexpr StringLiteral kThreadsType =
    R"(#ifndef BNGRAD_THREADS_T_DEFINED
#define BNGRAD_THREADS_T_DEFINED
/*
 * The threads that run the loops of a call; null for OpenMP's. Results do not
 * depend on them. `count` returns their number, which must not change during a
 * call. `run` calls body(data, i, n) for each i from 0 to n - 1, in any order,
 * on any threads, at once or one after another, and returns when all have
 * returned.
 */
typedef struct {
  size_t struct_size; /* sizeof(bngrad_threads_t) */
  void *context;
  int (*count)(void *context);
  void (*run)(void *context, int n, void (*body)(void *data, int thread, int n),
              void *data);
} bngrad_threads_t;
#endif
)";

static constexpr StringLiteral kUnchecked = R"(/*
 * Unchecked entries, in MLIR's calling convention, for callers that have checked
 * their arguments: a wrong size, stride or pointer makes these functions read
 * and write out of bounds. They return 0 or -2, and may be declared to return
 * void where that is of no interest.
)";

static constexpr StringLiteral kCudaUnchecked =
    R"( * bngradCudaTakeStatus() returns the code of any other error afterwards.
)";

static constexpr StringLiteral kCpuThreads = R"( *
 * Any thread may call; the loops run on OpenMP's threads unless others are
 * given, and the results do not depend on how many those are. OpenMP is that of
 * the process, or libomp.so.5 or libgomp.so.1, loaded when it is needed.
 * The environment variable BNGRAD_OPENMP names another library; if it is empty,
 * or none is found, the calling thread runs the loops.
 */
)";

static constexpr StringLiteral kCudaThreads = R"( *
 * Any thread may call. Work is done when a function returns; or, between
 * bngradCudaSetStream and bngradCudaResetStream, in the order of that stream
 * (BNGrad/Runtime/Cuda.h).
 */
)";

static void printIntroduction(raw_ostream &os, Device device,
                              bool deviceArguments, bool isSharded) {
  bool isCuda = device == Device::Cuda;
  os << kData;
  if (isCuda)
    os << (deviceArguments ? kCudaDevice : kCudaHost);
  os << (isCuda ? kCudaStatus : kCpuStatus);
  if (isSharded)
    os << kShardedStatus;
  os << (isCuda ? kCudaThreads : kCpuThreads);
}

/// Declares NAME, which takes pointers to the data.
static void printFunction(raw_ostream &os, const ExportedFunction &function) {
  std::vector<std::string> parameters;
  for (const Parameter &parameter : function.parameters) {
    bool isConst = !parameter.isResult && !isa<MemRefType>(parameter.type);
    parameters.push_back(parameter.isScalar()
                             ? getCType(parameter.type) + " " + parameter.name
                             : (isConst ? "const " : "") +
                                   getCType(parameter.type) + " *" +
                                   parameter.name);
  }
  os << "\n";
  printComment(os, function);
  printDeclaration(os, "int32_t", function.name, parameters);
}

/// The parameters of the entries that take descriptors.
static std::vector<std::string>
getDescriptorParameters(const ExportedFunction &function) {
  std::vector<std::string> parameters;
  parameters.reserve(function.parameters.size());
  for (const Parameter &parameter : function.parameters)
    parameters.push_back(parameter.isScalar()
                             ? getCType(parameter.type) + " " + parameter.name
                             : "const " + getDescriptorType(parameter.type) +
                                   " *" + parameter.name);
  return parameters;
}

/// Declares NAME_checked, NAME_diagnose and NAME_workspace.
static void printChecked(raw_ostream &os, const ExportedFunction &function) {
  os << "\n";
  if (!function.hasPointerForm())
    printComment(os, function);
  std::vector<std::string> parameters = getDescriptorParameters(function);
  printDeclaration(os, "size_t", function.name + "_workspace", parameters);
  parameters.insert(parameters.end(),
                    {"void *workspace", "size_t workspace_size",
                     "const bngrad_threads_t *threads"});
  printDeclaration(os, "int32_t", function.name + "_checked", parameters);
  parameters.insert(parameters.end(), {"char *text", "size_t text_size"});
  printDeclaration(os, "int32_t", function.name + "_diagnose", parameters);
}

static std::string printDeclarations(ArrayRef<ExportedFunction> functions,
                                     Device device) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const ExportedFunction &function : functions)
    if (function.hasPointerForm())
      printFunction(os, function);
  os << kChecked << kThreadsType;
  llvm::StringSet<> seen;
  for (const ExportedFunction &function : functions)
    for (const Parameter &parameter : function.parameters)
      if (!parameter.isScalar() &&
          seen.insert(getDescriptorType(parameter.type)).second)
        printDescriptorType(os, parameter.type);
  for (const ExportedFunction &function : functions)
    printChecked(os, function);
  os << "\n" << kUnchecked;
  if (device == Device::Cuda)
    os << kCudaUnchecked;
  os << " */\n";
  for (const ExportedFunction &function : functions) {
    os << "\n";
    printDeclaration(os, "int32_t", "_mlir_ciface_" + function.name,
                     getDescriptorParameters(function));
  }
  return text;
}

std::string mlir::bngrad::makeHeader(ArrayRef<ExportedFunction> functions,
                                     StringRef fileName, Device device,
                                     bool deviceArguments, bool isSharded) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string declarations = printDeclarations(functions, device);
  std::string guard = makeGuard(fileName, declarations);
  printIntroduction(os, device, deviceArguments, isSharded);
  os << "\n#ifndef " << guard << "\n#define " << guard
     << "\n\n#include <stddef.h>\n#include <stdint.h>\n\n#ifdef "
        "__cplusplus\nextern \"C\" {\n"
     << "#endif\n"
     << declarations
     << "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n#endif /* "
     << guard << " */\n";
  return text;
}
