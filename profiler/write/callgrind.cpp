// SPDX-License-Identifier: Apache-2.0
//
// The profile format of Valgrind's callgrind (https://valgrind.org/docs/manual/cl-format.html), for
// KCachegrind, QCachegrind and callgrind_annotate: of each function its own wall and CPU time, and
// its calls of others with theirs, all at the line of the `def`. A name is compressed, which gives
// each file and function an id of its own; functions of one file that have the same name are told
// apart by their lines.
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/analyze/call_graph.h"
#include "profiler/base/hash_map.h"
#include "profiler/write/labels.h"
#include "profiler/write/output_buffer.h"
#include "profiler/write/utf8.h"
#include "profiler/write/writer.h"

namespace pystrobe::write {
namespace {

class CallgrindWriter {
 public:
  CallgrindWriter(const Profile& profile, const WriteOptions& options, Output& output)
      : profile_(profile),
        tables_(profile.tables()),
        options_(options),
        out_(output),
        functions_(BuildCallGraph(profile)) {}

  Result<void> Run() {
    CountNames();
    for (const CalledFunction& callee : functions_) {
      for (const CalledFunction::Caller& caller : callee.callers) {
        if (caller.key) {
          calls_of_[ToIndex(*caller.key)].push_back({callee.key, &caller.sums});
        }
      }
    }
    const Metadata& metadata = profile_.recording->metadata();
    const std::string part = PartLine(profile_);
    out_.Append(fmt::format(
        "# callgrind format\nversion: 1\ncreator: pystrobe {}\npid: {}\ncmd: {}\n{}"
        "positions: line\nevent: Wall : Elapsed time (ns)\n{}\nsummary: {}\n",
        metadata.pystrobe_version, metadata.pid, OnOneLine(Title(metadata, options_)),
        part.empty() ? "" : fmt::format("desc: Part: {}\n", part),
        profile_.has_cpu_time ? "event: CPU : CPU time (ns)\nevents: Wall CPU" : "events: Wall",
        Times(profile_.total)));
    for (const CalledFunction& function : functions_) {
      if (!out_.ok()) break;
      WriteFunction(function);
    }
    return out_.Finish();
  }

 private:
  struct Call {
    FunctionId callee;
    const CallSums* sums;
  };

  void CountNames() {
    for (const CalledFunction& function : functions_) {
      const Function& facts = tables_.function(function.key);
      ++with_name_[{ToIndex(facts.file), ToIndex(facts.name)}];
    }
  }

  // "(7) name" where it is told first, then "(7)".
  static std::string Compressed(HashMap<uint32_t, uint32_t>& ids, uint32_t of, std::string name) {
    const auto [found, is_new] = ids.emplace(of, static_cast<uint32_t>(ids.size()) + 1);
    return is_new ? fmt::format("({}) {}", found->second, std::move(name))
                  : fmt::format("({})", found->second);
  }

  std::string File(FunctionId id) {
    const StringId file = tables_.function(id).file;
    const std::string& name = tables_.text(file);
    return Compressed(files_, ToIndex(file), name.empty() ? "~" : OnOneLine(name));
  }

  std::string Name(FunctionId id) {
    const Function& facts = tables_.function(id);
    std::string name = OnOneLine(FunctionName(facts, tables_));
    if (with_name_[{ToIndex(facts.file), ToIndex(facts.name)}] > 1) {
      name += fmt::format(":{}", facts.first_line);
    }
    return Compressed(names_, ToIndex(id), std::move(name));
  }

  std::string Times(const Weights& weights) const {
    return profile_.has_cpu_time ? fmt::format("{} {}", weights.wall_ns, weights.cpu_ns)
                                 : fmt::to_string(weights.wall_ns);
  }

  uint32_t Line(FunctionId id) const { return tables_.function(id).first_line; }

  void WriteFunction(const CalledFunction& function) {
    const FunctionId id = function.key;
    out_.Append(fmt::format("\nfl={}\nfn={}\n{} {}\n", File(id), Name(id), Line(id),
                            Times(function.sums.self)));
    for (const Call& call : calls_of_[ToIndex(id)]) {
      out_.Append(fmt::format("cfi={}\ncfn={}\ncalls={} {}\n{} {}\n", File(call.callee),
                              Name(call.callee), call.sums->self.samples, Line(call.callee),
                              Line(id), Times(call.sums->total)));
    }
  }

  const Profile& profile_;
  const Tables& tables_;
  const WriteOptions& options_;
  OutputBuffer out_;
  const std::vector<CalledFunction> functions_;
  HashMap<uint32_t, std::vector<Call>> calls_of_;                // by caller
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> with_name_;  // file and name
  HashMap<uint32_t, uint32_t> files_, names_;
};

}  // namespace

Result<void> WriteCallgrind(const Profile& profile, const WriteOptions& options, Output& output) {
  return CallgrindWriter(profile, options, output).Run();
}

}  // namespace pystrobe::write
