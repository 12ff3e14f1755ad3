// SPDX-License-Identifier: Apache-2.0
//
// The calls of a timeline, written and read.
#include "profiler/store/calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <random>

#include "profiler/store/recorder.h"
#include "profiler/store/strobe.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using testing::Contents;
using testing::MakeFile;
using testing::MakeFrame;
using testing::MakeThread;
using testing::MemoryRecording;
using testing::OpenStrobe;

using Calls = std::map<ThreadIndex, std::vector<CallEvent>>;

Calls ReadCalls(const RecordingSource& source) {
  Calls calls;
  const auto read = source.ForEachCall([&](ThreadIndex thread, std::span<const CallEvent> some) {
    auto& all = calls[thread];
    all.insert(all.end(), some.begin(), some.end());
  });
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
  return calls;
}

/// Threads that call each other's functions, in batches as they come.
class RandomCalls {
 public:
  RandomCalls(unsigned seed, uint32_t threads) : random_(seed), open_(threads), time_(threads) {
    for (uint32_t i = 0; i < threads; ++i) MakeThread(tables_, 100 + i, "");
  }

  Result<void> AppendTo(TimelineSink& sink, size_t events) {
    const auto thread = static_cast<uint32_t>(Below(open_.size()));
    std::vector<CallEvent> batch;
    for (size_t i = 0; i < events; ++i) batch.push_back(Next(thread));
    auto& all = calls[ThreadIndex{thread}];
    all.insert(all.end(), batch.begin(), batch.end());
    return sink.AppendCalls(tables_, ThreadIndex{thread}, batch);
  }

  const Tables& tables() const { return tables_; }
  Calls calls;

 private:
  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_);
  }

  CallEvent Next(uint32_t thread) {
    StackId& stack = open_[thread];
    if (stack != kEmptyStack && Below(2) == 0) {
      stack = tables_.stack(stack).parent;
    } else {
      const auto line = static_cast<uint32_t>(Below(Below(4) == 0 ? 100 : 3));
      stack = tables_.Push(stack, MakeFrame(tables_, {"f", line, "f.py", line}));
    }
    time_[thread] += static_cast<int64_t>(Below(Below(50) == 0 ? 1'000'000 : 100));
    return {time_[thread], stack};
  }

  std::mt19937 random_;
  Tables tables_;
  std::vector<StackId> open_;
  std::vector<int64_t> time_;
};

TEST(StoredCalls, AreReadAsTheyWereWritten) {
  StrobeWriter writer(MakeFile(""), "test.strobe");
  RandomCalls calls(1, 3);
  ASSERT_TRUE(writer.Begin({}));
  // Of several blocks, one batch of more than a block holds.
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(calls.AppendTo(writer, 5'000));
  ASSERT_TRUE(calls.AppendTo(writer, 2 * kMaxCallEventsPerBlock));
  ASSERT_TRUE(writer.Finish(calls.tables(), {}));
  const auto file = OpenStrobe(Contents(writer.TakeFd()));
  ASSERT_TRUE(file);
  EXPECT_TRUE(ReadCalls(**file) == calls.calls);
  EXPECT_EQ((*file)->tables().stack_count(), calls.tables().stack_count());
}

TEST(StoredCalls, StandBesideSamples) {
  StrobeWriter writer(MakeFile(""), "test.strobe");
  RandomCalls calls(2, 1);
  ASSERT_TRUE(writer.Begin({}));
  ASSERT_TRUE(calls.AppendTo(writer, 100));
  const std::vector<Sample> samples = {{.time_ns = 5000, .wall_ns = 5000, .stack = StackId{1}}};
  ASSERT_TRUE(writer.Append(calls.tables(), samples, {}));
  ASSERT_TRUE(calls.AppendTo(writer, 100));
  ASSERT_TRUE(writer.Finish(calls.tables(), {}));
  const auto file = OpenStrobe(Contents(writer.TakeFd()));
  ASSERT_TRUE(file);
  EXPECT_TRUE(ReadCalls(**file) == calls.calls);
  EXPECT_EQ(testing::ReadSamples(**file), samples);
}

TEST(StoredCalls, OfAFileThatWasCutOffAreThereUpToThat) {
  StrobeWriter writer(MakeFile(""), "test.strobe");
  RandomCalls calls(3, 1);
  ASSERT_TRUE(writer.Begin({}));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(calls.AppendTo(writer, kMaxCallEventsPerBlock));
  const std::string contents = Contents(writer.TakeFd());
  const auto file = OpenStrobe(std::string_view(contents).substr(0, contents.size() - 1));
  ASSERT_TRUE(file);
  EXPECT_FALSE((*file)->quality().complete);
  auto& expected = calls.calls[ThreadIndex{}];
  expected.resize(2 * kMaxCallEventsPerBlock);
  EXPECT_TRUE(ReadCalls(**file) == calls.calls);
}

/// A block of calls in a recording of a thread with the stacks 0 to 2, each on the one before.
Result<void> ReadColumns(CallColumns columns) {
  Tables tables;
  MakeThread(tables, 1, "MainThread");
  testing::MakeStack(tables, {{"outer"}, {"inner"}});
  BlockPacker packer;
  const auto block = packer.Pack(BlockType::kCalls, columns);
  EXPECT_TRUE(block);
  BlockUnpacker unpacker;
  EXPECT_TRUE(unpacker.Unpack(block->subspan(kBlockHeaderSize)));
  return CallDecoder(tables).Decode(unpacker, [](ThreadIndex, std::span<const CallEvent>) {});
}

TEST(StoredCalls, GoOneLevelAtATime) {
  const Bytes one = {0, 1}, two = {0, 2};  // of thread 0 so many events
  const auto to = [](int64_t distance) { return static_cast<uint8_t>(ZigZag(distance)); };
  EXPECT_TRUE(ReadColumns({one, {kCallsOther}, {to(1)}, {5}}));
  EXPECT_TRUE(ReadColumns({two, {kCallsOther, kCallReturns}, {to(1)}, {5, 5}}));
  EXPECT_FALSE(ReadColumns({one, {kCallsOther}, {to(2)}, {5}})) << "two levels";
  EXPECT_FALSE(ReadColumns({one, {kCallsOther}, {to(0)}, {5}})) << "where it is";
  EXPECT_FALSE(ReadColumns({one, {kCallsOther}, {to(7)}, {5}})) << "no stack";
  EXPECT_FALSE(ReadColumns({one, {kCallReturns}, {}, {5}})) << "from where nothing is open";
  EXPECT_FALSE(ReadColumns({one, {kCallsAgain}, {}, {5}})) << "none was entered before";
  EXPECT_FALSE(ReadColumns({one, {3}, {to(1)}, {5}})) << "no move";
  EXPECT_FALSE(ReadColumns({two, {kCallsOther}, {to(1)}, {5}})) << "an event that lacks";
  EXPECT_FALSE(ReadColumns({one, {kCallsOther}, {to(1)}, {}})) << "a time that lacks";
}

TEST(StoredCalls, OfAFibonacciTakeLittleRoom) {
  StrobeWriter writer(MakeFile(""), "test.strobe");
  MemoryRecording definitions;
  Tables tables;
  const ThreadIndex thread = MakeThread(tables, 1, "MainThread");
  std::mt19937 random(4);
  std::normal_distribution<double> ticks(45, 12);
  std::vector<CallEvent> calls;
  int64_t now = 0;
  const auto add = [&](StackId stack) {
    now += std::max(10, static_cast<int>(ticks(random)));
    calls.push_back({now, stack});
  };
  const auto fib = [&](const auto& self, StackId from, int n) -> void {
    const StackId here = tables.Push(from, MakeFrame(tables, {"fib", 1, "fib.py", 1}));
    add(here);
    if (n > 1) {
      self(self, here, n - 1);
      self(self, here, n - 2);
    }
    add(from);
  };
  fib(fib, kEmptyStack, 24);
  ASSERT_TRUE(writer.Begin({}));
  ASSERT_TRUE(writer.AppendCalls(tables, thread, calls));
  ASSERT_TRUE(writer.Finish(tables, {}));
  const double bytes = static_cast<double>(Contents(writer.TakeFd()).size());
  EXPECT_LT(bytes / (static_cast<double>(calls.size()) / 2), 4.0);
}

TEST(RecordedCalls, AreKeptNoMoreOnceTheFileIsFull) {
  std::atomic<bool> stop{false};
  // A descriptor for reading only takes nothing.
  ScopedFd full(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Recorder recorder(std::move(full), "test.strobe", stop);
  RandomCalls calls(5, 1);
  ASSERT_TRUE(recorder.Begin({.timeline = true}));
  EXPECT_FALSE(calls.AppendTo(recorder, 2 * kMaxCallEventsPerBlock));
  const std::vector<Sample> samples = {{.time_ns = 5000, .wall_ns = 5000, .stack = StackId{1}}};
  ASSERT_TRUE(recorder.Append(calls.tables(), samples, {}));
  ASSERT_TRUE(recorder.Finish(calls.tables(), {}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(recorder.whole()) << "but for what the quality tells";
  const auto file = OpenStrobe(Contents(recorder.TakeFd()));
  ASSERT_TRUE(file);
  EXPECT_FALSE((*file)->metadata().timeline);
  EXPECT_EQ(testing::ReadSamples(**file), samples);
}

/// A disk that others have filled: what the file has it keeps, and it takes no more.
void Fill(int fd) { ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0); }

class CallsOnAFullDisk : public ::testing::TestWithParam<int> {
 protected:
  CallsOnAFullDisk() : fd_(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    file_ = fd_.get();
    MakeThread(tables_, 100, "");
  }
  /// Some of them a block, each batch of calls of a function of its own.
  void Append(TimelineSink& sink, int batches, bool must_be_taken) {
    for (int i = 0; i < batches; ++i) {
      const FrameId frame = MakeFrame(tables_, {"f" + std::to_string(all_.size())});
      const StackId stack = tables_.Push(kEmptyStack, frame);
      std::vector<CallEvent> batch;
      while (batch.size() < kMaxCallEventsPerBlock / 5) {
        // Irregular, so that they take room.
        batch.push_back({time_ns_ += static_cast<int64_t>(random_() % 1000), stack});
        batch.push_back({time_ns_ += static_cast<int64_t>(random_() % 1000), kEmptyStack});
      }
      all_.insert(all_.end(), batch.begin(), batch.end());
      const bool taken = sink.AppendCalls(tables_, ThreadIndex{0}, batch).has_value();
      ASSERT_TRUE(taken || !must_be_taken);
      taken_ = taken_ && taken;
    }
  }
  /// One for each stack.
  std::vector<Sample> Samples() const {
    std::vector<Sample> samples;
    for (uint32_t i = 1; i < tables_.stack_count(); ++i) {
      samples.push_back({.time_ns = i * 1000, .wall_ns = 1000, .stack = StackId{i}});
    }
    return samples;
  }

  ScopedFd fd_;
  int file_ = -1;
  bool taken_ = true;
  std::atomic<bool> stop_{false};
  std::mt19937 random_{4};
  Tables tables_;
  std::vector<CallEvent> all_;
  int64_t time_ns_ = 0;
};

TEST_P(CallsOnAFullDisk, MakeRoomForAllElse) {
  Recorder recorder(std::move(fd_), "test", stop_);
  ASSERT_TRUE(recorder.Begin({.timeline = true}));
  Append(recorder, GetParam(), true);
  Fill(file_);
  // Until the end nothing need be written.
  if (GetParam() % 2 == 0) Append(recorder, 20, false);
  EXPECT_EQ(taken_, GetParam() % 2 != 0);
  const std::vector<Sample> samples = Samples();
  ASSERT_TRUE(recorder.Append(tables_, samples, {}));
  ASSERT_TRUE(recorder.Finish(tables_, {.duration_ns = 7, .limited_ns = 0}));
  EXPECT_FALSE(recorder.failure()) << "it has not moved";
  EXPECT_TRUE(recorder.whole());
  const auto file = StrobeFile::Open(recorder.TakeFd(), "test");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_EQ(testing::ReadSamples(**file), samples);
  EXPECT_EQ((*file)->tables().stack_count(), tables_.stack_count());

  const Quality& quality = (*file)->quality();
  EXPECT_TRUE(quality.complete);
  EXPECT_EQ(quality.duration_ns, 7);
  EXPECT_EQ(quality.timeline_failure, "writing test: Operation not permitted");
  const std::vector<CallEvent> kept = ReadCalls(**file)[ThreadIndex{}];
  EXPECT_GT(kept.size(), 0U);
  ASSERT_LT(kept.size(), all_.size());
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), all_.begin()));
  EXPECT_EQ(quality.timeline_end_ns, all_[kept.size()].time_ns);
}

INSTANTIATE_TEST_SUITE_P(AfterBatches, CallsOnAFullDisk, ::testing::Values(12, 13, 14, 27, 40));

TEST_F(CallsOnAFullDisk, AreNotThereWhereNothingIs) {
  Recorder recorder(std::move(fd_), "test", stop_);
  ASSERT_TRUE(recorder.Begin({.timeline = true}));
  Fill(file_);
  Append(recorder, 20, false);
  EXPECT_FALSE(taken_);
  const std::vector<Sample> samples = Samples();
  ASSERT_TRUE(recorder.Append(tables_, samples, {}));
  ASSERT_TRUE(recorder.Finish(tables_, {.limited_ns = 0}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(recorder.whole()) << "but for what the quality tells";
  const auto file = StrobeFile::Open(recorder.TakeFd(), "memory");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE((*file)->metadata().timeline);
  EXPECT_EQ(testing::ReadSamples(**file), samples);
  EXPECT_EQ((*file)->quality().timeline_failure, "writing test: Operation not permitted");
  EXPECT_EQ((*file)->quality().timeline_end_ns, 0);
}

// One that waits in a call hands over late what it did before.
TEST_F(CallsOnAFullDisk, AreWholeUpToTheEarliestThatIsNotKept) {
  const ThreadIndex late = MakeThread(tables_, 101, "");
  const StackId stack = tables_.Push(kEmptyStack, MakeFrame(tables_, {"late"}));
  const std::vector<CallEvent> calls = {{1'000, stack}, {2'000, kEmptyStack}};
  for (const bool is_kept : {true, false}) {
    ScopedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int file = fd.get();
    Recorder recorder(std::move(fd), "test", stop_);
    ASSERT_TRUE(recorder.Begin({.timeline = true}));
    Append(recorder, 14, true);
    EXPECT_TRUE(!is_kept || recorder.AppendCalls(tables_, late, calls).has_value());
    Fill(file);
    Append(recorder, 20, false);
    EXPECT_FALSE(!is_kept && recorder.AppendCalls(tables_, late, calls).has_value());
    ASSERT_TRUE(recorder.Append(tables_, {}, {}));
    ASSERT_TRUE(recorder.Finish(tables_, {}));
    const auto read = StrobeFile::Open(recorder.TakeFd(), "test");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ((*read)->quality().timeline_end_ns, 1'000);
    EXPECT_EQ(ReadCalls(**read)[late].size(), 0U);
  }
}

}  // namespace
}  // namespace pystrobe::store
