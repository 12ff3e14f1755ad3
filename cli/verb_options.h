// SPDX-License-Identifier: Apache-2.0
//
// The options of the verbs, in groups that several verbs have, and what is wrong with a command
// line that does not keep to them. [main thread]
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "cli/understand.h"
#include "profiler/base/error.h"

namespace pystrobe::cli {

using Words = std::span<const std::string>;

/// The verb's help: `usage` behind the name of the program, `examples` at the end.
void Describe(CLI::App& app, const std::string& usage, const std::string& examples);

/// What a verb reports of: it offers nothing that it refuses.
enum class Of { kSamples, kCalls, kEither };

void AddView(CLI::App& app, Of of, RawOptions& raw);
void AddOutput(CLI::App& app, Of of, RawOptions& raw);
void AddQuiet(CLI::App& app, RawOptions& raw);
/// Of which calls `trace` tells, and what of them.
void AddTracing(CLI::App& app, RawOptions& raw);
/// What `attach` and `run` share: sampling, view and output.
void AddRecording(CLI::App& app, RawOptions& raw);

/// Reads the words into what the options were bound to. True when they ask for help. Errors, for a
/// user: kInvalidArgument.
Result<bool> Parse(CLI::App& app, const std::string& verb, Words words);

}  // namespace pystrobe::cli
