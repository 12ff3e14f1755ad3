// SPDX-License-Identifier: Apache-2.0
//
// Bytes of other processes as Python strings. They may hold anything. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

namespace pystrobe::pyext {

/// Text for people: bytes that are not UTF-8 (a name that the kernel cut inside a character) become
/// U+FFFD.
pybind11::str ToStr(std::string_view text);

/// A path or an argument as os.fsdecode has it: os.fsencode gives the same bytes back.
pybind11::str ToPath(std::string_view bytes);
pybind11::list ToPaths(const std::vector<std::string>& words);

/// What a program calls something, in UTF-8; a surrogate, which that does not have, as "\ud800".
/// Raises TypeError where it is no str; `what` says of what it is the name: "a region".
std::string FromName(pybind11::handle name, std::string_view what);

}  // namespace pystrobe::pyext
