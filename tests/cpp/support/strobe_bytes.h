// SPDX-License-Identifier: Apache-2.0
//
// .strobe files in memory, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <string>
#include <string_view>

#include "profiler/store/block.h"
#include "profiler/store/strobe.h"
#include "profiler/store/strobe_format.h"

namespace pystrobe::testing {

/// An anonymous file with these contents.
inline ScopedFd MakeFile(std::string_view contents) {
  ScopedFd fd(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_TRUE(fd.valid());
  EXPECT_EQ(::write(fd.get(), contents.data(), contents.size()),
            static_cast<ssize_t>(contents.size()));
  return fd;
}

/// Everything in an anonymous file.
inline std::string Contents(const ScopedFd& fd) {
  std::string contents(static_cast<size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd.get(), contents.data(), contents.size(), 0),
            static_cast<ssize_t>(contents.size()));
  return contents;
}

/// The bytes of the .strobe file that `recording` (which has WriteTo(sink)) becomes.
template <typename Recording>
std::string ToStrobe(Recording&& recording) {
  store::StrobeWriter writer(MakeFile(""), "test.strobe");
  const Result<void> written = recording.WriteTo(writer);
  EXPECT_TRUE(written.has_value()) << (written ? "" : written.error().message);
  return Contents(writer.TakeFd());
}

inline Result<std::unique_ptr<store::StrobeFile>> OpenStrobe(std::string_view contents) {
  return store::StrobeFile::Open(MakeFile(contents), "test.strobe");
}

/// A block (header and payload) with its first four bytes set to the checksum of the rest.
inline std::string WithChecksum(std::string block) {
  const auto* rest = reinterpret_cast<const unsigned char*>(block.data()) + 4;
  const uLong checksum = ::crc32_z(0, rest, block.size() - 4);
  for (size_t i = 0; i < 4; ++i) block[i] = static_cast<char>(checksum >> 8 * i);
  return block;
}

/// The error of reading a file with such a block; empty if there is none.
inline std::string ErrorOfBlock(store::BlockType type, const store::Columns& columns) {
  store::StrobeWriter writer(MakeFile(""), "test.strobe");
  EXPECT_TRUE(writer.Begin({}));
  std::string contents = Contents(writer.TakeFd());
  store::BlockPacker packer;
  const auto block = packer.Pack(type, columns);
  contents.append(block->begin(), block->end());
  const auto file = OpenStrobe(contents);
  return file ? "" : file.error().message;
}

/// All samples; a failure fails the test.
inline std::vector<Sample> ReadSamples(const RecordingSource& source) {
  std::vector<Sample> samples;
  const auto read = source.ForEachSample([&](const Sample& sample) { samples.push_back(sample); });
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
  return samples;
}

}  // namespace pystrobe::testing
