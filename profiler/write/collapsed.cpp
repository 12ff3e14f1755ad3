// SPDX-License-Identifier: Apache-2.0
//
// Collapsed stacks, one line each: root;child;leaf VALUE. A frame is `function (file.py:line)` with
// the line that was executing. The format knows no quoting, so what would split a frame or a line
// is replaced in names.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/utf8.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

/// Bytes of what `text`, which is UTF-8, begins with: a control character beyond ASCII, U+0085
/// among them, or what Unicode takes for the end of a line. 0: neither.
size_t ControlAt(std::string_view text) {
  const bool is_c1 = text.starts_with('\xC2') && static_cast<uint8_t>(text[1]) < 0xA0;
  const bool is_line_end = text.starts_with("\xE2\x80\xA8") || text.starts_with("\xE2\x80\xA9");
  return is_c1 ? 2 : is_line_end ? 3 : 0;
}

std::string WithoutSeparators(std::string_view text) {
  const std::string line = OnOneLine(text);
  std::string clean;
  for (std::string_view rest = line; !rest.empty();) {
    const size_t control = ControlAt(rest);
    clean += control > 0 ? ' ' : rest.front() == ';' ? ':' : rest.front();
    rest.remove_prefix(std::max<size_t>(control, 1));
  }
  return clean;
}

class CollapsedWriter {
 public:
  CollapsedWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        frame_texts_(tables_.frame_count()) {}

  Result<void> Run() {
    for (const ThreadProfile& thread : profile_.threads) {
      std::string root;
      if (profile_.threads.size() > 1) {
        root = WithoutSeparators(ThreadLabel(tables_.thread(thread.thread), tables_));
      }
      for (const StackWeight& entry : thread.stacks) {
        if (!out_.ok()) return out_.Finish();
        if (entry.stack == kEmptyStack) {
          WriteLine(root, kNoPythonFrames, ValueOf(thread.OutsidePython()));
          WriteLine(root, kNotLookedAt, ValueOf(thread.unseen));
        } else if (const uint64_t value = ValueOf(entry.self)) {
          WriteLine(root, TextOf(entry.stack), value);
        }
      }
    }
    return out_.Finish();
  }

 private:
  // What a rounded-down value leaves goes to the next one, so that the sum stays exact.
  uint64_t ValueOf(const Weights& weights) {
    if (options_.unit == Unit::kSamples) return weights.count(options_.mode);
    const uint64_t ns = weights.nanoseconds(options_.mode);
    if (options_.unit == Unit::kNanoseconds || ns == 0) return ns;
    const uint64_t with_rest = ns + rest_ns_;
    rest_ns_ = with_rest % 1000;
    return with_rest / 1000;
  }

  const std::string& TextOf(StackId stack) {
    frames_.clear();
    for (StackId id = stack; id != kEmptyStack; id = tables_.stack(id).parent) {
      frames_.push_back(tables_.stack(id).frame);
    }
    stack_text_.clear();
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (frame != frames_.rbegin()) stack_text_ += ';';
      stack_text_ += FrameText(*frame);
    }
    return stack_text_;
  }

  void WriteLine(const std::string& root, std::string_view stack, uint64_t value) {
    if (value == 0) return;
    out_.Append(root);
    if (!root.empty()) out_.Append(';');
    out_.Append(stack);
    const fmt::format_int digits(value);
    out_.Append(' ');
    out_.Append({digits.data(), digits.size()});
    out_.Append('\n');
  }

  const std::string& FrameText(FrameId id) {
    std::string& text = frame_texts_[ToIndex(id)];
    if (text.empty()) {
      const Frame& frame = tables_.frame(id);
      const Function& function = tables_.function(frame.function);
      const std::string name = WithoutSeparators(FunctionName(function, tables_));
      const std::string file = WithoutSeparators(tables_.text(function.file));
      text = frame.line == 0 ? fmt::format("{} ({})", name, file)
                             : fmt::format("{} ({}:{})", name, file, frame.line);
    }
    return text;
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  std::vector<std::string> frame_texts_;  // by FrameId, made when first needed
  std::vector<FrameId> frames_;           // of one stack, leaf first
  std::string stack_text_;
  uint64_t rest_ns_ = 0;
};

}  // namespace

Result<void> WriteCollapsed(const Profile& profile, const WriteOptions& options, Output& output) {
  return CollapsedWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
