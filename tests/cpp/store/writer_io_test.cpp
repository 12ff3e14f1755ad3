// SPDX-License-Identifier: Apache-2.0
//
// Outputs that fail, stall or take little at a time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "profiler/store/strobe.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/random_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OpenStrobe;
using testing::RandomRecording;
using testing::ReadSamples;
using testing::ToStrobe;

struct Pipe {
  ScopedFd reading;
  ScopedFd writing;
};

Pipe MakePipe(int flags = 0) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC | flags), 0);
  return {ScopedFd(ends[0]), ScopedFd(ends[1])};
}

TEST(WriterIo, AFullDiskIsAnError) {
  StrobeWriter writer(ScopedFd(::open("/dev/full", O_WRONLY | O_CLOEXEC)), "out.strobe");
  const Result<void> begun = writer.Begin({});
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, ErrorCode::kIo);
  EXPECT_THAT(begun.error().message, HasSubstr("out.strobe: No space left on device"));
}

TEST(WriterIo, AClosedPipeIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  Pipe pipe = MakePipe();
  pipe.reading.reset();
  StrobeWriter writer(std::move(pipe.writing), "pipe");
  const Result<void> begun = writer.Begin({});
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, ErrorCode::kIo);
  EXPECT_THAT(begun.error().message, HasSubstr("Broken pipe"));
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0) << "nor is one left behind";
}

TEST(WriterIo, WhatWasWrittenBeforeAnErrorStaysReadable) {
  // The file may grow to a size inside the third block.
  const std::string whole = ToStrobe(RandomRecording(5, {}));
  ASSERT_NE(std::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = whole.size() / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  StrobeWriter writer(testing::MakeFile(""), "out.strobe");
  const Result<void> written = RandomRecording(5, {}).WriteTo(writer);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);

  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  const std::string kept = testing::Contents(writer.TakeFd());
  EXPECT_EQ(kept.size(), whole.size() / 2);
  const auto file = OpenStrobe(kept);
  ASSERT_TRUE(file.has_value());
  const std::vector<Sample> samples = ReadSamples(**file);
  const std::vector<Sample> all = ReadSamples(**OpenStrobe(whole));
  EXPECT_GT(samples.size(), 0U);
  EXPECT_TRUE(std::equal(samples.begin(), samples.end(), all.begin()));
}

TEST(WriterIo, AfterAnErrorItStaysFailed) {
  Pipe pipe = MakePipe();
  StrobeWriter writer(std::move(pipe.writing), "pipe");
  ASSERT_TRUE(writer.Begin({}).has_value());
  pipe.reading.reset();
  Tables tables;
  const Sample sample{.time_ns = 2'000'000'000, .thread = testing::MakeThread(tables, 1, "")};
  const Result<void> first = writer.Append(tables, std::span(&sample, 1), {});
  const Result<void> second = writer.Finish(tables, {});
  ASSERT_FALSE(first.has_value());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(first.error().message, second.error().message);
}

/// Writes a recording into a pipe of one page, read in small pieces with signals in between.
void ExpectWholeThroughPipe(int flags) {
  struct sigaction action{};
  action.sa_handler = [](int) {};  // no SA_RESTART: write() fails with EINTR
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  Pipe pipe = MakePipe(flags);
  ASSERT_GE(::fcntl(pipe.writing.get(), F_SETPIPE_SZ, 4096), 4096);
  ASSERT_EQ(::fcntl(pipe.reading.get(), F_SETFL, 0), 0);
  const pthread_t writing_thread = ::pthread_self();
  std::string received;
  std::jthread reader([&] {
    char piece[1000];
    for (;;) {
      ::pthread_kill(writing_thread, SIGUSR1);
      const ssize_t got = ::read(pipe.reading.get(), piece, sizeof piece);
      if (got <= 0) return;
      received.append(piece, static_cast<size_t>(got));
    }
  });
  {
    StrobeWriter writer(std::move(pipe.writing), "pipe");
    const Result<void> written = RandomRecording(6, {}).WriteTo(writer);
    ASSERT_TRUE(written.has_value()) << written.error().message;
  }
  reader.join();
  EXPECT_EQ(received, ToStrobe(RandomRecording(6, {})));
}

// Which takes as much room as all other figures.
TEST(WriterIo, HowLongThreadsWereHeldIsWrittenEveryTenSecondsAndAtTheEnd) {
  constexpr int64_t kSecond = 1'000'000'000;
  ScopedFd fd(::memfd_create("test", MFD_CLOEXEC));
  const int file = fd.get();
  const auto count_told = [file] {
    const auto read = StrobeFile::Open(ScopedFd(::fcntl(file, F_DUPFD_CLOEXEC, 3)), "test");
    return read.has_value() ? (*read)->quality().held_each.count() : 0;
  };
  StrobeWriter writer(std::move(fd), "test");
  ASSERT_TRUE(writer.Begin({}));
  Tables tables;
  const ThreadIndex thread = testing::MakeThread(tables, 1, "MainThread");
  Quality quality{.limited_ns = 0};
  std::vector<uint64_t> told;
  for (int64_t i = 1; i <= 7; ++i) {
    quality.duration_ns = 2 * i * kSecond;
    quality.held_each.Add(5'000);
    const Sample sample{.time_ns = quality.duration_ns, .wall_ns = 2 * kSecond, .thread = thread};
    ASSERT_TRUE(writer.Append(tables, std::span(&sample, 1), quality));
    told.push_back(count_told());
  }
  EXPECT_THAT(told, ElementsAre(1, 1, 1, 1, 1, 6, 6));
  ASSERT_TRUE(writer.Finish(tables, quality));
  EXPECT_EQ(count_told(), 7U);
}

TEST(WriterIo, ShortWritesAndSignalsLoseNothing) { ExpectWholeThroughPipe(0); }

TEST(WriterIo, ANonBlockingPipeIsWaitedFor) { ExpectWholeThroughPipe(O_NONBLOCK); }

}  // namespace
}  // namespace pystrobe::store
