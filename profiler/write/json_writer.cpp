// SPDX-License-Identifier: Apache-2.0
#include "profiler/write/json_writer.h"

#include <cmath>

#include "profiler/write/utf8.h"

namespace pystrobe::write {
namespace {

// `</` and `<!` could end a <script> element around the document; `<module>` cannot.
bool NeedsNoEscape(std::string_view text, size_t i) {
  const char c = text[i];
  const auto byte = static_cast<unsigned char>(c);
  if (c == '<' && i + 1 < text.size()) return text[i + 1] != '/' && text[i + 1] != '!';
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

void AppendEscaped(char c, std::string& to) {
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& to) {
  to += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && NeedsNoEscape(text, plain)) ++plain;
    to += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = Utf8SequenceLength(text);
    if (length > 1) {
      to += text.substr(0, length);
    } else if (length == 1) {
      AppendEscaped(text[0], to);
    } else {
      to += kReplacementCharacter;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to += '"';
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  scratch_.clear();
  AppendJsonString(key, scratch_);
  scratch_ += ':';
  out_.Append(scratch_);
  comma_pending_ = false;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) {
  scratch_.clear();
  AppendJsonString(text, scratch_);
  return Raw(scratch_);
}

JsonWriter& JsonWriter::Value(double number) {
  if (!std::isfinite(number)) return Raw("null");
  return Raw(fmt::format("{}", number));
}

JsonWriter& JsonWriter::Begin(char bracket) {
  Separate();
  out_.Append(bracket);
  comma_pending_ = false;
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  if (line_pending_) out_.Append('\n');
  line_pending_ = false;
  out_.Append(bracket);
  comma_pending_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view text) {
  Separate();
  out_.Append(text);
  comma_pending_ = true;
  return *this;
}

void JsonWriter::Separate() {
  if (comma_pending_) out_.Append(',');
  if (line_pending_) out_.Append('\n');
  line_pending_ = false;
}

}  // namespace pystrobe::write
