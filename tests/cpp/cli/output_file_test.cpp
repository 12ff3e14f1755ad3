// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

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
