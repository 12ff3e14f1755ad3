// SPDX-License-Identifier: Apache-2.0
#include "profiler/store/recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::store {
namespace {

/// Appends a second's worth of samples of a stack of its own.
void AppendSecond(Recorder& recorder, Tables& tables, int second, std::vector<Sample>& all) {
  const StackId stack = testing::MakeStack(tables, {{"main"}, {"f" + std::to_string(second)}});
  std::vector<Sample> samples;
  for (int i = 1; i <= 1000; ++i) {
    samples.push_back({.time_ns = second * 1'000'000'000LL + i * 1'000'000,
                       .wall_ns = 1'000'000,
                       .cpu_ns = 1'000'000,
                       .thread = ThreadIndex{0},
                       .stack = stack,
                       .flags = kSampleOnCpu});
  }
  all.insert(all.end(), samples.begin(), samples.end());
  ASSERT_TRUE(recorder.Append(tables, samples, {}));
}

std::vector<Sample> ReadBack(ScopedFd recording, const Tables& tables) {
  const auto file = StrobeFile::Open(std::move(recording), "test");
  EXPECT_TRUE(file) << file.error().message;
  if (!file) return {};
  EXPECT_EQ((*file)->cut_off(), "");
  EXPECT_EQ((*file)->metadata().pid, 4711);
  EXPECT_TRUE((*file)->quality().complete);
  EXPECT_EQ((*file)->tables().stack_count(), tables.stack_count());
  std::vector<Sample> samples;
  EXPECT_TRUE((*file)->ForEachSample([&](const Sample& sample) { samples.push_back(sample); }));
  return samples;
}

ino_t InodeOf(int fd) {
  struct stat status{};
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

class RecorderTest : public ::testing::TestWithParam<int> {
 protected:
  /// A file that takes nothing more from now on.
  void FillDisk() { ASSERT_EQ(fcntl(file_, F_ADD_SEALS, F_SEAL_GROW), 0); }

  ScopedFd MakeFile() {
    ScopedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    file_ = fd.get();
    inode_ = InodeOf(file_);
    return fd;
  }

  Metadata metadata_{.pid = 4711};
  Tables tables_;
  std::vector<Sample> all_;
  std::atomic<bool> stop_ = false;
  int file_ = -1;
  ino_t inode_ = 0;
};

TEST_P(RecorderTest, AFullDiskLosesNothing) {
  const int full_after = GetParam();
  testing::MakeThread(tables_, 4711, "MainThread");
  int place = -1;
  Recorder recorder(MakeFile(), "test", stop_, [&](int fd) {
    if (place >= 0) {
      EXPECT_EQ(InodeOf(file_), inode_) << "the old place is there until then";
    }
    place = fd;
  });
  if (full_after < 0) FillDisk();
  ASSERT_TRUE(recorder.Begin(metadata_));
  EXPECT_TRUE(recorder.begun());
  for (int second = 0; second < 8; ++second) {
    if (second == full_after) FillDisk();
    AppendSecond(recorder, tables_, second, all_);
  }
  if (full_after == 8) FillDisk();
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(stop_);
  ScopedFd whole = recorder.TakeFd();
  EXPECT_EQ(place, whole.get()) << "it is told where the recording moved";
  EXPECT_EQ(ReadBack(std::move(whole), tables_), all_);
}

INSTANTIATE_TEST_SUITE_P(AfterSeconds, RecorderTest, ::testing::Values(-1, 0, 1, 2, 5, 8));

// As where samples had to wait until their functions had names.
TEST_F(RecorderTest, AFullDiskLosesNothingOfManySecondsAtOnce) {
  testing::MakeThread(tables_, 4711, "MainThread");
  Recorder recorder(MakeFile(), "test", stop_);
  ASSERT_TRUE(recorder.Begin(metadata_));
  const StackId stack = testing::MakeStack(tables_, {{"main"}});
  for (int i = 1; i <= 1000; ++i) {
    all_.push_back({.time_ns = i * 10'000'000LL,
                    .wall_ns = 10'000'000,
                    .cpu_ns = 10'000'000,
                    .thread = ThreadIndex{0},
                    .stack = stack,
                    .flags = kSampleOnCpu});
  }
  FillDisk();
  ASSERT_TRUE(recorder.Append(tables_, all_, {}));
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(recorder.whole());
  EXPECT_EQ(ReadBack(recorder.TakeFd(), tables_), all_);
}

// No more files may be opened, so there is no memory to move to.
TEST_F(RecorderTest, WhatTheFileHoldsStaysReachableWithoutMemory) {
  testing::MakeThread(tables_, 4711, "MainThread");
  Recorder recorder(MakeFile(), "test", stop_);
  ASSERT_TRUE(recorder.Begin(metadata_));
  for (int second = 0; second < 8; ++second) AppendSecond(recorder, tables_, second, all_);
  EXPECT_TRUE(recorder.whole());
  FillDisk();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(recorder.Finish(tables_, {.complete = true}));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(recorder.whole());
  const auto file = StrobeFile::Open(recorder.TakeFd(), "test");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_FALSE((*file)->quality().complete);
  EXPECT_FALSE(testing::ReadSamples(**file).empty());
}

// A limit of file sizes is memory's too, which has all definitions before the first sample.
TEST_F(RecorderTest, WhereMemoryHoldsLessTheFileIsTheRecording) {
  testing::MakeThread(tables_, 4711, "MainThread");
  int place = -1;
  Recorder recorder(MakeFile(), "test", stop_, [&place](int told) { place = told; });
  ASSERT_TRUE(recorder.Begin(metadata_));
  for (int second = 0; second < 8; ++second) AppendSecond(recorder, tables_, second, all_);
  const off_t size = lseek(file_, 0, SEEK_END);
  for (int i = 0; i < 20'000; ++i) tables_.Intern("unlike the others " + std::to_string(i * i));
  ASSERT_NE(std::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{static_cast<rlim_t>(size), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(recorder.Finish(tables_, {.complete = true}));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_TRUE(recorder.failure());
  EXPECT_FALSE(recorder.whole());
  ScopedFd most = recorder.TakeFd();
  EXPECT_EQ(place, most.get());
  EXPECT_EQ(InodeOf(most.get()), inode_);
  const auto file = StrobeFile::Open(std::move(most), "test");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(testing::ReadSamples(**file).size(), all_.size());
}

// As daemons do, with all descriptors.
TEST_F(RecorderTest, AFileThatTheProgramClosedIsNotWrittenTo) {
  testing::MakeThread(tables_, 4711, "MainThread");
  Recorder recorder(MakeFile(), "test", stop_);
  ASSERT_TRUE(recorder.Begin(metadata_));
  for (int second = 0; second < 20; ++second) AppendSecond(recorder, tables_, second, all_);
  const ScopedFd own(memfd_create("the program's", MFD_CLOEXEC));
  ASSERT_EQ(dup2(own.get(), file_), file_);
  for (int second = 20; second < 30; ++second) AppendSecond(recorder, tables_, second, all_);
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_EQ(lseek(own.get(), 0, SEEK_END), 0);
  ASSERT_TRUE(recorder.failure());
  EXPECT_EQ(recorder.failure()->message, "writing test: the program has closed its file");
  EXPECT_TRUE(stop_);
  // Of before there are the youngest.
  EXPECT_FALSE(recorder.whole());
  const auto kept = ReadBack(recorder.TakeFd(), tables_);
  ASSERT_GT(kept.size(), 12'000U);
  EXPECT_EQ(kept.back(), all_.back());
  EXPECT_TRUE(std::equal(kept.rbegin(), kept.rend(), all_.rbegin()));
  close(file_);
}

TEST_F(RecorderTest, AFileThatTheProgramClosedAtOnceIsNotMissed) {
  testing::MakeThread(tables_, 4711, "MainThread");
  Recorder recorder(MakeFile(), "test", stop_);
  ASSERT_TRUE(recorder.Begin(metadata_));
  close(file_);
  for (int second = 0; second < 5; ++second) AppendSecond(recorder, tables_, second, all_);
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_TRUE(recorder.failure());
  EXPECT_TRUE(recorder.whole());
  EXPECT_EQ(ReadBack(recorder.TakeFd(), tables_), all_);
}

TEST_F(RecorderTest, OldContentsStayUntilItBegins) {
  ScopedFd fd = MakeFile();
  const int number = fd.get();
  const std::string old(100'000, 'x');
  ASSERT_EQ(::write(number, old.data(), old.size()), static_cast<ssize_t>(old.size()));
  ASSERT_EQ(lseek(number, 0, SEEK_SET), 0);
  int place = -1;
  Recorder recorder(std::move(fd), "test", stop_, [&place](int told) { place = told; });
  EXPECT_FALSE(recorder.begun());
  EXPECT_EQ(lseek(number, 0, SEEK_END), static_cast<off_t>(old.size()));
  ASSERT_EQ(lseek(number, 0, SEEK_SET), 0);
  ASSERT_TRUE(recorder.Begin(metadata_));
  EXPECT_EQ(place, number);
  EXPECT_TRUE(recorder.begun());
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_TRUE(ReadBack(recorder.TakeFd(), tables_).empty());
}

TEST_F(RecorderTest, AFileThatTookNothingIsNotTold) {
  std::vector<int> places;
  Recorder recorder(MakeFile(), "test", stop_, [&places](int fd) { places.push_back(fd); });
  FillDisk();
  ASSERT_TRUE(recorder.Begin(metadata_));
  EXPECT_TRUE(recorder.failure());
  EXPECT_EQ(places, std::vector{recorder.TakeFd().get()});
}

TEST_F(RecorderTest, NothingHappensWhileThereIsRoom) {
  testing::MakeThread(tables_, 4711, "MainThread");
  Recorder recorder(MakeFile(), "test", stop_);
  ASSERT_TRUE(recorder.Begin(metadata_));
  for (int second = 0; second < 3; ++second) AppendSecond(recorder, tables_, second, all_);
  ASSERT_TRUE(recorder.Finish(tables_, {.complete = true}));
  EXPECT_FALSE(recorder.failure());
  EXPECT_FALSE(stop_);
  EXPECT_EQ(ReadBack(recorder.TakeFd(), tables_), all_);
}

}  // namespace
}  // namespace pystrobe::store
