// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_options.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/suggest.h"
#include "profiler/base/ascii.h"

namespace pystrobe::cli {
namespace {

std::string UsageHint(std::string_view verb) { return fmt::format("See pystrobe {} --help", verb); }

void AddSampling(CLI::App& app, RawOptions& raw) {
  const std::string group = "Sampling";
  app.add_option("-d,--duration", raw.duration, "Stop after so long: 10, 500ms, 2m, 1h")
      ->type_name("TIME")
      ->group(group);
  app.add_option("-r,--rate", raw.rate, "Samples a second; without it 1000 or fewer")
      ->type_name("HZ")
      ->group(group);
  app.add_option("--max-overhead", raw.overhead,
                 "Lower the rate to hold the program at most\nthis share of its time; default 1% "
                 "without -r")
      ->type_name("SHARE")
      ->group(group);
  app.add_option("--pause", raw.pause,
                 "How to hold a thread still: auto, preempt,\nptrace, none (stacks may be torn)")
      ->type_name("HOW")
      ->group(group);
  app.add_flag("--native", raw.native,
               "Show C and C++ functions too, between Python's;\nfrom outside that takes --pause "
               "ptrace")
      ->group(group);
}

/// An option that was given more often than it may be.
const CLI::Option* GivenTooOften(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const int most = option->get_items_expected_max();
    if (most > 0 && option->count() > static_cast<size_t>(most)) return option;
  }
  return nullptr;
}

/// An option whose value is the empty text, which an unset variable of a shell becomes.
const CLI::Option* GivenNothing(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& values = option->results();
    if (std::find(values.begin(), values.end(), "") != values.end()) return option;
  }
  return nullptr;
}

/// The option that a word looks like.
std::optional<std::string> OptionLike(const CLI::App& app, std::string_view word) {
  if (!word.starts_with("--")) return std::nullopt;
  std::vector<std::string_view> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  const std::string_view name = word.substr(2);
  const auto nearest = Nearest(name.substr(0, name.find('=')), names);
  return nearest ? std::optional(fmt::format("--{}", *nearest)) : std::nullopt;
}

/// The option that lacks before a word that names an output.
std::optional<std::string> OutputLike(const CLI::App& app, const std::string& word) {
  const bool takes_output = app.get_option_no_throw("--output") != nullptr;
  if (!takes_output || !write::FormatByFileName(word)) return std::nullopt;
  return "-o " + write::ShellQuoted(word);
}

/// For a command line with something missing or too much.
std::string HintFor(const CLI::App& app, const std::string& verb) {
  const std::vector<std::string> left = app.remaining();
  // As other profilers have it.
  const bool names_process = std::ranges::any_of(left, [](const std::string& word) {
    return word == "-p" || word == "--pid" || word.starts_with("--pid=");
  });
  const bool takes_process = verb == "attach" || verb == "dump" || verb == "doctor";
  if (!names_process || !takes_process) return UsageHint(verb);
  return fmt::format("The process id stands alone: pystrobe {} PID", verb);
}

/// The error for a user of what CLI11 found wrong.
Error Explain(const CLI::App& app, const std::string& verb, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> left = app.remaining();
    std::erase(left, "--");
    const std::string word = left.empty() ? "" : left.front();
    if (IsNumber(word) && verb != "report") {
      return Usage("Start one pystrobe for each.",
                   "{}: one process at a time; '{}' is one too many", verb, word)
          .error();
    }
    const bool option = word.size() > 1 && word.front() == '-';
    const auto meant = option ? OptionLike(app, word) : OutputLike(app, word);
    return Usage(meant ? fmt::format("Did you mean {}?", *meant) : HintFor(app, verb),
                 "{}: {} '{}'", verb, option ? "there is no option" : "nothing is expected at",
                 word)
        .error();
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return Usage(HintFor(app, verb), "{}: {} is missing", verb,
                 verb == "report" ? "the file to read" : "the process id")
        .error();
  }
  if (const CLI::Option* option = GivenTooOften(app)) {
    return Usage("Give it once.", "{}: {} is given {} times", verb, option->get_name(),
                 option->count())
        .error();
  }
  const std::string what = error.what();
  if (what.ends_with(" missing")) {
    return Usage(UsageHint(verb), "{}: {} needs a value", verb, what.substr(0, what.find(':')))
        .error();
  }
  return Usage(UsageHint(verb), "{}: {}", verb, what).error();
}

/// CLI11's, with our usage line.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    column_width(27);
    label("Positionals", "Arguments");
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : CLI::Formatter::make_option_opts(option);
  }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: pystrobe " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

}  // namespace

void Describe(CLI::App& app, const std::string& usage, const std::string& examples) {
  app.formatter(std::make_shared<HelpFormatter>(usage));
  app.footer("\n" + examples);
  app.set_help_flag("-h,--help", "Print this help");
}

void AddQuiet(CLI::App& app, RawOptions& raw) {
  app.add_flag("-q,--quiet", raw.quiet, "Print nothing but errors")->group("Output");
}

void AddRecording(CLI::App& app, RawOptions& raw) {
  AddSampling(app, raw);
  AddView(app, Of::kSamples, raw);
  AddOutput(app, Of::kSamples, raw);
  AddQuiet(app, raw);
}

void AddTracing(CLI::App& app, RawOptions& raw) {
  const std::string group = "Tracing";
  app.add_option(
         "--engine", raw.engine,
         "What tells of the calls: auto, setprofile,\nframe-eval (up to 3.11, but not 3.11.0 to "
         "3.11.3),\nmonitoring (from 3.12 on)")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--builtins", raw.builtins, "Functions of C too, each of which costs time")
      ->group(group);
  app.add_option("--include", raw.include,
                 "Only functions whose file, name or module this\nfits, or whose file or module is "
                 "below it; up to\n3.10 a method's name is without its class; may be\nrepeated")
      ->type_name("GLOB")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--exclude", raw.exclude, "None of these; their time is their caller's")
      ->type_name("GLOB")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--no-stdlib", raw.no_stdlib, "None of the standard library")->group(group);
  app.add_option("--max-depth", raw.max_depth,
                 "No calls deeper than this, the program's first\nbeing 1; their time is their "
                 "caller's")
      ->type_name("N")
      ->group(group);
  app.add_option("--clock", raw.clock,
                 "What to read: wall (elapsed time alone), both, or\ncpu (both, shown by CPU time)")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--timeline", raw.timeline,
               "Keep when each call began and ended, too: for\n.trace.json and .perfetto-trace, "
               "which imply it")
      ->group(group);
  app.add_flag("--gpu", raw.with_gpu, "What a GPU does, too, and which call asked for it")
      ->group(group);
}

void AddView(CLI::App& app, Of of, RawOptions& raw) {
  const std::string group = "Report";
  app.add_option("--mode", raw.mode,
                 fmt::format("wall: elapsed time; cpu: time on a processor{}{}",
                             of == Of::kCalls ? "" : ";\ngil: time holding the lock",
                             of == Of::kEither ? "; gpu: of a GPU" : ""))
      ->type_name("MODE")
      ->group(group);
  if (of == Of::kEither) {
    app.add_flag("--gpu", raw.gpu, "What a GPU did, by kernel: --mode gpu")->group(group);
  }
  app.add_option("--thread", raw.thread, "Only threads with this in their name, or this id")
      ->type_name("X")
      ->group(group);
  // Not offered for calls, but known: what is wrong with it is said.
  app.add_flag("--idle", raw.idle, "Show threads too that hardly ran")
      ->group(of == Of::kCalls ? "" : group);
  app.add_option("--top", raw.top,
                 "Lines of the table; default 20, or fewer\nwithout those that hardly matter")
      ->type_name("N")
      ->group(group);
}

void AddOutput(CLI::App& app, Of of, RawOptions& raw) {
  const std::string group = "Output";
  const auto with_those_of_calls = [of](std::string text, std::string_view more) {
    if (of == Of::kSamples) return text;
    return fmt::format("{}{}{}", text, of == Of::kCalls ? "\n" : "; of\ncalls also ", more);
  };
  app.add_option("-o,--output", raw.outputs,
                 with_those_of_calls("Write a file, may be repeated: .html .strobe\n"
                                     ".speedscope.json .pb.gz .collapsed .json",
                                     ".callgrind .pstats .trace.json\n.perfetto-trace"))
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("-f,--format", raw.format,
                 with_those_of_calls("Format, if the file's name does not tell:\n"
                                     "html strobe speedscope pprof collapsed json",
                                     "callgrind pstats trace-events\nperfetto"))
      ->type_name("FORMAT")
      ->group(group);
  app.add_option("--unit", raw.unit,
                 of == Of::kCalls ? "Numbers in collapsed stacks: samples (calls),\nus, ns"
                                  : "Numbers in collapsed stacks: samples, us, ns")
      ->type_name("UNIT")
      ->group(group);
  app.add_flag("--force", raw.force, "Overwrite files")->group(group);
}

Result<bool> Parse(CLI::App& app, const std::string& verb, Words words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return true;
  } catch (const CLI::ParseError& error) {
    return std::unexpected(Explain(app, verb, error));
  }
  if (const CLI::Option* option = GivenNothing(app)) {
    return Usage(option->get_positional() ? UsageHint(verb) : "Give it a value, or leave it out.",
                 "{}: {} is given an empty value", verb, option->get_name());
  }
  return false;
}

}  // namespace pystrobe::cli
