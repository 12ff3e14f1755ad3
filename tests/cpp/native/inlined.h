// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pystrobe::native::inlined {

/// An instruction of a function that is inlined into one that is inlined into this one.
const void* Outer();

}  // namespace pystrobe::native::inlined
