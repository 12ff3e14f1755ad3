// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/range_report.h"

#include <optional>
#include <vector>

#include "profiler/analyze/range_table.h"
#include "pyext/module/text.h"

namespace pystrobe::pyext {
namespace {

namespace py = pybind11;
using py::literals::operator""_a;

/// By range, what it put on each stream.
std::vector<py::list> ListStreams(const RangeRecord& record) {
  std::vector<py::list> streams(record.ranges.size());
  for (const RangeOnStream& row : record.streams) {
    streams[row.range].append(py::dict("device"_a = row.device, "stream"_a = row.stream,
                                       "instances"_a = row.instances, "span_ns"_a = row.span_ns,
                                       "busy_ns"_a = row.busy_ns, "works"_a = row.works));
  }
  return streams;
}

}  // namespace

py::list RangeList(const RecordingSource& recording) {
  py::list list;
  if (recording.ranges() == nullptr) return list;
  const RangeRecord& record = *recording.ranges();
  const Tables& tables = recording.tables();
  const std::vector<py::list> streams = ListStreams(record);
  std::vector<size_t> place_of(record.ranges.size());
  for (const RangeRow& row : MakeRangeTable(record).rows) {
    const NamedRange& range = record.ranges[row.range];
    place_of[row.range] = list.size();
    py::object parent = py::none();
    if (range.parent != NamedRange::kNoParent) parent = py::int_(place_of[range.parent]);
    list.append(py::dict("parent"_a = parent, "name"_a = ToStr(tables.text(range.name)),
                         "domain"_a = ToStr(tables.text(range.domain)), "count"_a = range.count,
                         "host_ns"_a = range.host_ns, "streams"_a = streams[row.range]));
  }
  return list;
}

}  // namespace pystrobe::pyext
