// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/range_blocks.h"

#include <algorithm>

#include "profiler/base/wrapping.h"
#include "profiler/store/corrupt.h"
#include "profiler/store/row_reader.h"

namespace pystrobe::store {
namespace {

bool MakesSense(const RangeSpan& span) {
  return span.begin_ns >= 0 && span.begin_ns < kMaxGpuTime && span.end_ns >= span.begin_ns &&
         span.end_ns - span.begin_ns < kMaxGpuTime;
}

uint64_t DurationOf(const RangeSpan& span) {
  return static_cast<uint64_t>(span.end_ns - span.begin_ns);
}

}  // namespace

void RangeSpanHistory::Add(const RangeSpan& span) {
  if (span.range >= durations_.size()) durations_.resize(span.range + size_t{1});
  durations_[span.range] = DurationOf(span);
  end_ns_ = static_cast<uint64_t>(span.end_ns);
  tid_ = span.tid;
}

Result<void> CheckRangeRecord(const RangeRecord& record) {
  const size_t count = record.ranges.size();
  const size_t rows = std::max(count, record.streams.size());
  if (rows > kMaxRanges || record.spans.size() > kMaxRangeSpans) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "{} rows and {} spans of ranges are over the {} and {} that a .strobe file may have", rows,
        record.spans.size(), kMaxRanges, kMaxRangeSpans);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t parent = record.ranges[i].parent;
    if (parent < i || parent == NamedRange::kNoParent) continue;
    return Fail(ErrorCode::kInvalidArgument, "range {} cannot be within range {}", i, parent);
  }
  for (const RangeOnStream& row : record.streams) {
    if (row.range < count) continue;
    return Fail(ErrorCode::kInvalidArgument, "work in range {}, of {}, cannot be", row.range,
                count);
  }
  for (const RangeSpan& span : record.spans) {
    if (span.range < count && MakesSense(span)) continue;
    return Fail(ErrorCode::kInvalidArgument, "range {} open from {} to {} ns cannot be", span.range,
                span.begin_ns, span.end_ns);
  }
  return {};
}

RangeEncoder::RangeEncoder(const Tables& tables, const RangeRecord& record) : record_(record) {
  for (const NamedRange& range : record.ranges) {
    for (const StringId id : {range.name, range.domain}) {
      const auto [it, added] = name_of_.try_emplace(ToIndex(id));
      if (added) it.value() = names_.Intern(tables.text(id));
    }
  }
}

bool RangeEncoder::Encode(size_t budget, Columns& columns) {
  if (!definitions_.Encode(names_, budget, columns)) return false;
  const auto is_full = [&columns, budget] {
    size_t size = 0;
    for (size_t column = kRangeRows; column <= kRangeSpanThreads; ++column) {
      size += columns[column].size();
    }
    return size >= budget;
  };
  for (; ranges_ < record_.ranges.size() && !is_full(); ++ranges_) {
    EncodeRange(record_.ranges[ranges_], columns);
  }
  for (; streams_ < record_.streams.size() && !is_full(); ++streams_) {
    EncodeStream(record_.streams[streams_], columns);
  }
  for (; spans_ < record_.spans.size() && !is_full(); ++spans_) {
    EncodeSpan(record_.spans[spans_], columns);
  }
  if (is_full()) return false;
  AppendVarint(columns[kRangeQuality], record_.spans_lost);
  AppendVarint(columns[kRangeQuality], record_.overflowed);
  return true;
}

void RangeEncoder::EncodeRange(const NamedRange& range, Columns& columns) {
  Bytes& out = columns[kRangeRows];
  AppendVarint(out, range.parent == NamedRange::kNoParent ? 0 : ranges_ - range.parent);
  AppendVarint(out, ToIndex(name_of_.at(ToIndex(range.name))));
  AppendVarint(out, ToIndex(name_of_.at(ToIndex(range.domain))));
  AppendVarint(out, range.count);
  AppendVarint(out, range.host_ns);
}

void RangeEncoder::EncodeStream(const RangeOnStream& row, Columns& columns) {
  Bytes& out = columns[kRangeStreams];
  AppendVarint(out, Difference(row.range, last_range_));
  last_range_ = row.range;
  for (const uint64_t field : {uint64_t{row.device}, uint64_t{row.stream}, row.instances,
                               row.span_ns, row.busy_ns, row.works}) {
    AppendVarint(out, field);
  }
}

void RangeEncoder::EncodeSpan(const RangeSpan& span, Columns& columns) {
  AppendVarint(columns[kRangeSpans], span.range);
  AppendVarint(columns[kRangeSpanEnds],
               Difference(static_cast<uint64_t>(span.end_ns), history_.end_ns()));
  AppendVarint(columns[kRangeSpanTimes],
               Difference(DurationOf(span), history_.duration_ns(span.range)));
  AppendVarint(columns[kRangeSpanThreads], Difference(span.tid, history_.tid()));
  history_.Add(span);
}

Result<void> RangeDecoder::Decode(const BlockUnpacker& block) {
  if (auto done = definitions_.Decode(block, tables_); !done) return done;
  if (auto done = DecodeRanges(block.column(kRangeRows)); !done) return done;
  if (auto done = DecodeStreams(block.column(kRangeStreams)); !done) return done;
  if (auto done = DecodeSpans(block); !done) return done;
  if (!IsLast(block)) return {};
  ByteReader in(block.column(kRangeQuality));
  record_.spans_lost = in.Varint();
  record_.overflowed = in.Varint();
  return in.ok() ? Result<void>{} : Corrupt("quality figures of ranges that cannot be");
}

Result<void> RangeDecoder::DecodeRanges(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    const auto own = static_cast<uint32_t>(record_.ranges.size());
    if (own == kMaxRanges) return Corrupt("more ranges than can be");
    NamedRange range;
    const uint32_t up = in.Below(uint64_t{own} + 1);
    if (up > 0) range.parent = own - up;
    range.name = in.String();
    range.domain = in.String();
    range.count = in.bytes().Varint();
    range.host_ns = in.bytes().Varint();
    if (!in.ok()) return Corrupt("a range without a valid name or parent");
    record_.ranges.push_back(range);
  }
  return {};
}

Result<void> RangeDecoder::DecodeStreams(ByteSpan column) {
  RowReader in(column, tables_);
  while (!in.empty()) {
    const uint64_t range = Add(last_range_, in.bytes().Varint());
    RangeOnStream row{.device = in.Number(), .stream = in.Number()};
    for (uint64_t* field : {&row.instances, &row.span_ns, &row.busy_ns, &row.works}) {
      *field = in.bytes().Varint();
    }
    if (!in.ok() || range >= record_.ranges.size()) return Corrupt("work in a range of none");
    if (record_.streams.size() == kMaxRanges) return Corrupt("more work in ranges than can be");
    last_range_ = row.range = static_cast<uint32_t>(range);
    record_.streams.push_back(row);
  }
  return {};
}

Result<void> RangeDecoder::DecodeSpans(const BlockUnpacker& block) {
  RowReader ranges(block.column(kRangeSpans), tables_);
  ByteReader ends(block.column(kRangeSpanEnds)), times(block.column(kRangeSpanTimes));
  ByteReader threads(block.column(kRangeSpanThreads));
  while (!ranges.empty()) {
    RangeSpan span{.range = ranges.Below(record_.ranges.size())};
    if (!ranges.ok()) return Corrupt("a time that a range of none was open");
    const uint64_t duration = Add(history_.duration_ns(span.range), times.Varint());
    span.end_ns = static_cast<int64_t>(Add(history_.end_ns(), ends.Varint()));
    span.begin_ns = WrappingSubtract(span.end_ns, static_cast<int64_t>(duration));
    const uint64_t tid = Add(history_.tid(), threads.Varint());
    span.tid = static_cast<uint32_t>(tid);
    if (!MakesSense(span) || span.tid != tid) return Corrupt("a range at a time that cannot be");
    if (record_.spans.size() == kMaxRangeSpans) return Corrupt("more times of ranges than can be");
    record_.spans.push_back(span);
    history_.Add(span);
  }
  const bool fit = ends.finished() && times.finished() && threads.finished();
  return fit ? Result<void>{} : Corrupt("times of ranges that are not as many as these");
}

}  // namespace pystrobe::store
