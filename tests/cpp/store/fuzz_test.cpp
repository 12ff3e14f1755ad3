// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's entry over random mutations of golden files: of the file's bytes, and, since hardly
// one of those gets past zstd, of the unpacked columns packed again.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "profiler/store/block.h"
#include "tests/cpp/store/fuzz_reader.h"

namespace pystrobe::store {
namespace {

Bytes ReadGolden() {
  std::ifstream file(PYSTROBE_GOLDEN_DIR "/strobe/v2.7.strobe", std::ios::binary);
  EXPECT_TRUE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

struct UnpackedBlock {
  BlockType type;
  std::vector<Bytes> columns;
};

size_t ColumnsOf(BlockType type) {
  if (type == BlockType::kHead) return 1;
  return type == BlockType::kCalls ? size_t{kCallColumnCount} : size_t{kColumnCount};
}

std::vector<UnpackedBlock> Unpack(const Bytes& file) {
  std::vector<UnpackedBlock> blocks;
  BlockUnpacker unpacker;
  for (size_t begin = kFileHeaderSize; begin < file.size();) {
    const BlockHeader header = ParseBlockHeader(ByteSpan(file).subspan(begin, kBlockHeaderSize));
    begin += kBlockHeaderSize;
    EXPECT_TRUE(unpacker.Unpack(ByteSpan(file).subspan(begin, header.length)).has_value());
    begin += header.length;
    UnpackedBlock block{static_cast<BlockType>(header.type), {}};
    const size_t count = ColumnsOf(block.type);
    for (size_t i = 0; i < count; ++i) {
      const ByteSpan column = unpacker.column(i);
      block.columns.emplace_back(column.begin(), column.end());
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Bytes Pack(const Bytes& golden, const std::vector<UnpackedBlock>& blocks) {
  Bytes file(golden.begin(), golden.begin() + kFileHeaderSize);
  BlockPacker packer;
  for (const UnpackedBlock& block : blocks) {
    const auto packed = packer.Pack(block.type, block.columns);
    EXPECT_TRUE(packed.has_value());
    file.insert(file.end(), packed->begin(), packed->end());
  }
  return file;
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }

  void Mutate(Bytes& bytes) {
    static constexpr uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xfd, 0xfe, 0xff};
    const size_t at = Below(bytes.size() + 1);
    const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const uint8_t byte = kTelling[Below(std::size(kTelling))];
    if (position == bytes.end() || Below(8) == 0) {
      bytes.insert(position, 1 + Below(12), byte);
    } else if (Below(4) == 0) {
      bytes.erase(position, position + 1 + static_cast<std::ptrdiff_t>(Below(bytes.size() - at)));
    } else {
      bytes[at] = Below(2) == 0 ? byte : static_cast<uint8_t>(Below(256));
    }
  }

 private:
  std::mt19937 random_;
};

TEST(FuzzReader, SurvivesMutatedFiles) {
  const Bytes golden = ReadGolden();
  Mutator mutator(1);
  for (int round = 0; round < 1500; ++round) {
    Bytes mutant = golden;
    for (size_t i = 0; i <= mutator.Below(4); ++i) mutator.Mutate(mutant);
    LLVMFuzzerTestOneInput(mutant.data(), mutant.size());
  }
}

TEST(FuzzReader, SurvivesMutatedColumns) {
  const Bytes golden = ReadGolden();
  const std::vector<UnpackedBlock> blocks = Unpack(golden);
  Mutator mutator(2);
  for (int round = 0; round < 4000; ++round) {
    std::vector<UnpackedBlock> mutant = blocks;
    for (size_t i = 0; i <= mutator.Below(3); ++i) {
      UnpackedBlock& block = mutant[mutator.Below(mutant.size())];
      mutator.Mutate(block.columns[mutator.Below(block.columns.size())]);
    }
    if (mutator.Below(10) == 0) std::swap(mutant[mutator.Below(mutant.size())], mutant.back());
    const Bytes file = Pack(golden, mutant);
    LLVMFuzzerTestOneInput(file.data(), file.size());
  }
}

}  // namespace
}  // namespace pystrobe::store
