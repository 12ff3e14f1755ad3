// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/json_ranges.h"

namespace pystrobe::write {

void WriteRanges(const RecordingSource& recording, JsonWriter& json) {
  const RangeRecord& record = *recording.ranges();
  const Tables& tables = recording.tables();
  json.NewLine().Key("ranges").BeginObject();
  json.Field("overflowed", record.overflowed).Field("spans_lost", record.spans_lost);
  json.NewLine().Key("names").BeginArray();
  for (const NamedRange& range : record.ranges) {
    if (!json.ok()) return;
    json.NewLine().BeginObject();
    if (range.parent != NamedRange::kNoParent) json.Field("parent", range.parent);
    json.Field("name", tables.text(range.name)).Field("domain", tables.text(range.domain));
    json.Field("count", range.count).Field("host_ns", range.host_ns).EndObject();
  }
  json.EndArray().NewLine().Key("streams").BeginArray();
  for (const RangeOnStream& row : record.streams) {
    if (!json.ok()) return;
    json.NewLine().BeginObject().Field("range", row.range).Field("device", row.device);
    json.Field("stream", row.stream).Field("instances", row.instances);
    json.Field("span_ns", row.span_ns).Field("busy_ns", row.busy_ns);
    json.Field("works", row.works).EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace pystrobe::write
