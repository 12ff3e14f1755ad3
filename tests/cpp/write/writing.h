// SPDX-License-Identifier: Apache-2.0
//
// Shorthand of the writers' tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "profiler/write/writer.h"
#include "tests/cpp/write/example_recordings.h"
#include "tests/cpp/write/outputs.h"

namespace pystrobe::testing {

using WriteFunction = Result<void> (*)(const Profile&, const write::WriteOptions&, write::Output&);

/// What `write` makes of a recording, every thread included.
inline std::string Written(WriteFunction write, const RecordingSource& recording,
                           const write::WriteOptions& options = {}, FoldOptions fold = {}) {
  fold.include_idle = true;
  const auto profile = Fold(recording, fold);
  if (!profile) {
    ADD_FAILURE() << profile.error().message;
    return {};
  }
  StringOutput output;
  const auto written = write(*profile, options, output);
  if (!written) ADD_FAILURE() << written.error().message;
  return output.text;
}

inline std::string WrittenExample(WriteFunction write, std::string_view example,
                                  const write::WriteOptions& options = {}, FoldOptions fold = {}) {
  MemoryRecording recording;
  EXPECT_TRUE(FillExample(example, recording));
  return Written(write, recording, options, fold);
}

}  // namespace pystrobe::testing
