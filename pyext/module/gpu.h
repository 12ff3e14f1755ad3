// SPDX-License-Identifier: Apache-2.0
//
// pystrobe.gpu's native half. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

namespace pystrobe::pyext {

void DefineGpu(pybind11::module_& module);
void DefineGpuTrace(pybind11::module_& module);

}  // namespace pystrobe::pyext
