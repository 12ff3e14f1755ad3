// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gpu_events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "profiler/write/json_writer.h"
#include "profiler/write/labels.h"

namespace pystrobe::write {
namespace {

// As kineto sorts them: devices behind processes.
constexpr uint64_t kFirstDeviceSortIndex = 5'000'000;
// Of what overlaps in a stream: beyond all streams that there are.
constexpr uint64_t kLaneDistance = 1'000'000;
constexpr size_t kMostTextKept = size_t{16} << 20;

uint64_t RowId(const GpuTimeline::Row& row) { return row.stream + row.lane * kLaneDistance; }

std::string Json(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

double ProductOf(const std::array<uint32_t, 3>& three) {
  return double{1} * three[0] * three[1] * three[2];
}

std::string MetadataEvent(std::string_view what, int64_t pid, uint64_t tid, std::string_view args) {
  return fmt::format(R"(,{}{{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{{}}}}})", '\n', what,
                     pid, tid, args);
}

}  // namespace

std::string Microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

GpuEvents::GpuEvents(const Profile& profile, OutputBuffer& out)
    : profile_(profile), tables_(profile.tables()), out_(out), timeline_(profile) {}

void GpuEvents::WriteHead() {
  out_.Append("\"schemaVersion\":1,\"deviceProperties\":[");
  std::string_view separator;
  for (const GpuDevice& device : profile_.recording->gpu()->devices) {
    out_.Append(fmt::format(R"({}{{"id":{},"name":{})", separator, device.number,
                            Json(tables_.text(device.name))));
    if (device.multiprocessors != 0) {
      out_.Append(fmt::format(",\"numSms\":{}", device.multiprocessors));
    }
    out_.Append("}");
    separator = ",";
  }
  out_.Append(
      fmt::format("],\"baseTimeNanoseconds\":{},", profile_.recording->metadata().start_unix_ns));
}

void GpuEvents::WriteNames(std::span<const uint64_t> named) {
  const int64_t process = profile_.recording->metadata().pid;
  out_.Append(MetadataEvent("process_labels", process, 0, R"("labels":"CPU")"));
  out_.Append(MetadataEvent("process_sort_index", process, 0,
                            fmt::format(R"("sort_index":{})", std::max<int64_t>(process, 0))));
  for (const uint32_t tid : timeline_.LaunchingThreads()) {
    if (std::ranges::find(named, tid) != named.end()) continue;
    WriteThreadName(process, tid, LaunchingThreadName(tables_, tid), tid);
  }
  const GpuTimeline::Row* last = nullptr;
  uint64_t rows = 0;
  for (const GpuTimeline::Row& row : timeline_.rows()) {
    const int64_t device = row.device;
    if (last == nullptr || last->device != row.device) {
      const std::string name = DeviceName(*profile_.recording, row.device);
      out_.Append(MetadataEvent("process_name", device, 0, "\"name\":" + Json(name)));
      out_.Append(
          MetadataEvent("process_labels", device, 0, fmt::format(R"("labels":"GPU {}")", device)));
      out_.Append(
          MetadataEvent("process_sort_index", device, 0,
                        fmt::format(R"("sort_index":{})", kFirstDeviceSortIndex + row.device)));
    }
    last = &row;
    // The space is kineto's.
    WriteThreadName(device, RowId(row), RowName(row) + " ", rows++);
  }
}

void GpuEvents::WriteThreadName(int64_t pid, uint64_t tid, std::string_view name,
                                uint64_t sort_index) {
  out_.Append(MetadataEvent("thread_name", pid, tid, "\"name\":" + Json(name)));
  out_.Append(
      MetadataEvent("thread_sort_index", pid, tid, fmt::format(R"("sort_index":{})", sort_index)));
}

void GpuEvents::WriteWork() {
  timeline_.ForEachLaunch([this](const GpuTimeline::Launch& launch) {
    if (out_.ok()) WriteLaunch(launch);
  });
  timeline_.ForEachWork([this](const GpuTimeline::Work& work, size_t row) {
    if (out_.ok()) WriteSpan(work, timeline_.rows()[row]);
  });
}

// How long the call took is not known. A flow begins at the slice that came last.
void GpuEvents::WriteLaunch(const GpuTimeline::Launch& launch) {
  const int64_t process = profile_.recording->metadata().pid;
  const std::string where = fmt::format(R"("pid":{},"tid":{},"ts":{})", process, launch.tid,
                                        Microseconds(launch.time_ns));
  out_.Append(fmt::format(
      R"(,{}{{"ph":"X","cat":"cuda_driver","name":"{}",{},"dur":0,"args":{{"correlation":{}}}}})",
      '\n', LaunchName(launch.kernel.kind, launch.works > 1), where, launch.number));
  out_.Append(fmt::format(R"(,{}{{"ph":"s","id":{},{},"cat":"ac2g","name":"ac2g"}})", '\n',
                          launch.number, where));
}

void GpuEvents::WriteSpan(const GpuTimeline::Work& work, const GpuTimeline::Row& row) {
  const SumText& text = TextOf(work);
  const std::string where = fmt::format(R"("pid":{},"tid":{},"ts":{})", row.device, RowId(row),
                                        Microseconds(work.begin_ns));
  out_.Append(fmt::format(R"(,{}{{"ph":"X",{},{},"dur":{},"args":{{"device":{},"stream":{})", '\n',
                          text.name, where, Microseconds(work.end_ns - work.begin_ns), row.device,
                          row.stream));
  if (work.launch != 0) out_.Append(fmt::format(",\"correlation\":{}", work.launch));
  if (work.kernel.kind != GpuWorkKind::kKernel) {
    out_.Append(fmt::format(",\"bytes\":{}", work.span.bytes));
    const int64_t duration_ns = work.span.end_ns - work.span.begin_ns;
    if (duration_ns > 0) {
      out_.Append(
          fmt::format(",\"memory bandwidth (GB/s)\":{}",
                      static_cast<double>(work.span.bytes) / static_cast<double>(duration_ns)));
    }
  }
  out_.Append(text.args);
  out_.Append("}}");
  if (!work.has_launch) return;
  out_.Append(fmt::format(R"(,{}{{"ph":"f","bp":"e","id":{},{},"cat":"ac2g","name":"ac2g"}})", '\n',
                          work.launch, where));
}

const GpuEvents::SumText& GpuEvents::TextOf(const GpuTimeline::Work& work) {
  if (texts_size_ > kMostTextKept) {
    texts_.clear();
    texts_size_ = 0;
  }
  SumText& text = texts_[work.span.sum];
  if (!text.name.empty()) return text;
  text.name = fmt::format(R"("cat":"{}","name":{})", GpuCategory(work.kernel.kind),
                          Json(tables_.text(work.kernel.name)));
  if (work.kernel.kind == GpuWorkKind::kKernel) text.args = KernelArgs(work.sum, work.kernel);
  const std::string stack = StackText(work.sum.stack, tables_);
  if (!stack.empty()) text.args += ",\"python stack\":" + Json(stack);
  texts_size_ += text.name.size() + text.args.size();
  return text;
}

std::string GpuEvents::KernelArgs(const GpuSum& sum, const GpuKernel& kernel) const {
  constexpr double kThreadsOfWarp = 32;
  std::string args =
      fmt::format(R"(,"registers per thread":{},"shared memory":{},"grid":[{}],"block":[{}])",
                  kernel.registers, uint64_t{kernel.static_shared} + kernel.dynamic_shared,
                  fmt::join(sum.last_grid, ","), fmt::join(kernel.block, ","));
  const std::vector<GpuDevice>& devices = profile_.recording->gpu()->devices;
  const auto device = std::ranges::find(devices, sum.device, &GpuDevice::number);
  if (device != devices.end() && device->multiprocessors != 0) {
    const double blocks = ProductOf(sum.last_grid) / device->multiprocessors;
    args += fmt::format(R"(,"blocks per SM":{},"warps per SM":{})", blocks,
                        blocks * ProductOf(kernel.block) / kThreadsOfWarp);
  }
  if (sum.occupancy) {
    args += fmt::format(R"(,"theoretical occupancy %":{})", 100 * sum.occupancy->theoretical);
  }
  return args;
}

}  // namespace pystrobe::write
