// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, for pystrobe._range_report. [GIL held]
#pragma once

#include <pybind11/pybind11.h>

#include "profiler/model/recording.h"

namespace pystrobe::pyext {

/// Each range before those within it, whose "parent" is its place in the list. Empty where the
/// recording has none.
pybind11::list RangeList(const RecordingSource& recording);

}  // namespace pystrobe::pyext
