// SPDX-License-Identifier: Apache-2.0
//
// gzip (RFC 1952) on the way to an Output. [one thread at a time]
#pragma once

#include <zlib.h>

#include <memory>
#include <string_view>
#include <vector>

#include "profiler/base/error.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {

/// Compresses what it is given. The same bytes in give the same bytes out: the header carries
/// neither a time nor a name. Remembers the first failure; later calls repeat it.
class GzipOutput final : public Output {
 public:
  explicit GzipOutput(Output& output);
  Result<void> Write(std::string_view bytes) override;
  /// Writes the end of the stream. Nothing may be written after it.
  Result<void> Finish();

 private:
  struct StreamCloser {
    void operator()(z_stream* stream) const;
  };

  Result<void> Deflate(int flush);

  Output& output_;
  std::unique_ptr<z_stream, StreamCloser> stream_;
  std::vector<unsigned char> compressed_;
  Result<void> result_;
};

}  // namespace pystrobe::write
