// SPDX-License-Identifier: Apache-2.0
//
// Ending at once: by a signal that does not wait for the report, or for want of memory. Files that
// nothing came of are removed (unkept_file.h), what was recorded is saved. [main thread; GiveUp:
// any thread, async-signal-safe]
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "cli/invoker.h"

namespace pystrobe::cli {

/// A recording is to be made; there is none yet.
void ExpectRecording();
/// There is one: what is in descriptor `fd` will be copied to a new file, the first of `paths` that
/// takes it (`fd` -1: it is in the only one already). At most kMostPlacesToSave are tried.
inline constexpr size_t kMostPlacesToSave = 8;
void SaveOnGivingUp(int fd, std::span<const std::string> paths,
                    const std::optional<Invoker>& owner);
/// None is to be made, or it has been presented.
void SaveNothing();

/// Removes and saves, and says on stderr what became of the recording, if there was to be one. Only
/// the first call returns, with signals blocked in its thread; later ones, from handlers or
/// other threads, wait until the process has ended.
void GiveUp();

}  // namespace pystrobe::cli
