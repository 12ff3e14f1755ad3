// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/facts.h"

#include <tuple>
#include <utility>

#include "profiler/store/corrupt.h"

namespace pystrobe::store {
namespace {

// More than Linux lets a program have by default.
constexpr uint64_t kMaxArguments = uint64_t{1} << 20;

/// Calls `visit` with references to every integer of a Quality, in stored order.
template <typename Q, typename Visit>
void ForEachInteger(Q& q, Visit visit) {
  std::apply([&](auto&... field) { (visit(field), ...); },
             std::tie(q.deadlines, q.samples, q.taken, q.proved, q.marked, q.incomplete, q.late,
                      q.lost, q.retries, q.unresolved, q.reused_code, q.duration_ns, q.held_ns,
                      q.run_delay_ns, q.own_cpu_ns));
}

void AppendHistogram(Bytes& out, const DurationHistogram& now, const DurationHistogram& before) {
  const std::span<const uint64_t> counts = now.counts(), old = before.counts();
  const auto grown = [&](size_t i) { return counts[i] - (i < old.size() ? old[i] : 0); };
  size_t changed = 0;
  for (size_t i = 0; i < counts.size(); ++i) changed += grown(i) != 0 ? 1 : 0;
  AppendVarint(out, changed);
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (grown(i) == 0) continue;
    AppendVarint(out, i - next);
    AppendVarint(out, grown(i));
    next = i + 1;
  }
}

/// False where there are no such buckets.
bool ParseHistogram(ByteReader& in, DurationHistogram& histogram) {
  const uint64_t changed = in.Varint();
  size_t next = 0;
  for (uint64_t i = 0; i < changed && in.ok(); ++i) {
    const uint64_t skipped = in.Varint();
    if (skipped >= DurationHistogram::kMostBuckets - next) return false;
    next += static_cast<size_t>(skipped);
    histogram.AddTo(next++, in.Varint());
  }
  return true;
}

/// What older files lack. False where a figure makes no sense.
bool ParseLaterFields(ByteReader& in, Quality& quality) {
  const std::string_view pause_mode = in.Text();
  if (!pause_mode.empty()) quality.pause_mode = pause_mode;
  quality.thread_ns = Add(quality.thread_ns, in.Varint());
  quality.unseen_ns = Add(quality.unseen_ns, in.Varint());
  if (in.empty()) return true;
  const auto before = static_cast<uint64_t>(quality.limited_ns.value_or(0));
  quality.limited_ns = static_cast<int64_t>(Add(before, in.Varint()));
  if (in.empty()) return true;
  quality.cpu_ns = Add(quality.cpu_ns, in.Varint());
  quality.unseen_cpu_ns = Add(quality.unseen_cpu_ns, in.Varint());
  if (in.empty()) return true;
  quality.native_cut = Add(quality.native_cut, in.Varint());
  quality.native_unfit = Add(quality.native_unfit, in.Varint());
  if (in.empty()) return true;
  quality.left_out = Add(quality.left_out, in.Varint());
  if (in.empty()) return true;
  if (!ParseHistogram(in, quality.held_each)) return false;
  if (in.empty()) return true;
  quality.timeline_failure = in.Text();
  quality.timeline_end_ns = in.Signed();
  quality.uncounted = in.Varint();
  return true;
}

}  // namespace

void AppendMetadata(Bytes& out, const Metadata& metadata) {
  AppendSigned(out, metadata.pid);
  AppendVarint(out, metadata.command.size());
  for (const std::string& argument : metadata.command) AppendText(out, argument);
  AppendText(out, metadata.executable);
  AppendText(out, metadata.python_version);
  AppendText(out, metadata.host);
  AppendText(out, metadata.pystrobe_version);
  AppendText(out, metadata.pause_mode);
  AppendSigned(out, metadata.start_unix_ns);
  AppendSigned(out, metadata.start_monotonic_ns);
  AppendDouble(out, metadata.wanted_rate_hz);
  AppendDouble(out, metadata.max_overhead);
  AppendVarint(out, metadata.cpu_count);
  AppendVarint(out, metadata.native ? 1 : 0);
  AppendVarint(out, metadata.timeline ? 1 : 0);
  AppendVarint(out, metadata.max_depth);
  AppendVarint(out, static_cast<uint64_t>(metadata.clock));
  if (!metadata.gpu_failure.empty()) AppendText(out, metadata.gpu_failure);
}

Result<Metadata> ParseMetadata(ByteSpan bytes) {
  ByteReader in(bytes);
  Metadata metadata;
  metadata.pid = in.Signed();
  const uint64_t arguments = in.Varint();
  if (arguments > kMaxArguments) return Fail(ErrorCode::kCorrupt, "{} arguments", arguments);
  for (uint64_t i = 0; i < arguments && in.ok(); ++i) metadata.command.emplace_back(in.Text());
  metadata.executable = in.Text();
  metadata.python_version = in.Text();
  metadata.host = in.Text();
  metadata.pystrobe_version = in.Text();
  metadata.pause_mode = in.Text();
  metadata.start_unix_ns = in.Signed();
  metadata.start_monotonic_ns = in.Signed();
  metadata.wanted_rate_hz = in.Double();
  metadata.max_overhead = in.Double();
  metadata.cpu_count = static_cast<uint32_t>(in.Varint());
  // Older files end here.
  metadata.native = !in.empty() && in.Varint() != 0;
  metadata.timeline = !in.empty() && in.Varint() != 0;
  metadata.max_depth = in.empty() ? 0 : static_cast<uint32_t>(in.Varint());
  const uint64_t clock = in.empty() ? 0 : in.Varint();
  if (clock > static_cast<uint64_t>(CallClock::kCpu)) {
    return Fail(ErrorCode::kCorrupt, "a clock of calls numbered {}", clock);
  }
  metadata.clock = static_cast<CallClock>(clock);
  if (!in.empty()) metadata.gpu_failure = in.Text();
  if (!in.ok()) return Corrupt("metadata that end too early");
  return metadata;
}

void AppendQuality(Bytes& out, const Quality& quality, const Quality& before) {
  std::vector<uint64_t> old;
  ForEachInteger(before, [&](auto field) { old.push_back(static_cast<uint64_t>(field)); });
  size_t next = 0;
  ForEachInteger(quality, [&](auto field) {
    AppendVarint(out, Difference(static_cast<uint64_t>(field), old[next++]));
  });
  AppendDouble(out, quality.achieved_rate_hz);
  AppendDouble(out, quality.final_rate_hz);
  AppendText(out, quality.cpu_source == before.cpu_source ? "" : quality.cpu_source);
  AppendText(out, quality.pause_mode == before.pause_mode ? "" : quality.pause_mode);
  AppendVarint(out, Difference(quality.thread_ns, before.thread_ns));
  AppendVarint(out, Difference(quality.unseen_ns, before.unseen_ns));
  const bool has_last = !quality.timeline_failure.empty() || quality.uncounted > 0;
  // As in a file that is old enough to lack this and what follows.
  if (!quality.limited_ns && !has_last) return;
  AppendVarint(out, Difference(static_cast<uint64_t>(quality.limited_ns.value_or(0)),
                               static_cast<uint64_t>(before.limited_ns.value_or(0))));
  AppendVarint(out, Difference(quality.cpu_ns, before.cpu_ns));
  AppendVarint(out, Difference(quality.unseen_cpu_ns, before.unseen_cpu_ns));
  AppendVarint(out, Difference(quality.native_cut, before.native_cut));
  AppendVarint(out, Difference(quality.native_unfit, before.native_unfit));
  AppendVarint(out, Difference(quality.left_out, before.left_out));
  if (quality.held_each != before.held_each || has_last) {
    AppendHistogram(out, quality.held_each, before.held_each);
  }
  if (!has_last) return;
  AppendText(out, quality.timeline_failure);
  AppendSigned(out, quality.timeline_end_ns);
  AppendVarint(out, quality.uncounted);
}

Result<void> ParseQuality(ByteSpan bytes, Quality& so_far) {
  ByteReader in(bytes);
  Quality quality = so_far;
  ForEachInteger(quality, [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    field = static_cast<Field>(Add(static_cast<uint64_t>(field), in.Varint()));
  });
  quality.achieved_rate_hz = in.Double();
  quality.final_rate_hz = in.Double();
  const std::string_view cpu_source = in.Text();
  if (!cpu_source.empty()) quality.cpu_source = cpu_source;
  if (!in.empty() && !ParseLaterFields(in, quality)) {
    return Corrupt("times held of no bucket that there is");
  }
  if (!in.ok()) return Corrupt("quality figures that end too early");
  so_far = std::move(quality);
  return {};
}

}  // namespace pystrobe::store
