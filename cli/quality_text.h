// SPDX-License-Identifier: Apache-2.0
//
// The quality line: how far a recording can be trusted, in words. [any thread]
#pragma once

#include <string>

#include "profiler/model/recording.h"

namespace pystrobe::cli {

/// One paragraph: samples, achieved and wanted rate, proved or marked, late, lost, time the target
/// was held, own CPU; and whatever was unusual (rate lowered, cut off, incomplete stacks).
std::string QualityText(const Metadata& metadata, const Quality& quality);

}  // namespace pystrobe::cli
