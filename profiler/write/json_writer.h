// SPDX-License-Identifier: Apache-2.0
//
// Streaming JSON: values go out as they come, nothing is kept but the nesting.
// [one thread at a time]
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "profiler/write/output_buffer.h"

namespace pystrobe::write {

/// `text` as a JSON string with its quotes. Control characters are escaped, bytes that are not
/// UTF-8 become U+FFFD, and the `<` of `</` and `<!` is escaped so that the text is safe in a
/// <script>.
void AppendJsonString(std::string_view text, std::string& to);

/// Writes one JSON document. The caller keeps the grammar: in an object a Key() before each value,
/// every Begin with its End.
///
///   json.BeginObject().Field("name",
///   "f").Key("lines").BeginArray().Value(1).EndArray().EndObject();
class JsonWriter {
 public:
  explicit JsonWriter(OutputBuffer& out) : out_(out) {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End(']'); }

  JsonWriter& Key(std::string_view key);

  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  template <std::integral T>
  JsonWriter& Value(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      return Raw(number ? "true" : "false");
    } else {
      const fmt::format_int digits(number);
      return Raw({digits.data(), digits.size()});
    }
  }
  /// The shortest digits that read back the same; null for what JSON has no number for.
  JsonWriter& Value(double number);

  template <typename T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  /// Starts the next value or key on a new line, for people who look into the file.
  JsonWriter& NewLine() {
    line_pending_ = true;
    return *this;
  }

  bool ok() const { return out_.ok(); }

 private:
  JsonWriter& Begin(char bracket);
  JsonWriter& End(char bracket);
  JsonWriter& Raw(std::string_view text);
  void Separate();

  OutputBuffer& out_;
  bool comma_pending_ = false;
  bool line_pending_ = false;
  std::string scratch_;
};

}  // namespace pystrobe::write
