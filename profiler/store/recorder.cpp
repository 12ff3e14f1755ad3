// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "profiler/model/gpu_translation.h"

namespace pystrobe::store {
namespace {

/// As many again leave room for a slow disk.
constexpr int64_t kHeldBackNs = 2 * StrobeWriter::kMostPendingNs;

Result<std::unique_ptr<StrobeFile>> OpenAgain(const ScopedFd& fd, const std::string& name) {
  if (!fd.IsIntact()) return Fail(ErrorCode::kUnreadable, "{} is closed", name);
  return StrobeFile::Open(ScopedFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)), name);
}

/// What can be read back; more of it is greater.
struct Contents {
  uint64_t samples = 0;
  bool gpu = false;

  auto operator<=>(const Contents&) const = default;
};

Contents Measure(const ScopedFd& fd, const std::string& name) {
  Contents contents;
  if (auto file = OpenAgain(fd, name)) {
    (void)(*file)->ForEachSample([&contents](const Sample&) { ++contents.samples; });
    contents.gpu = (*file)->gpu() != nullptr;
  }
  return contents;
}

bool HasSomeCalls(const StrobeFile& file) {
  bool has_some = false;
  const auto read = file.ForEachCall([&](ThreadIndex, auto) { has_some = true; });
  return has_some || !read;
}

}  // namespace

Result<ScopedFd> CreateMemoryFile() {
  ScopedFd fd(memfd_create("pystrobe-recording", MFD_CLOEXEC));
  if (!fd.valid()) {
    return FailErrno(errno, ErrorCode::kIo, "cannot make a file in memory for the recording");
  }
  return fd;
}

Result<ScopedFd> CreateTemporaryFile() {
  const char* const chosen = getenv("TMPDIR");
  for (const char* directory : {chosen, "/var/tmp", "/tmp"}) {
    if (directory == nullptr) continue;
    ScopedFd fd(open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd.valid()) return fd;
  }
  return CreateMemoryFile();
}

Recorder::Recorder(ScopedFd fd, std::string name, std::atomic<bool>& stop,
                   std::function<void(int)> on_place)
    : name_(std::move(name)), stop_(stop), on_place_(std::move(on_place)), fd_(std::move(fd)) {}

Recorder::~Recorder() = default;

Result<void> Recorder::Begin(const Metadata& metadata) {
  metadata_ = metadata;
  had_timeline_ = metadata.timeline;
  Result<int> place = fd_.get();
  if (auto begun = BeginFile(); !begun) place = BeginMemory(begun.error());
  if (!place) return std::unexpected(place.error());
  begun_ = true;
  TellPlace(*place);
  return {};
}

void Recorder::TellPlace(int fd) const {
  if (on_place_) on_place_(fd);
}

Result<void> Recorder::BeginFile() {
  if (ftruncate(fd_.get(), 0) != 0) {
    return FailErrno(errno, ErrorCode::kIo, "cannot truncate {}", name_);
  }
  writer_ = std::make_unique<StrobeWriter>(std::move(fd_), name_);
  return writer_->Begin(metadata_);
}

Result<int> Recorder::BeginMemory(const Error& error) {
  failure_ = error;
  stop_ = true;
  metadata_.timeline = false;
  auto memory = CreateMemoryFile();
  if (!memory) return std::unexpected(error);
  const int fd = memory->get();
  writer_ = std::make_unique<StrobeWriter>(*std::move(memory), "memory");
  if (auto begun = writer_->Begin(metadata_); !begun) return std::unexpected(begun.error());
  return fd;
}

Result<void> Recorder::Append(const Tables& tables, std::span<const Sample> samples,
                              const Quality& so_far) {
  if (!failure_) recent_.insert(recent_.end(), samples.begin(), samples.end());
  auto appended = writer_->Append(tables, samples, so_far);
  if (!appended && !failure_) appended = MoveToMemory(appended.error(), tables, so_far);
  ForgetOld();
  if (!appended) LoseSome();
  return appended;
}

// Of calls there are as many samples as ways to functions, all in the end; room that is made for
// them may cost what the file has of them.
void Recorder::ForgetOld() {
  if (had_timeline_) return;
  while (!recent_.empty() && recent_.front().time_ns < recent_.back().time_ns - kHeldBackNs) {
    recent_.pop_front();
    ++recent_begin_;
  }
}

Result<void> Recorder::AppendCalls(const Tables& tables, ThreadIndex thread,
                                   std::span<const CallEvent> calls) {
  if (failure_) return std::unexpected(*failure_);
  return writer_->AppendCalls(tables, thread, calls);
}

Result<void> Recorder::AppendGpu(const Tables& gpu_tables, const GpuRecord& record) {
  return AppendOrHold(writer_->AppendGpu(gpu_tables, record), [&] {
    auto& held = held_gpu_.emplace();
    held.record = TranslateGpu(record, gpu_tables, held.tables);
  });
}

Result<void> Recorder::AppendRanges(const Tables& tables, const RangeRecord& record) {
  return AppendOrHold(writer_->AppendRanges(tables, record), [&] {
    auto& held = held_ranges_.emplace();
    held.record = TranslateRanges(record, tables, held.tables);
  });
}

Result<void> Recorder::AppendOrHold(Result<void> appended, FunctionRef<void()> hold) {
  if (appended || appended.error().code == ErrorCode::kInvalidArgument) return appended;
  if (failure_) {
    LoseSome();
    return appended;
  }
  // Moves with the samples, whose tables are not at hand here: the writer takes no more of them.
  stop_ = true;
  hold();
  return {};
}

Result<void> Recorder::Finish(const Tables& tables, const Quality& quality) {
  auto finished = FinishHere(tables, quality);
  if (!finished && !failure_) {
    finished = MoveToMemory(finished.error(), tables, quality);
    if (finished) finished = FinishHere(tables, quality);
  }
  if (!finished) LoseSome();
  return finished;
}

Result<void> Recorder::FinishHere(const Tables& tables, const Quality& quality) {
  if (!failure_ || !had_timeline_) return writer_->Finish(tables, quality);
  Quality told = quality;
  told.timeline_failure = failure_->message;
  return writer_->Finish(tables, told);
}

void Recorder::LoseSome() {
  whole_ = false;
  if (!full_.IsIntact()) return;
  most_ = writer_->TakeFd();
  if (Measure(full_, name_) <= Measure(most_, name_)) return;
  std::swap(most_, full_);
  TellPlace(most_.get());
}

void Recorder::Expect(const DeadlineSeries& series) { writer_->Expect(series); }

Result<void> Recorder::MoveToMemory(const Error& error, const Tables& tables,
                                    const Quality& so_far) {
  // Stays open until another place is told: who gives up copies from it. Where there is no other
  // it is the place.
  std::unique_ptr<StrobeWriter> full = std::move(writer_);
  const auto memory = BeginMemory(error);
  if (!memory) {
    writer_ = std::move(full);
    return std::unexpected(memory.error());
  }
  full_ = full->TakeFd();
  auto copied = CopyToMemory(tables, so_far);
  TellPlace(*memory);
  return copied;
}

Result<void> Recorder::CopyToMemory(const Tables& tables, const Quality& so_far) {
  // Ids are dense and in order of appearance, so those in the file mean the same in `tables`.
  constexpr size_t kBatch = 4096;
  uint64_t copied = 0;
  std::vector<Sample> batch;
  Result<void> appended;
  const auto flush = [&] {
    if (appended) appended = writer_->Append(tables, batch, so_far);
    batch.clear();
  };
  const auto file = OpenAgain(full_, name_);
  if (!file && recent_begin_ > 0) whole_ = false;
  if (had_timeline_ && (!file || HasSomeCalls(**file))) whole_ = false;
  if (file) {
    auto read = (*file)->ForEachSample([&](const Sample& sample) {
      ++copied;
      batch.push_back(sample);
      if (batch.size() == kBatch) flush();
    });
    if (!read) return read;
  }
  const uint64_t skip = copied > recent_begin_ ? copied - recent_begin_ : 0;
  for (size_t i = std::min<size_t>(skip, recent_.size()); i < recent_.size(); ++i) {
    batch.push_back(recent_[i]);
  }
  flush();
  recent_.clear();
  if (appended) appended = CopyGpu(file ? file->get() : nullptr);
  return appended ? CopyRanges(file ? file->get() : nullptr) : appended;
}

Result<void> Recorder::CopyGpu(const StrobeFile* file) {
  if (held_gpu_) return writer_->AppendGpu(held_gpu_->tables, held_gpu_->record);
  if (file == nullptr || file->gpu() == nullptr) return {};
  Tables tables;
  const GpuRecord record = TranslateGpu(*file->gpu(), file->tables(), tables);
  return writer_->AppendGpu(tables, record);
}

Result<void> Recorder::CopyRanges(const StrobeFile* file) {
  if (held_ranges_) return writer_->AppendRanges(held_ranges_->tables, held_ranges_->record);
  if (file == nullptr || file->ranges() == nullptr) return {};
  return writer_->AppendRanges(file->tables(), *file->ranges());
}

ScopedFd Recorder::TakeFd() { return most_.valid() ? std::move(most_) : writer_->TakeFd(); }

}  // namespace pystrobe::store
