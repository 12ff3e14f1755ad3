// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/store/fuzz_reader.h"

#include <cstdlib>
#include <string>

#include "profiler/analyze/gpu_idle.h"
#include "profiler/analyze/gpu_meanwhile.h"
#include "profiler/analyze/profile.h"
#include "profiler/analyze/range_table.h"
#include "profiler/store/block.h"
#include "profiler/store/strobe.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/writer.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// Every id that the tables hold leads to something defined before it.
void CheckTables(const Tables& tables) {
  for (uint32_t i = 0; i < tables.function_count(); ++i) {
    const Function& function = tables.function(FunctionId{i});
    Require(ToIndex(function.name) < tables.string_count());
    Require(ToIndex(function.file) < tables.string_count());
  }
  for (uint32_t i = 0; i < tables.frame_count(); ++i) {
    Require(ToIndex(tables.frame(FrameId{i}).function) < tables.function_count());
  }
  for (uint32_t i = 1; i < tables.stack_count(); ++i) {
    const StackNode& node = tables.stack(StackId{i});
    Require(ToIndex(node.parent) < i && ToIndex(node.frame) < tables.frame_count());
  }
  for (uint32_t i = 0; i < tables.thread_count(); ++i) {
    Require(ToIndex(tables.thread(ThreadIndex{i}).name) < tables.string_count());
  }
}

/// Every id and number that a record holds is one that a writer may write.
void CheckGpu(const GpuRecord& record, const Tables& tables) {
  const auto require_text = [&](StringId id) { Require(ToIndex(id) < tables.string_count()); };
  for (const GpuDevice& device : record.devices) require_text(device.name);
  for (const GpuKernel& kernel : record.kernels) {
    require_text(kernel.name);
    require_text(kernel.short_name);
    Require(kernel.kind <= GpuWorkKind::kSet);
  }
  for (const GpuSum& sum : record.sums) {
    require_text(sum.advice);
    Require(ToIndex(sum.stack) < tables.stack_count() && sum.kernel < record.kernels.size());
    Require(!sum.occupancy || (sum.occupancy->waves >= 0 && sum.occupancy->theoretical >= 0 &&
                               sum.occupancy->tail_efficiency >= 0));
  }
  for (const GpuSpan& span : record.spans) {
    Require(span.sum < record.sums.size() && span.launch_ns >= 0);
    Require(span.begin_ns >= 0 && span.begin_ns <= span.end_ns);
    Require(span.end_ns < 2 * kMaxGpuTime && span.launch_ns < kMaxGpuTime);
  }
  const auto require_stack = [&](StackId id) { Require(ToIndex(id) < tables.stack_count()); };
  for (const GpuIdle& idle : record.idles) {
    Require(static_cast<size_t>(idle.cause) < kGpuIdleCauses);
    require_stack(idle.from);
    require_stack(idle.to);
  }
  for (const GpuWait& wait : record.waits) require_stack(wait.stack);
  for (const GpuGap& gap : record.gaps) {
    Require(gap.idle < record.idles.size());
    Require(gap.begin_ns >= 0 && gap.begin_ns <= gap.end_ns && gap.end_ns < 2 * kMaxGpuTime);
  }
  require_text(record.quality.source);
}

void CheckRanges(const RangeRecord& record, const Tables& tables) {
  for (uint32_t i = 0; i < record.ranges.size(); ++i) {
    const NamedRange& range = record.ranges[i];
    Require(range.parent == NamedRange::kNoParent || range.parent < i);
    for (const StringId id : {range.name, range.domain}) {
      Require(ToIndex(id) < tables.string_count());
    }
  }
  for (const RangeOnStream& row : record.streams) Require(row.range < record.ranges.size());
  for (const RangeSpan& span : record.spans) {
    Require(span.range < record.ranges.size() && span.begin_ns >= 0);
    Require(span.begin_ns <= span.end_ns && span.end_ns < 2 * kMaxGpuTime);
  }
}

class CountingOutput final : public write::Output {
 public:
  Result<void> Write(std::string_view bytes) override {
    count_ += bytes.size();
    return {};
  }
  size_t count() const { return count_; }

 private:
  size_t count_ = 0;
};

/// What is made of a file that can be read, in every format and mode.
void ReportAll(const StrobeFile& file) {
  FoldOptions fold;
  fold.include_idle = true;
  fold.work = Work::kBoth;
  const auto profile = Fold(file, fold);
  if (!profile) return;
  for (const Mode mode : {Mode::kWall, Mode::kCpu, Mode::kGil, Mode::kGpu}) {
    FunctionTable(*profile, mode);
  }
  if (file.gpu() != nullptr) {
    Require(!write::WholeQualityLine(file).empty());
    Require(MakeGpuIdleTable(file).rows.size() <= file.gpu()->idles.size());
    static_cast<void>(MakeGpuMeanwhile(file));
  }
  if (file.ranges() != nullptr) {
    Require(MakeRangeTable(*file.ranges()).rows.size() == file.ranges()->ranges.size());
  }
  for (const auto write :
       {write::WriteHtml, write::WriteSpeedscope, write::WritePprof, write::WriteCollapsed,
        write::WriteJson, write::WriteTraceEvents, write::WritePerfetto}) {
    CountingOutput output;
    Require(!write(*profile, {}, output) || output.count() > 0 || write == write::WriteCollapsed);
  }
}

void ReadAll(std::string_view contents) {
  const auto file = testing::OpenStrobe(contents);
  if (!file) {
    Require(!file.error().message.empty());
    return;
  }
  const Tables& tables = (*file)->tables();
  CheckTables(tables);
  if ((*file)->gpu() != nullptr) CheckGpu(*(*file)->gpu(), tables);
  if ((*file)->ranges() != nullptr) CheckRanges(*(*file)->ranges(), tables);
  Require((*file)->quality().complete == (*file)->cut_off().empty());
  const auto read = (*file)->ForEachSample([&](const Sample& sample) {
    Require(ToIndex(sample.thread) < tables.thread_count());
    Require(ToIndex(sample.stack) < tables.stack_count());
  });
  Require(read.has_value() || read.error().code == ErrorCode::kCorrupt);
  const auto called =
      (*file)->ForEachCall([&](ThreadIndex thread, std::span<const CallEvent> calls) {
        Require(ToIndex(thread) < tables.thread_count());
        for (const CallEvent& call : calls) {
          Require(call.time_ns >= 0 && ToIndex(call.stack) < tables.stack_count());
        }
      });
  Require(called.has_value() || called.error().code == ErrorCode::kCorrupt);
  ReportAll(**file);
}

std::string WithChecksums(std::string file) {
  for (size_t begin = kFileHeaderSize; begin + kBlockHeaderSize <= file.size();) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.data() + begin);
    const size_t size =
        kBlockHeaderSize + ParseBlockHeader(ByteSpan(bytes, kBlockHeaderSize)).length;
    if (size > file.size() - begin) break;
    file.replace(begin, size, testing::WithChecksum(file.substr(begin, size)));
    begin += size;
  }
  return file;
}

}  // namespace
}  // namespace pystrobe::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string contents(reinterpret_cast<const char*>(data), size);
  pystrobe::store::ReadAll(contents);
  pystrobe::store::ReadAll(pystrobe::store::WithChecksums(contents));
  return 0;
}
