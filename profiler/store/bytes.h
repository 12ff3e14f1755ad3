// SPDX-License-Identifier: Apache-2.0
//
// Bytes in and out: variable-length integers, and a reader that cannot run over the end.
// [any thread, one owner]
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace pystrobe::store {

using Bytes = std::vector<uint8_t>;
using ByteSpan = std::span<const uint8_t>;

constexpr uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}
/// Difference in two's complement: whatever the values, Add of it gives `to` back.
constexpr uint64_t Difference(uint64_t to, uint64_t from) {
  return ZigZag(static_cast<int64_t>(to - from));
}
constexpr uint64_t Add(uint64_t from, uint64_t difference) {
  return from + static_cast<uint64_t>(UnZigZag(difference));
}

inline void AppendByte(Bytes& out, uint8_t byte) { out.push_back(byte); }

inline void AppendVarint(Bytes& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

inline void AppendSigned(Bytes& out, int64_t value) { AppendVarint(out, ZigZag(value)); }

inline void AppendU32(Bytes& out, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

inline void AppendText(Bytes& out, std::string_view text) {
  AppendVarint(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

/// Byte order swapped, so that the zeros at the end of a round number's mantissa become high bits
/// and cost nothing.
inline void AppendDouble(Bytes& out, double value) {
  AppendVarint(out, __builtin_bswap64(std::bit_cast<uint64_t>(value)));
}

/// Reads from the front. What is not there reads as 0 and clears ok(), which stays cleared: check
/// it once, after reading.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(ByteSpan bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  /// ok() and nothing left.
  bool finished() const { return ok_ && rest_.empty(); }
  bool empty() const { return rest_.empty(); }
  size_t remaining() const { return rest_.size(); }

  uint8_t Byte() {
    if (rest_.empty()) return Spoil();
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      if (shift == 63 && byte > 1) return Spoil();  // beyond 64 bits
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    return Spoil();
  }

  int64_t Signed() { return UnZigZag(Varint()); }

  uint32_t U32() {
    uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) value |= uint32_t{Byte()} << shift;
    return value;
  }

  double Double() { return std::bit_cast<double>(__builtin_bswap64(Varint())); }

  ByteSpan Take(uint64_t size) {
    if (size > rest_.size()) {
      Spoil();
      return {};
    }
    const ByteSpan taken = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return taken;
  }

  std::string_view Text() { return TextOf(Varint()); }
  std::string_view TextOf(uint64_t size) {
    const ByteSpan taken = Take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  uint8_t Spoil() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  ByteSpan rest_;
  bool ok_ = true;
};

}  // namespace pystrobe::store
