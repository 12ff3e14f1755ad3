// SPDX-License-Identifier: Apache-2.0
//
// What a GPU did, in our own JSON: docs/json.md. [one thread at a time]
#pragma once

#include "profiler/model/recording.h"
#include "profiler/write/json_writer.h"

namespace pystrobe::write {

/// The field "gpu" of the object that is open; the recording has work of a GPU.
Result<void> WriteGpu(const RecordingSource& recording, JsonWriter& json);

}  // namespace pystrobe::write
