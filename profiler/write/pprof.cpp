// SPDX-License-Identifier: Apache-2.0
//
// pprof: gzipped protobuf message perftools.profiles.Profile (github.com/google/pprof,
// proto/profile.proto; the field numbers below are its). One sample for each thread and stack, with
// a value for each kind of time, and each stream of a GPU like a thread. Messages go out one by
// one, in the order of their field numbers as pprof's own encoder writes them; ids and string
// indexes are given out as they are met.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "profiler/base/hash_map.h"
#include "profiler/base/wrapping.h"
#include "profiler/write/gpu_labels.h"
#include "profiler/write/gzip.h"
#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/utf8.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

enum ProfileField : uint32_t {
  kProfileSampleType = 1,
  kProfileSample = 2,
  kProfileMapping = 3,
  kProfileLocation = 4,
  kProfileFunction = 5,
  kProfileStringTable = 6,
  kProfileTimeNanos = 9,
  kProfileDurationNanos = 10,
  kProfilePeriodType = 11,
  kProfilePeriod = 12,
  kProfileComment = 13,
  kProfileDefaultSampleType = 14,
};
enum ValueTypeField : uint32_t { kValueTypeType = 1, kValueTypeUnit = 2 };
enum SampleField : uint32_t { kSampleLocationId = 1, kSampleValue = 2, kSampleLabel = 3 };
enum LabelField : uint32_t { kLabelKey = 1, kLabelString = 2, kLabelNumber = 3 };
enum MappingField : uint32_t {
  kMappingId = 1,
  kMappingFileName = 5,
  kMappingHasFunctions = 7,
  kMappingHasFileNames = 8,
  kMappingHasLineNumbers = 9,
  kMappingHasInlineFrames = 10,
};
enum LocationField : uint32_t { kLocationId = 1, kLocationMappingId = 2, kLocationLine = 4 };
enum LineField : uint32_t { kLineFunctionId = 1, kLineLine = 2 };
enum FunctionField : uint32_t {
  kFunctionId = 1,
  kFunctionName = 2,
  kFunctionFileName = 4,
  kFunctionStartLine = 5,
};

constexpr uint64_t kMappingIdOfAll = 1;

// Functions of their own, in place of a stack.
constexpr std::array kNoStack = {kNoPythonFrames, kNotLookedAt};

struct ValueType {
  std::string_view type;
  std::string_view unit;
};
constexpr std::array kSampleTypes = {
    ValueType{"samples", "count"},   ValueType{"wall", "nanoseconds"},
    ValueType{"cpu", "nanoseconds"}, ValueType{"gil", "nanoseconds"},
    ValueType{"gpu", "nanoseconds"}, ValueType{"gpu_works", "count"},
};

// Gives each distinct text its index in the profile's string_table; 0 is the empty string, as the
// format wants it.
class StringTable {
 public:
  StringTable() { Add(""); }
  int64_t Add(std::string_view text) {
    const auto [it, added] =
        indexes_.try_emplace(ValidUtf8(text), static_cast<int64_t>(in_order_.size()));
    if (added) in_order_.push_back(it->first);
    return it->second;
  }
  const std::vector<std::string>& in_order() const { return in_order_; }

 private:
  HashMap<std::string, int64_t> indexes_;
  std::vector<std::string> in_order_;
};

// Turns the dense ids of our tables into pprof's: 1, 2, 3... in the order they are first met.
class IdMap {
 public:
  explicit IdMap(size_t count) : ids_(count) {}
  uint64_t Get(uint32_t index) {
    if (ids_[index] == 0) {
      in_order_.push_back(index);
      ids_[index] = in_order_.size();
    }
    return ids_[index];
  }
  const std::vector<uint32_t>& in_order() const { return in_order_; }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> in_order_;
};

class PprofWriter {
 public:
  PprofWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        gzip_(output),
        out_(gzip_),
        locations_(tables_.frame_count() + kNoStack.size()),
        functions_(tables_.function_count() + kNoStack.size()) {}

  Result<void> Run() {
    for (const ValueType& type : kSampleTypes) {
      if (IsThere(type)) AppendMessage(kProfileSampleType, EncodeValueType(NamedAsHere(type)));
    }
    for (const ThreadProfile& thread : profile_.threads) WriteSamples(thread);
    AppendMessage(kProfileMapping, EncodeMapping());
    WriteLocations();
    WriteFunctions();
    const std::string tail = EncodeTail();  // its strings go into the table, which comes before it
    for (const std::string& text : strings_.in_order()) AppendMessage(kProfileStringTable, text);
    out_.Append(tail);
    if (auto flushed = out_.Finish(); !flushed) return flushed;
    return gzip_.Finish();
  }

 private:
  using Pbf = protozero::pbf_writer;

  // From one past the tables' ids on: those of kNoStack.
  uint32_t FirstNoFrame() const { return static_cast<uint32_t>(tables_.frame_count()); }
  uint32_t FirstNoFunction() const { return static_cast<uint32_t>(tables_.function_count()); }

  void AppendMessage(ProfileField field, const std::string& message) {
    std::string bytes;
    Pbf(bytes).add_message(field, message);
    out_.Append(bytes);
  }

  bool IsThere(const ValueType& type) const {
    if (type.type.starts_with("gpu")) return profile_.with_streams != nullptr;
    if (type.type == "wall") return HasWallTime(metadata());
    if (type.type == "gil") return HasLock(metadata());
    return type.type != "cpu" || profile_.has_cpu_time;
  }
  ValueType NamedAsHere(const ValueType& type) const {
    return HasCalls(metadata()) && type.type == "samples" ? ValueType{"calls", type.unit} : type;
  }
  const Metadata& metadata() const { return profile_.recording->metadata(); }

  std::string EncodeValueType(const ValueType& type) {
    std::string bytes;
    Pbf pbf(bytes);
    pbf.add_int64(kValueTypeType, strings_.Add(type.type));
    pbf.add_int64(kValueTypeUnit, strings_.Add(type.unit));
    return bytes;
  }

  void WriteSamples(const ThreadProfile& thread) {
    const std::string labels = EncodeThreadLabels(tables_.thread(thread.thread));
    std::vector<uint64_t> location_ids;
    for (const StackWeight& entry : thread.stacks) {
      if (!out_.ok()) return;
      if (entry.stack == kEmptyStack) {
        WriteNoStack(0, thread.OutsidePython(), labels);
        WriteNoStack(1, thread.unseen, labels);
        continue;
      }
      location_ids.clear();
      for (StackId id = entry.stack; id != kEmptyStack; id = tables_.stack(id).parent) {
        location_ids.push_back(locations_.Get(ToIndex(tables_.stack(id).frame)));
      }
      WriteSample(location_ids, entry.self, labels, EncodeRegionLabel(entry.stack));
    }
  }

  // `which`: of kNoStack.
  void WriteNoStack(uint32_t which, const Weights& weights, const std::string& labels) {
    if (weights == Weights{}) return;
    WriteSample({locations_.Get(FirstNoFrame() + which)}, weights, labels);
  }

  void WriteSample(const std::vector<uint64_t>& location_ids, const Weights& self,
                   const std::string& labels, const std::string& more_labels = "") {
    const std::array<uint64_t, kSampleTypes.size()> all = {
        self.samples, self.wall_ns, self.cpu_ns, self.gil_ns, self.gpu_ns, self.gpu_count};
    std::vector<uint64_t> values;
    for (size_t i = 0; i < all.size(); ++i) {
      if (IsThere(kSampleTypes[i])) values.push_back(all[i]);
    }
    sample_.clear();
    Pbf pbf(sample_);
    pbf.add_packed_uint64(kSampleLocationId, location_ids.begin(), location_ids.end());
    pbf.add_packed_uint64(kSampleValue, values.begin(), values.end());
    sample_ += labels;
    sample_ += more_labels;
    AppendMessage(kProfileSample, sample_);
  }

  // The same for all samples of a thread: encoded once.
  std::string EncodeThreadLabels(const Thread& thread) {
    std::string labels;
    Pbf sample(labels);
    const auto add_number = [&](std::string_view key, uint64_t number) {
      Pbf label(sample, kSampleLabel);
      label.add_int64(kLabelKey, strings_.Add(key));
      label.add_int64(kLabelNumber, static_cast<int64_t>(number));
    };
    {
      Pbf label(sample, kSampleLabel);
      label.add_int64(kLabelKey, strings_.Add("thread"));
      label.add_int64(kLabelString, strings_.Add(ThreadLabel(thread, tables_)));
    }
    add_number("thread_id", thread.tid);
    if (thread.interpreter != 0) add_number("interpreter", thread.interpreter);
    return labels;
  }

  // Regions one within the other as a path; nothing where there are none.
  std::string EncodeRegionLabel(StackId stack) {
    std::vector<std::string_view> names;
    for (StackId id = stack; id != kEmptyStack; id = tables_.stack(id).parent) {
      const Function& function = tables_.function(tables_.frame(tables_.stack(id).frame).function);
      if (tables_.text(function.file) == kRegionFile) names.push_back(tables_.text(function.name));
    }
    std::ranges::reverse(names);
    const std::string path = fmt::format("{}", fmt::join(names, "/"));
    std::string labels;
    if (path.empty()) return labels;
    Pbf sample(labels);
    Pbf label(sample, kSampleLabel);
    label.add_int64(kLabelKey, strings_.Add("region"));
    label.add_int64(kLabelString, strings_.Add(path));
    return labels;
  }

  // pprof looks for a symbolizer unless the mapping says that everything is known already.
  std::string EncodeMapping() {
    std::string bytes;
    Pbf pbf(bytes);
    pbf.add_uint64(kMappingId, kMappingIdOfAll);
    pbf.add_int64(kMappingFileName, strings_.Add(profile_.recording->metadata().executable));
    pbf.add_bool(kMappingHasFunctions, true);
    pbf.add_bool(kMappingHasFileNames, true);
    pbf.add_bool(kMappingHasLineNumbers, true);
    pbf.add_bool(kMappingHasInlineFrames, true);
    return bytes;
  }

  void WriteLocations() {
    for (const uint32_t index : locations_.in_order()) {
      const Frame frame = index >= FirstNoFrame()
                              ? Frame{FunctionId{FirstNoFunction() + index - FirstNoFrame()}}
                              : tables_.frame(FrameId{index});
      std::string bytes;
      Pbf pbf(bytes);
      pbf.add_uint64(kLocationId, locations_.Get(index));
      pbf.add_uint64(kLocationMappingId, kMappingIdOfAll);
      {
        Pbf line(pbf, kLocationLine);
        line.add_uint64(kLineFunctionId, functions_.Get(ToIndex(frame.function)));
        if (frame.line != 0) line.add_int64(kLineLine, frame.line);
      }
      AppendMessage(kProfileLocation, bytes);
    }
  }

  void WriteFunctions() {
    for (const uint32_t index : functions_.in_order()) {
      const bool none = index >= FirstNoFunction();
      const Function function = none ? Function{} : tables_.function(FunctionId{index});
      const int64_t name = strings_.Add(none ? kNoStack[index - FirstNoFunction()]
                                             : FunctionName(function, tables_));
      std::string bytes;
      Pbf pbf(bytes);
      pbf.add_uint64(kFunctionId, functions_.Get(index));
      // No system_name: pprof would take equal names for mangled C++ and cut `<module>` and
      // `f.<locals>.g` at their brackets.
      pbf.add_int64(kFunctionName, name);
      pbf.add_int64(kFunctionFileName, strings_.Add(tables_.text(function.file)));
      if (function.first_line != 0) pbf.add_int64(kFunctionStartLine, function.first_line);
      AppendMessage(kProfileFunction, bytes);
    }
  }

  std::string EncodeTail() {
    const Metadata& metadata = this->metadata();
    std::string bytes;
    Pbf pbf(bytes);
    pbf.add_int64(kProfileTimeNanos, WrappingAdd(metadata.start_unix_ns, profile_.since_ns));
    pbf.add_int64(kProfileDurationNanos, WrappingSubtract(profile_.until_ns, profile_.since_ns));
    const ValueType period_type{HasWallTime(metadata) ? "wall" : "cpu", "nanoseconds"};
    pbf.add_message(kProfilePeriodType, EncodeValueType(period_type));
    if (metadata.wanted_rate_hz > 0) {
      constexpr double kLongest = 9e18;  // which fits the type
      const double period_ns = std::min(1e9 / metadata.wanted_rate_hz, kLongest);
      pbf.add_int64(kProfilePeriod, static_cast<int64_t>(period_ns));
    }
    std::vector<int64_t> comments = {strings_.Add(Title(metadata, options_)),
                                     strings_.Add(OriginLine(metadata)),
                                     strings_.Add(WholeQualityLine(*profile_.recording))};
    if (profile_.part) comments.push_back(strings_.Add(PartLine(profile_)));
    pbf.add_packed_int64(kProfileComment, comments.begin(), comments.end());
    pbf.add_int64(kProfileDefaultSampleType, strings_.Add(ModeName(options_.mode)));
    return bytes;
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  GzipOutput gzip_;
  OutputBuffer out_;
  StringTable strings_;
  std::string sample_;  // is used again
  IdMap locations_;     // by FrameId
  IdMap functions_;     // by FunctionId
};

}  // namespace

Result<void> WritePprof(const Profile& profile, const WriteOptions& options, Output& output) {
  return PprofWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
