// SPDX-License-Identifier: Apache-2.0
//
// A recording as text, every value of it, so that a difference can be read.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>

#include "profiler/model/recording.h"

namespace pystrobe::testing {

inline std::string ToText(const Metadata& m) {
  std::string text = fmt::format("pid {}\n", m.pid);
  for (const std::string& argument : m.command) text += fmt::format("argument {}\n", argument);
  text += fmt::format("executable {}\npython {}\nhost {}\npystrobe {}\npause {}\n", m.executable,
                      m.python_version, m.host, m.pystrobe_version, m.pause_mode);
  text += fmt::format("start unix {} monotonic {}\nrate {} overhead {} cpus {}\n", m.start_unix_ns,
                      m.start_monotonic_ns, m.wanted_rate_hz, m.max_overhead, m.cpu_count);
  if (m.native) text += "native\n";
  if (m.timeline) text += "timeline\n";
  if (m.max_depth != 0) text += fmt::format("depth {}\n", m.max_depth);
  if (m.clock != CallClock::kBoth) text += fmt::format("clock {}\n", ClockName(m.clock));
  if (!m.gpu_failure.empty()) text += fmt::format("gpu failure {}\n", m.gpu_failure);
  return text;
}

inline std::string ToText(const Quality& q) {
  std::string text = fmt::format(
      "quality deadlines {} samples {} taken {} proved {} marked {} incomplete {} late {} lost {} "
      "retries {} unresolved {} reused {}\n",
      q.deadlines, q.samples, q.taken, q.proved, q.marked, q.incomplete, q.late, q.lost, q.retries,
      q.unresolved, q.reused_code);
  text += fmt::format("quality duration {} held {} run_delay {} own_cpu {}\n", q.duration_ns,
                      q.held_ns, q.run_delay_ns, q.own_cpu_ns);
  text += fmt::format("quality achieved {} final {} complete {} source {}\n", q.achieved_rate_hz,
                      q.final_rate_hz, q.complete, q.cpu_source);
  const bool has_later_fields = !q.pause_mode.empty() || q.thread_ns != 0 || q.unseen_ns != 0;
  if (has_later_fields) {
    text += fmt::format("quality pause {} threads {} unseen {}\n", q.pause_mode, q.thread_ns,
                        q.unseen_ns);
  }
  if (q.limited_ns) text += fmt::format("quality limited {}\n", *q.limited_ns);
  if (q.cpu_ns != 0) text += fmt::format("quality cpu {} unseen {}\n", q.cpu_ns, q.unseen_cpu_ns);
  if (q.native_cut + q.native_unfit != 0) {
    text += fmt::format("quality native cut {} unfit {}\n", q.native_cut, q.native_unfit);
  }
  if (q.left_out != 0) text += fmt::format("quality left out {}\n", q.left_out);
  if (q.uncounted != 0) text += fmt::format("quality uncounted {}\n", q.uncounted);
  if (!q.timeline_failure.empty()) {
    text += fmt::format("quality timeline until {}: {}\n", q.timeline_end_ns, q.timeline_failure);
  }
  for (size_t i = 0; i < q.held_each.counts().size(); ++i) {
    const uint64_t count = q.held_each.counts()[i];
    if (count != 0) text += fmt::format("quality held bucket {} times {}\n", i, count);
  }
  return text;
}

inline std::string ToText(const Tables& tables) {
  std::string text;
  for (uint32_t i = 0; i < tables.string_count(); ++i) {
    text += fmt::format("string {} {}\n", i, tables.text(StringId{i}));
  }
  for (uint32_t i = 0; i < tables.function_count(); ++i) {
    const Function& f = tables.function(FunctionId{i});
    text += fmt::format("function {} name {} file {} line {}{}\n", i, ToIndex(f.name),
                        ToIndex(f.file), f.first_line, f.is_native ? " native" : "");
  }
  for (uint32_t i = 0; i < tables.frame_count(); ++i) {
    const Frame& f = tables.frame(FrameId{i});
    text += fmt::format("frame {} function {} line {}\n", i, ToIndex(f.function), f.line);
  }
  for (uint32_t i = 1; i < tables.stack_count(); ++i) {
    const StackNode& s = tables.stack(StackId{i});
    text += fmt::format("stack {} parent {} frame {}\n", i, ToIndex(s.parent), ToIndex(s.frame));
  }
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    const Thread& t = tables.thread(ThreadIndex{i});
    text += fmt::format("thread {} tid {} interpreter {} name {}\n", i, t.tid, t.interpreter,
                        ToIndex(t.name));
  }
  return text;
}

inline std::string ToText(const Sample& s) {
  return fmt::format("sample thread {} time {} wall {} cpu {} stack {} count {} flags {}\n",
                     ToIndex(s.thread), s.time_ns, s.wall_ns, s.cpu_ns, ToIndex(s.stack), s.count,
                     s.flags);
}

inline std::string ToText(const std::array<uint32_t, 3>& three) {
  return fmt::format("{}x{}x{}", three[0], three[1], three[2]);
}

inline std::string ToText(const GpuSum& s) {
  std::string text = fmt::format(
      "gpu sum stack {} kernel {} device {} stream {} count {} untimed {} total {} min {} max {} "
      "bytes {} grid {} advice {}",
      ToIndex(s.stack), s.kernel, s.device, s.stream, s.count, s.untimed, s.total_ns, s.min_ns,
      s.max_ns, s.bytes, ToText(s.last_grid), ToIndex(s.advice));
  for (size_t i = 0; i < s.buckets.size(); ++i) {
    if (s.buckets[i] != 0) text += fmt::format(" bucket {} {}", i, s.buckets[i]);
  }
  if (s.occupancy) {
    text += fmt::format(" blocks {} theoretical {} waves {} tail {}",
                        s.occupancy->blocks_per_multiprocessor, s.occupancy->theoretical,
                        s.occupancy->waves, s.occupancy->tail_efficiency);
  }
  return text + "\n";
}

inline std::string ToText(const GpuRecord& record) {
  std::string text;
  for (const GpuDevice& d : record.devices) {
    text += fmt::format("gpu device {} name {} multiprocessors {}\n", d.number, ToIndex(d.name),
                        d.multiprocessors);
  }
  for (const GpuKernel& k : record.kernels) {
    text += fmt::format(
        "gpu kernel kind {} name {} short {} block {} cluster {} registers {} shared {} {}\n",
        static_cast<int>(k.kind), ToIndex(k.name), ToIndex(k.short_name), ToText(k.block),
        ToText(k.cluster), k.registers, k.static_shared, k.dynamic_shared);
  }
  for (const GpuSum& sum : record.sums) text += ToText(sum);
  for (const GpuSpan& span : record.spans) {
    text += fmt::format("gpu span sum {} begin {} end {} tid {} launch {} bytes {}\n", span.sum,
                        span.begin_ns, span.end_ns, span.tid, span.launch_ns, span.bytes);
  }
  for (const GpuUse& use : record.uses) {
    text += fmt::format("gpu use {} busy {} idle {}\n", use.device, use.busy_ns, use.idle_ns);
  }
  for (const GpuIdle& idle : record.idles) {
    text += fmt::format("gpu idle device {} cause {} from {} to {} count {} total {} max {}\n",
                        idle.device, static_cast<int>(idle.cause), ToIndex(idle.from),
                        ToIndex(idle.to), idle.count, idle.total_ns, idle.max_ns);
  }
  for (const GpuWait& wait : record.waits) {
    text += fmt::format("gpu wait stack {} count {} total {} max {}\n", ToIndex(wait.stack),
                        wait.count, wait.total_ns, wait.max_ns);
  }
  for (const GpuGap& gap : record.gaps) {
    text += fmt::format("gpu gap idle {} begin {} end {} tid {}\n", gap.idle, gap.begin_ns,
                        gap.end_ns, gap.tid);
  }
  const GpuQuality& q = record.quality;
  if (q.captured + q.of_graphs > 0) {
    text += fmt::format("gpu graphs captured {} records {}\n", q.captured, q.of_graphs);
  }
  if (q.launches_only) text += "gpu launches only\n";
  text += fmt::format(
      "gpu quality kernels {} graphs {} copies {} sets {} failed {} records {} unmatched {} "
      "dropped {} overflowed {} duration {} own_cpu {} source {} spans lost {}\n",
      q.kernel_launches, q.graph_launches, q.copies, q.sets, q.failed, q.records, q.unmatched,
      q.dropped, q.overflowed, q.duration_ns, q.own_cpu_ns, ToIndex(q.source), record.spans_lost);
  return text;
}

inline std::string ToText(const RangeRecord& record) {
  std::string text;
  for (const NamedRange& r : record.ranges) {
    const std::string parent =
        r.parent == NamedRange::kNoParent ? "none" : fmt::format("{}", r.parent);
    text += fmt::format("range parent {} name {} domain {} count {} host {}\n", parent,
                        ToIndex(r.name), ToIndex(r.domain), r.count, r.host_ns);
  }
  for (const RangeOnStream& s : record.streams) {
    text += fmt::format(
        "range on stream range {} device {} stream {} instances {} span {} busy {} works {}\n",
        s.range, s.device, s.stream, s.instances, s.span_ns, s.busy_ns, s.works);
  }
  for (const RangeSpan& s : record.spans) {
    text += fmt::format("range span range {} begin {} end {} tid {}\n", s.range, s.begin_ns,
                        s.end_ns, s.tid);
  }
  return text + fmt::format("range quality spans lost {} overflowed {}\n", record.spans_lost,
                            record.overflowed);
}

/// The failure instead, when the samples cannot be read.
inline std::string ToText(const RecordingSource& source) {
  std::string text = ToText(source.metadata()) + ToText(source.tables());
  const auto read = source.ForEachSample([&](const Sample& sample) { text += ToText(sample); });
  if (!read) return read.error().message;
  const auto called = source.ForEachCall([&](ThreadIndex thread, std::span<const CallEvent> calls) {
    for (const CallEvent& call : calls) {
      text += fmt::format("call thread {} time {} stack {}\n", ToIndex(thread), call.time_ns,
                          ToIndex(call.stack));
    }
  });
  if (!called) return called.error().message;
  if (source.gpu() != nullptr) text += ToText(*source.gpu());
  if (source.ranges() != nullptr) text += ToText(*source.ranges());
  return text + ToText(source.quality());
}

}  // namespace pystrobe::testing
