// SPDX-License-Identifier: Apache-2.0
//
// fmt's own code, compiled once, as its src/format.cc does, which distributions do not bring: its
// shared library would be needed wherever this runs, and with FMT_HEADER_ONLY each file that
// formats something compiles all of it again, which nearly doubles the time of the whole build.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
// What the headers promise is somewhere.
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;

}  // namespace detail
FMT_END_NAMESPACE
