// SPDX-License-Identifier: Apache-2.0
//
// Metadata and Quality as bytes. Both are lists of fields in the order of their declaration; a
// later version may append fields, which this one ignores. [any thread]
#pragma once

#include "profiler/base/error.h"
#include "profiler/model/recording.h"
#include "profiler/store/bytes.h"

namespace pystrobe::store {

void AppendMetadata(Bytes& out, const Metadata& metadata);
/// Fails with kCorrupt.
Result<Metadata> ParseMetadata(ByteSpan bytes);

/// Integers as zigzag differences from `before`, rates as byte-swapped varints of their bits, then
/// the CPU source's name, that of the way of pausing, both empty where they are those of `before`,
/// then the other integers of Quality like the first, in the order in which they were added to the
/// format, then of `held_each` the counts that have grown. Quality::complete is not stored: it is
/// having an end block.
void AppendQuality(Bytes& out, const Quality& quality, const Quality& before);
/// Turns the quality of the block before into that of this one. Fails with kCorrupt, and leaves it.
Result<void> ParseQuality(ByteSpan bytes, Quality& so_far);

}  // namespace pystrobe::store
