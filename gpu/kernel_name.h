// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels for people. [any thread]
#pragma once

#include <string>
#include <string_view>

namespace pystrobe::gpu {

/// As written in C++; what is no mangled name (Triton's kernels have none) stays as it is.
std::string Demangle(std::string_view name);

/// A demangled name without what it returns, its arguments and those of templates:
/// "void at::native::reduce_kernel<512, 1>(float*)" is "at::native::reduce_kernel".
std::string ShortKernelName(std::string_view demangled);

}  // namespace pystrobe::gpu
