// SPDX-License-Identifier: Apache-2.0
//
// The .strobe file: written as a stream while sampling, readable up to its last whole block however
// it was cut off. The layout is drawn in strobe_format.h and told in docs/format.md.
#pragma once

#include <memory>
#include <string>

#include "profiler/base/error.h"
#include "profiler/base/scoped_fd.h"
#include "profiler/model/recording.h"

namespace pystrobe::store {

/// Writes a recording to a file descriptor (a file, or a memfd for a recording that is only
/// reported). Samples are gathered into blocks; a block is sealed and written when it is full or
/// some two seconds old, so a killed sampler loses little more than that. Each block goes out in
/// one write(2) where the kernel takes it whole.
///
/// Times are stored in whole microseconds; no sum over a thread's samples is off by 1 us or more
/// (samples.h). Quality::complete is not stored: Finish makes a recording complete.
///
/// Fails with kIo when the file cannot take more (disk full, pipe closed); what was written before
/// stays readable. Calls, of which there are the most, make room for the rest: where they do not
/// fit AppendCalls alone fails, from there on, and where the rest does not the last blocks of calls
/// are given up for it; Finish writes into the quality why, and up to when they are whole. Who is
/// killed while room is made leaves the file readable up to the block that was given up. Memory:
/// one block plus the encoder, a few MiB whatever the length; and while room is made, what has come
/// since that block. [one thread at a time]
class StrobeWriter final : public TimelineSink {
 public:
  /// Samples that span this much are written although more may be coming.
  static constexpr int64_t kMostPendingNs = 2'500'000'000;

  /// Takes ownership of `fd`; `name` is for messages.
  StrobeWriter(ScopedFd fd, std::string name);
  ~StrobeWriter() override;

  Result<void> Begin(const Metadata& metadata) override;
  Result<void> Append(const Tables& tables, std::span<const Sample> samples,
                      const Quality& so_far) override;
  Result<void> AppendCalls(const Tables& tables, ThreadIndex thread,
                           std::span<const CallEvent> calls) override;
  /// What a GPU did until now, with the tables that its ids are of: others than those of samples.
  /// Between Begin and Finish, beside Append. The last whole one counts.
  Result<void> AppendGpu(const Tables& gpu_tables, const GpuRecord& record);
  /// The ranges that the program named until now, the same way.
  Result<void> AppendRanges(const Tables& tables, const RangeRecord& record);
  Result<void> Finish(const Tables& tables, const Quality& quality) override;
  void Expect(const DeadlineSeries& series) override;

  /// Gives the descriptor back, for reading what was written. After Finish or an error.
  ScopedFd TakeFd();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a .strobe file: metadata, tables and quality at once, samples as a stream. Samples come
/// about two seconds at a time, and within that thread by thread. [any thread, const]
class StrobeFile final : public RecordingSource {
 public:
  /// Fails with kNotFound, kCorrupt (not a .strobe, damaged head, newer version: says which) or
  /// kUnreadable. A file cut off or damaged later opens: everything before the damage is there,
  /// quality().complete is false and cut_off() tells where and why.
  static Result<std::unique_ptr<StrobeFile>> Open(const std::string& path);
  static Result<std::unique_ptr<StrobeFile>> Open(ScopedFd fd, std::string name);
  ~StrobeFile() override;

  const Metadata& metadata() const override;
  const Tables& tables() const override;
  const Quality& quality() const override;
  Result<void> ForEachSample(FunctionRef<void(const Sample&)> visit) const override;
  Result<void> ForEachCall(CallVisitor visit) const override;
  const GpuRecord* gpu() const override;
  const RangeRecord* ranges() const override;

  /// Empty for a whole file; else one line: what is missing and from which byte on.
  const std::string& cut_off() const;

 private:
  class Impl;
  explicit StrobeFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pystrobe::store
