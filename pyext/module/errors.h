// SPDX-License-Identifier: Apache-2.0
//
// Errors of the core as Python exceptions. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "profiler/base/error.h"

namespace pystrobe::pyext {

/// Raises the exception of pystrobe._errors that stands for `error`.
[[noreturn]] void Raise(const Error& error);

/// The value, or the exception.
template <typename T>
T ValueOrRaise(Result<T>&& result) {
  if (!result) Raise(result.error());
  return std::move(*result);
}

}  // namespace pystrobe::pyext
