// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/gzip.h"

#include <algorithm>
#include <limits>

#include "profiler/base/no_memory.h"

namespace pystrobe::write {
namespace {

constexpr size_t kCompressedChunk = 64 * 1024;
constexpr int kGzipWindowBits = MAX_WBITS + 16;  // zlib.h: "add 16 to windowBits" for a gzip header
constexpr int kMemoryLevel = 8;                  // zlib's default

}  // namespace

void GzipOutput::StreamCloser::operator()(z_stream* stream) const {
  deflateEnd(stream);
  delete stream;
}

GzipOutput::GzipOutput(Output& output)
    : output_(output), stream_(new z_stream{}), compressed_(kCompressedChunk) {
  const int status = deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits,
                                  kMemoryLevel, Z_DEFAULT_STRATEGY);
  if (status == Z_MEM_ERROR) FailToAllocate();
  if (status != Z_OK) result_ = Fail(ErrorCode::kIo, "starting gzip: zlib status {}", status);
}

Result<void> GzipOutput::Write(std::string_view bytes) {
  while (result_ && !bytes.empty()) {
    const size_t now = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_->avail_in = static_cast<uInt>(now);
    bytes.remove_prefix(now);
    result_ = Deflate(Z_NO_FLUSH);
  }
  return result_;
}

Result<void> GzipOutput::Finish() {
  if (result_) result_ = Deflate(Z_FINISH);
  return result_;
}

// Runs until zlib leaves room in its output: then it has taken all input, and after Z_FINISH
// written all there is.
Result<void> GzipOutput::Deflate(int flush) {
  do {
    stream_->next_out = compressed_.data();
    stream_->avail_out = static_cast<uInt>(compressed_.size());
    const int status = deflate(stream_.get(), flush);
    if (status == Z_STREAM_ERROR) return Fail(ErrorCode::kIo, "gzip: zlib status {}", status);
    const size_t size = compressed_.size() - stream_->avail_out;
    if (size == 0) break;
    auto written = output_.Write({reinterpret_cast<const char*>(compressed_.data()), size});
    if (!written) return written;
  } while (stream_->avail_out == 0);
  return {};
}

}  // namespace pystrobe::write
