// SPDX-License-Identifier: Apache-2.0
#include "cli/present.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "profiler/base/scoped_fd.h"
#include "tests/cpp/support/memory_recording.h"
#include "tests/cpp/support/strobe_bytes.h"

namespace pystrobe::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr int64_t kSecond = 1'000'000'000;

/// A thread that works and one that waits, for a second.
class WorkAndWait {
 public:
  Result<void> WriteTo(RecordingSink& sink) const {
    Tables tables;
    const ThreadIndex worker = testing::MakeThread(tables, 7, "worker");
    const ThreadIndex waiter = testing::MakeThread(tables, 8, "waiter");
    const StackId work = testing::MakeStack(tables, {{"work"}});
    const StackId wait = testing::MakeStack(tables, {{"wait_for_work"}});
    const std::vector<Sample> samples = {{.time_ns = kSecond,
                                          .wall_ns = kSecond,
                                          .cpu_ns = kSecond,
                                          .thread = worker,
                                          .stack = work,
                                          .count = 1000,
                                          .flags = kSampleOnCpu},
                                         {.time_ns = kSecond,
                                          .wall_ns = kSecond,
                                          .cpu_ns = 0,
                                          .thread = waiter,
                                          .stack = wait,
                                          .count = 1000,
                                          .flags = kSampleIdle}};
    Quality quality;
    quality.duration_ns = kSecond;
    if (auto begun = sink.Begin({}); !begun) return begun;
    if (auto taken = sink.Append(tables, samples, quality); !taken) return taken;
    return sink.Finish(tables, quality);
  }
};

class PresentTest : public ::testing::Test {
 protected:
  PresentTest() {
    std::string pattern = fs::temp_directory_path() / "present_test.XXXXXX";
    directory_ = mkdtemp(pattern.data());
    ScopedFd file = testing::MakeFile(testing::ToStrobe(WorkAndWait()));
    file_ = ScopedFd(::dup(file.get()));
    recording_ = *store::StrobeFile::Open(std::move(file), "test.strobe");
    options_.table = false;
  }
  ~PresentTest() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }

  OutputFile Open(const std::string& name, write::Format format) const {
    return *OutputFile::Open({Path(name), format}, false, std::nullopt);
  }

  fs::path directory_;
  ScopedFd file_;
  std::unique_ptr<store::StrobeFile> recording_;
  PresentOptions options_;
};

TEST_F(PresentTest, OnlyThePageHasIdleThreads) {
  std::vector<OutputFile> outputs;
  outputs.push_back(Open("a.html", write::Format::kHtml));
  outputs.push_back(Open("a.collapsed", write::Format::kCollapsed));
  CaptureStderr();
  EXPECT_TRUE(Present(*recording_, outputs, options_));
  EXPECT_THAT(GetCapturedStderr(), AllOf(HasSubstr("a.html"), HasSubstr("a.collapsed")));
  const auto contents = [&](const char* name) {
    return testing::Contents(ScopedFd(open(Path(name).c_str(), O_RDONLY | O_CLOEXEC)));
  };
  EXPECT_THAT(contents("a.html"), HasSubstr("wait_for_work"));
  EXPECT_THAT(contents("a.collapsed"), AllOf(HasSubstr("work"), Not(HasSubstr("wait_for_work"))));
}

TEST_F(PresentTest, SaysThatTheQualityIsOfMoreThanThePartShown) {
  options_.table = true;
  const auto printed = [&] {
    const ScopedFd file = testing::MakeFile("");
    options_.table_fd = file.get();
    std::vector<OutputFile> no_outputs;
    EXPECT_TRUE(Present(*recording_, no_outputs, options_));
    return testing::Contents(file);
  };
  EXPECT_THAT(printed(), HasSubstr("\nQuality: "));
  options_.view.since_ns = kSecond / 2;
  EXPECT_THAT(printed(), HasSubstr("\nQuality of the whole recording: "));
}

// The first output is a full pipe: while Present waits for its reader, the recording is lost.
TEST_F(PresentTest, APageThatCannotBeFoldedFailsAndIsNotWrittenWithoutIdleThreads) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const ScopedFd reader(open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::vector<OutputFile> outputs;
  outputs.push_back(Open("pipe", write::Format::kCollapsed));
  outputs.push_back(Open("b.html", write::Format::kHtml));
  outputs.push_back(Open("b.collapsed", write::Format::kCollapsed));
  options_.table = true;
  int table[2];
  ASSERT_EQ(pipe2(table, O_CLOEXEC), 0);
  const ScopedFd table_reader(table[0]), table_writer(table[1]);
  options_.table_fd = table_writer.get();
  const ScopedFd filler(open(Path("pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string page(4096, '.');
  while (::write(filler.get(), page.data(), page.size()) > 0) continue;

  std::thread reads([&] {
    std::string bytes(4096, '\0');
    // There is a table, so the first fold is done.
    EXPECT_GT(::read(table_reader.get(), bytes.data(), bytes.size()), 0);
    EXPECT_EQ(ftruncate(file_.get(), 100), 0);
    while (::read(reader.get(), bytes.data(), bytes.size()) > 0) continue;
  });
  CaptureStderr();
  const bool all_written = Present(*recording_, outputs, options_);
  const std::string said = GetCapturedStderr();
  reads.join();
  outputs.clear();

  EXPECT_FALSE(all_written);
  EXPECT_THAT(said, AllOf(HasSubstr(Path("b.html") + ": "), HasSubstr("wrote " + Path("pipe")),
                          HasSubstr("wrote " + Path("b.collapsed"))));
  EXPECT_FALSE(fs::exists(Path("b.html")));
  EXPECT_TRUE(fs::exists(Path("b.collapsed")));
}

}  // namespace
}  // namespace pystrobe::cli
