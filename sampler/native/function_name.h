// SPDX-License-Identifier: Apache-2.0
//
// What people call a function.
#pragma once

#include <string>
#include <string_view>

namespace pystrobe::native {

/// The function that a symbol stands for: demangled, without what compilers add to the parts that
/// they split it into, and as ShortName has it; Rust's as Rust has it, without the hash. At most
/// some 4 KiB of it.
std::string FunctionName(const char* symbol);

/// A demangled C++ name without result and parameters: "ns::f<int>" of
/// "void ns::f<int>(int, char) const". What is no such name is returned as it is.
std::string ShortName(std::string_view demangled);

}  // namespace pystrobe::native
