// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace pystrobe::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() {
    std::string pattern = fs::temp_directory_path() / "output_file_test.XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~OutputFileTest() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }

  Result<OutputFile> Open(const std::string& name, bool force = false) const {
    return OutputFile::Open({Path(name), write::Format::kJson}, force, std::nullopt);
  }

  std::string Contents(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(Path(name)).rdbuf();
    return out.str();
  }

  void Make(const std::string& name, const std::string& contents) const {
    std::ofstream(Path(name)) << contents;
  }

  /// Files, whatever their names.
  long Count() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }

  fs::path directory_;
};

TEST_F(OutputFileTest, FillsANewFile) {
  {
    auto file = Open("new.json");
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("hello"); }));
  }
  EXPECT_EQ(Contents("new.json"), "hello");
}

TEST_F(OutputFileTest, ManySmallAndBigWritesArriveInOrder) {
  std::string expected;
  {
    auto file = Open("big.json");
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->Fill([&](write::Output& output) -> Result<void> {
      for (size_t size : {1u, 70'000u, 10u, 60'000u, 6'000u, 65'536u, 0u, 3u}) {
        const std::string piece(size, static_cast<char>('a' + size % 26));
        expected += piece;
        if (auto written = output.Write(piece); !written) return written;
      }
      return {};
    }));
  }
  EXPECT_EQ(Contents("big.json"), expected);
}

TEST_F(OutputFileTest, LeavesNoFileWhenNothingCameOfIt) {
  ASSERT_TRUE(Open("none.json"));
  EXPECT_FALSE(fs::exists(Path("none.json")));
}

TEST_F(OutputFileTest, RefusesAnExistingFileAndKeepsIt) {
  Make("old.json", "precious");
  const auto file = Open("old.json");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kExists);
  EXPECT_THAT(file.error().message, HasSubstr("old.json"));
  EXPECT_THAT(file.error().hint, HasSubstr("--force"));
  EXPECT_EQ(Contents("old.json"), "precious");
}

TEST_F(OutputFileTest, ForceKeepsTheOldContentsUntilSomethingIsWritten) {
  Make("old.json", "precious and long");
  ASSERT_TRUE(Open("old.json", true));
  EXPECT_EQ(Contents("old.json"), "precious and long");
  auto file = Open("old.json", true);
  EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("new"); }));
  EXPECT_EQ(Contents("old.json"), "new");
}

TEST_F(OutputFileTest, NamesAMissingDirectory) {
  const auto file = Open("no/such/x.json");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("there is no directory"));
  EXPECT_THAT(file.error().hint, HasSubstr("mkdir -p"));
}

TEST_F(OutputFileTest, RefusesADirectory) {
  const auto file = Open("", true);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("directory"));
}

TEST_F(OutputFileTest, AFullDeviceIsReported) {
  auto file = OutputFile::Open({"/dev/full", write::Format::kJson}, false, std::nullopt);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->is_regular());
  const auto filled = file->Fill([](write::Output& output) { return output.Write("hello"); });
  ASSERT_FALSE(filled);
  EXPECT_EQ(filled.error().code, ErrorCode::kIo);
  EXPECT_THAT(filled.error().message, HasSubstr("/dev/full"));
  EXPECT_THAT(filled.error().message, HasSubstr("No space left"));
}

TEST_F(OutputFileTest, AFailedWriterLeavesNoHalfFile) {
  auto file = Open("half.json");
  ASSERT_TRUE(file);
  const auto filled = file->Fill([](write::Output& output) -> Result<void> {
    (void)output.Write(std::string(100'000, 'x'));
    return Fail(ErrorCode::kInvalidArgument, "no");
  });
  EXPECT_FALSE(filled);
  EXPECT_FALSE(fs::exists(Path("half.json")));
}

TEST_F(OutputFileTest, AFailedWriterLeavesOldContents) {
  Make("old.json", "old");
  auto file = Open("old.json", true);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->Fill([&](write::Output& output) -> Result<void> {
    (void)output.Write(std::string(100'000, 'x'));
    EXPECT_EQ(Contents("old.json"), "old");
    return Fail(ErrorCode::kInvalidArgument, "no");
  }));
  EXPECT_EQ(Contents("old.json"), "old");
  EXPECT_EQ(Count(), 1);
}

TEST_F(OutputFileTest, ALinkedFileIsReplacedWhereItIs) {
  Make("old.json", "old");
  fs::permissions(Path("old.json"), fs::perms(0640));
  fs::create_symlink("old.json", Path("link.json"));
  auto file = Open("link.json", true);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("new"); }));
  EXPECT_TRUE(fs::is_symlink(Path("link.json")));
  EXPECT_EQ(Contents("old.json"), "new");
  EXPECT_EQ(fs::status(Path("old.json")).permissions(), fs::perms(0640));
  EXPECT_EQ(Count(), 2);
}

TEST_F(OutputFileTest, AFileOfTwoNamesStaysOne) {
  Make("old.json", "older and longer");
  fs::create_hard_link(Path("old.json"), Path("other.json"));
  auto file = Open("old.json", true);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("new"); }));
  EXPECT_EQ(Contents("other.json"), "new");
  EXPECT_EQ(Count(), 2);
}

TEST_F(OutputFileTest, AFileThatWasRemovedIsMadeAgain) {
  auto file = Open("new.json");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->FindPlace(), Place::kOurs);
  fs::remove(Path("new.json"));
  EXPECT_EQ(file->FindPlace(), Place::kNothing);
  EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("new"); }));
  EXPECT_EQ(Contents("new.json"), "new");
}

TEST_F(OutputFileTest, ADirectoryThatWasRemovedIsReported) {
  fs::create_directory(Path("gone"));
  auto file = Open("gone/new.json");
  ASSERT_TRUE(file);
  fs::remove_all(Path("gone"));
  const auto filled = file->Fill([](write::Output& output) { return output.Write("new"); });
  ASSERT_FALSE(filled);
  EXPECT_THAT(filled.error().message, HasSubstr("removed"));
}

TEST_F(OutputFileTest, GivingUpLeavesOldContents) {
  Make("old.json", "old");
  auto file = Open("old.json", true);
  EXPECT_TRUE(file->Fill([](write::Output& output) {
    (void)output.Write(std::string(100'000, 'x'));
    UnkeptFile::RemoveAll();
    return output.Write("new");
  }));
  EXPECT_EQ(Count(), 1);
}

/// Another tool puts its file in the place of ours.
class ReplacedFileTest : public OutputFileTest {
 protected:
  void Replace() const {
    Make("theirs", "theirs");
    fs::rename(Path("theirs"), Path("out.json"));
  }
};

TEST_F(ReplacedFileTest, IsLeftAsItIs) {
  for (const bool there_before : {false, true}) {
    if (there_before) Make("out.json", "old");
    auto file = Open("out.json", there_before);
    ASSERT_TRUE(file);
    Replace();
    EXPECT_EQ(file->FindPlace(), Place::kAnother);
    const auto filled = file->Fill([](write::Output& output) { return output.Write("new"); });
    ASSERT_FALSE(filled);
    EXPECT_THAT(filled.error().message, HasSubstr("out.json: another file took its place"));
    EXPECT_EQ(Contents("out.json"), "theirs");
    fs::remove(Path("out.json"));
  }
}

TEST_F(ReplacedFileTest, IsLeftAsItIsWhileOursIsWritten) {
  for (const bool in_place : {false, true}) {
    Make("out.json", "old");
    if (in_place) fs::create_hard_link(Path("out.json"), Path("other.json"));
    auto file = Open("out.json", true);
    ASSERT_TRUE(file);
    const auto filled = file->Fill([&](write::Output& output) {
      Replace();
      return output.Write("new");
    });
    ASSERT_FALSE(filled);
    EXPECT_THAT(filled.error().message, HasSubstr("another file took its place"));
    EXPECT_EQ(Contents("out.json"), "theirs");
  }
}

TEST_F(ReplacedFileTest, IsLeftAsItIsWhenWritingFails) {
  for (const bool in_place : {false, true}) {
    Make("out.json", "old");
    if (in_place) fs::create_hard_link(Path("out.json"), Path("other.json"));
    auto file = Open("out.json", true);
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->Fill([&](write::Output&) -> Result<void> {
      Replace();
      return Fail(ErrorCode::kIo, "disk full");
    }));
    EXPECT_EQ(Contents("out.json"), "theirs");
  }
}

TEST_F(ReplacedFileTest, IsLeftAsItIsWhenNothingCameOfOurs) {
  {
    auto file = Open("out.json");
    ASSERT_TRUE(file);
    Replace();
    UnkeptFile::RemoveAll();
    EXPECT_EQ(Contents("out.json"), "theirs");
  }
  EXPECT_EQ(Contents("out.json"), "theirs");
}

TEST_F(ReplacedFileTest, WhatWasMovedAwayIsNotOverwritten) {
  Make("out.json", "old");
  auto file = Open("out.json", true);
  ASSERT_TRUE(file);
  fs::rename(Path("out.json"), Path("moved.json"));
  EXPECT_TRUE(file->Fill([](write::Output& output) { return output.Write("new"); }));
  EXPECT_EQ(Contents("out.json"), "new");
  EXPECT_EQ(Contents("moved.json"), "old");
}

TEST_F(OutputFileTest, APipeWithoutAReaderIsRefused) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const auto refused = Open("pipe");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("nobody reads"));
  EXPECT_THAT(refused.error().hint, HasSubstr("cat"));
  const ScopedFd reader(::open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(Open("pipe"));
}

TEST_F(OutputFileTest, TwoOutputsAreTwoFiles) {
  Make("a.json", "old");
  fs::create_hard_link(Path("a.json"), Path("b.json"));
  const std::vector<OutputRequest> both{{Path("a.json"), write::Format::kJson},
                                        {Path("b.json"), write::Format::kHtml}};
  const auto opened = OpenOutputs(both, true, std::nullopt);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(opened.error().message, HasSubstr("are one file"));
  // A device may take both.
  const OutputRequest null{"/dev/null", write::Format::kJson};
  EXPECT_TRUE(OpenOutputs({null, null}, true, std::nullopt));
}

TEST_F(OutputFileTest, WhatAnotherWritesIsRefused) {
  Make("a.json", "old");
  const std::vector<OutputRequest> one{{Path("a.json"), write::Format::kJson}};
  {
    const auto others = OpenOutputs(one, true, std::nullopt);
    ASSERT_TRUE(others);
    const auto refused = OpenOutputs(one, true, std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExists);
    EXPECT_THAT(refused.error().message, HasSubstr("is being written by another"));
  }
  EXPECT_TRUE(OpenOutputs(one, true, std::nullopt));
  EXPECT_EQ(Contents("a.json"), "old");
}

TEST_F(OutputFileTest, TheInputIsNoOutput) {
  Make("a.strobe", "recording");
  fs::create_symlink("a.strobe", Path("a.html"));
  const std::vector<OutputRequest> output{{Path("a.html"), write::Format::kHtml}};
  const auto opened = OpenOutputs(output, true, std::nullopt, Path("a.strobe"));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("the recording itself"));
  EXPECT_EQ(Contents("a.strobe"), "recording");
}

TEST_F(OutputFileTest, AStreamedFileStaysOnceItIsKept) {
  {
    auto file = Open("stream.strobe");
    auto stream = file->OpenStream();
    ASSERT_TRUE(stream);
    EXPECT_EQ(::write(stream->get(), "ab", 2), 2);
    file->Keep();
    EXPECT_TRUE(Open("empty.strobe")->OpenStream());
  }
  EXPECT_EQ(Contents("stream.strobe"), "ab");
  EXPECT_FALSE(fs::exists(Path("empty.strobe")));
}

TEST_F(OutputFileTest, AStreamDoesNotTouchOldContents) {
  Make("stream.strobe", "old");
  EXPECT_TRUE(Open("stream.strobe", true)->OpenStream());
  EXPECT_EQ(Contents("stream.strobe"), "old");
}

TEST_F(OutputFileTest, GivingUpRemovesOnlyWhatWasNotKept) {
  Make("old.json", "old");
  auto old = Open("old.json", true);
  auto kept = Open("kept.json");
  auto moved = Open("moved.json");
  const OutputFile unkept = *std::move(moved);
  ASSERT_TRUE(kept->Fill([](write::Output& output) { return output.Write("kept"); }));
  UnkeptFile::RemoveAll();
  EXPECT_EQ(Contents("old.json"), "old");
  EXPECT_EQ(Contents("kept.json"), "kept");
  EXPECT_FALSE(fs::exists(Path("moved.json")));
}

TEST_F(OutputFileTest, ARecordingIsKeptWhereItCanBe) {
  const ScopedFd memory(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::write(memory.get(), "recording", 9), 9);
  const std::vector<std::string> places{Path("missing"), "/dev/full", directory_};
  const auto kept = KeepRecording(memory.get(), places, "kept", std::nullopt);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, Path("kept.strobe"));
  EXPECT_EQ(Contents("kept.strobe"), "recording");
  // A second one does not overwrite the first.
  EXPECT_EQ(KeepRecording(memory.get(), places, "kept", std::nullopt).value(),
            Path("kept-2.strobe"));
  EXPECT_FALSE(KeepRecording(memory.get(), {Path("missing")}, "kept", std::nullopt));
}

}  // namespace
}  // namespace pystrobe::cli
