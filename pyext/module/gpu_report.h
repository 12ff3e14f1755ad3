// SPDX-License-Identifier: Apache-2.0
//
// What GPUs did, for pystrobe._gpu_report. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include "profiler/model/recording.h"

namespace pystrobe::pyext {

/// None where the recording has no work of a GPU.
pybind11::object GpuReportDict(const RecordingSource& recording);

}  // namespace pystrobe::pyext
