// SPDX-License-Identifier: Apache-2.0
//
// Private to analyze: what GPUs did, as threads with stacks. [any thread]
#pragma once

#include <optional>
#include <string>

#include "profiler/analyze/profile.h"
#include "profiler/base/error.h"
#include "profiler/model/gpu_record.h"

namespace pystrobe::analyze {

/// Fails with kInvalidArgument where the recording has no work of a GPU, or `of_part`: when it ran
/// is not kept.
Result<void> RequireGpu(const RecordingSource& recording, bool of_part);

/// "GPU 0 stream 7".
std::string StreamName(const GpuSum& sum);
/// Whether `filter`, a FoldOptions::thread, means the sum's stream.
bool IsMeant(const GpuSum& sum, const std::optional<std::string>& filter);

/// Adds the streams that `filter` means to `profile`, behind its threads, by descending time; its
/// recording has work of a GPU.
void AddStreams(const std::optional<std::string>& filter, Profile& profile);

/// Fold() of streams alone.
Result<Profile> FoldGpu(const RecordingSource& recording, const FoldOptions& options);

}  // namespace pystrobe::analyze
