// SPDX-License-Identifier: Apache-2.0
#include "cli/forked.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include "cli/message.h"
#include "cli/output_file.h"
#include "cli/present.h"
#include "profiler/base/ascii.h"
#include "profiler/base/proc.h"

namespace pystrobe::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStream = ".strobe";
constexpr size_t kNamesListed = 8;

bool IsFile(const OutputRequest& output) {
  std::error_code error;
  return !output.to_stdout() && fs::is_regular_file(output.path, error);
}

/// The .strobe, which children write anyway; else the first of the files.
const OutputRequest* ChooseBeside(const std::vector<OutputRequest>& outputs) {
  const OutputRequest* chosen = nullptr;
  for (const OutputRequest& output : outputs) {
    if (!IsFile(output)) continue;
    if (output.format == write::Format::kStrobe) return &output;
    if (chosen == nullptr) chosen = &output;
  }
  return chosen;
}

bool IsTag(std::string_view text) {
  const size_t dash = text.find('-');
  return IsNumber(text.substr(0, dash)) &&
         (dash == std::string_view::npos || IsNumber(text.substr(dash + 1)));
}

std::string NameFor(std::string_view path, std::string_view tag) {
  const auto [stem, suffix] = write::SplitSuffix(path);
  return fmt::format("{}.{}{}", stem, tag, suffix);
}

bool IsOver(const store::StrobeFile& recording) {
  return recording.quality().complete ||
         (kill(static_cast<pid_t>(recording.metadata().pid), 0) != 0 && errno == ESRCH);
}

}  // namespace

ForkedChildren::ForkedChildren(const RecordOptions& options, const OutputRequest& beside)
    : options_(options),
      beside_(beside.path),
      is_stream_(beside.format == write::Format::kStrobe &&
                 write::SplitSuffix(beside.path).second == kStream),
      stem_(write::SplitSuffix(fs::absolute(beside.path).native()).first),
      invoker_(FindInvoker(geteuid(), kProcessEnvironment)) {}

Result<ForkedChildren> ForkedChildren::Expect(const RecordOptions& options) {
  const OutputRequest* const beside = ChooseBeside(options.outputs);
  if (beside == nullptr) {
    return FailWithHint(ErrorCode::kInvalidArgument, "Name one with -o.",
                        "--follow-fork needs a file, beside which children write theirs");
  }
  ForkedChildren children(options, *beside);
  for (std::string& tag : children.ListTags()) children.before_.insert(std::move(tag));
  return children;
}

std::vector<std::string> ForkedChildren::ListTags() const {
  const fs::path stem(stem_);
  const std::string prefix = stem.filename().native() + ".";
  std::vector<std::string> tags;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(stem.parent_path(), error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || !name.ends_with(kStream)) continue;
    if (name.size() <= prefix.size() + kStream.size()) continue;
    std::string tag = name.substr(prefix.size(), name.size() - prefix.size() - kStream.size());
    if (IsTag(tag) && !before_.contains(tag)) tags.push_back(std::move(tag));
  }
  std::ranges::sort(tags, {}, [](const std::string& tag) { return std::pair(tag.size(), tag); });
  return tags;
}

std::optional<std::string> ForkedChildren::ReportOne(const std::string& tag) const {
  const std::string stream = fmt::format("{}.{}{}", stem_, tag, kStream);
  const auto fd = OpenForReading(stream);
  if (!fd) {
    PrintError(fd.error());
    return stream;
  }
  if (lseek(fd->get(), 0, SEEK_END) == 0) {
    unlink(stream.c_str());  // it ended before it was looked at
    return std::nullopt;
  }
  const auto recording = store::StrobeFile::Open(ScopedFd(dup(fd->get())), stream);
  if (!recording) {
    PrintError(recording.error());
    return std::nullopt;
  }
  if (!IsOver(**recording)) return fmt::format("{} (it still runs)", stream);
  // As of one that became another program at once.
  if ((*recording)->quality().taken == 0) {
    unlink(stream.c_str());
    return std::nullopt;
  }
  if (!WriteOutputs(**recording, fd->get(), tag)) return stream;  // it has all there is
  if (!is_stream_) unlink(stream.c_str());
  return NameFor(beside_, tag);
}

bool ForkedChildren::WriteOutputs(const store::StrobeFile& recording, int fd,
                                  const std::string& tag) const {
  bool all = true;
  std::vector<OutputFile> outputs;
  for (const OutputRequest& request : options_.outputs) {
    if (!IsFile(request) || (is_stream_ && request.path == beside_)) continue;
    auto output =
        OutputFile::Open({NameFor(request.path, tag), request.format}, options_.force, invoker_);
    if (output) {
      outputs.push_back(*std::move(output));
    } else {
      PrintError(output.error());
      all = false;
    }
  }
  const PresentOptions present{
      .view = options_.view, .quiet = true, .table = false, .recording_fd = fd};
  return Present(recording, outputs, present) && all;
}

void ForkedChildren::Report() const {
  std::vector<std::string> names;
  for (const std::string& tag : ListTags()) {
    if (auto name = ReportOne(tag)) names.push_back(*std::move(name));
  }
  if (options_.quiet || names.empty()) return;
  const std::span shown(names.data(), std::min(names.size(), kNamesListed));
  PrintNote(fmt::format("wrote what {} child {} recorded: {}{}", names.size(),
                        names.size() == 1 ? "process" : "processes", fmt::join(shown, ", "),
                        shown.size() < names.size() ? ", ..." : ""));
}

}  // namespace pystrobe::cli
