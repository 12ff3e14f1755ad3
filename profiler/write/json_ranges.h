// SPDX-License-Identifier: Apache-2.0
//
// The ranges that a program named, in our own JSON: docs/json.md. [one thread at a time]
#pragma once

#include "profiler/model/recording.h"
#include "profiler/write/json_writer.h"

namespace pystrobe::write {

/// The field "ranges" of the object that is open; the recording has ranges.
void WriteRanges(const RecordingSource& recording, JsonWriter& json);

}  // namespace pystrobe::write
