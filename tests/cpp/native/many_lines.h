// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pystrobe::native::many_lines {

void Crowded();

}  // namespace pystrobe::native::many_lines
