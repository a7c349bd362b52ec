//===- Exchange.cpp - DLPack without Python objects -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"

#include <cstddef>

namespace nb = nanobind;
using namespace bngrad::python;

static_assert(sizeof(nb::dlpack::dltensor) == 48, "as DLTensor of dlpack.h");
static_assert(offsetof(ExchangeApi, readTensor) == 40,
              "as DLPackExchangeAPI of dlpack.h");

const ExchangeApi *bngrad::python::findExchangeApi(nb::handle type) {
  // Subclasses inherit it, but may have no data, or other ones.
  nb::object capsule =
      type.attr("__dict__")
          .attr("get")("__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    return nullptr;
  auto *api = static_cast<const ExchangeApi *>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (api && api->major != 1)
    api = api->previous;
  return api && api->readTensor ? api : nullptr;
}
