// SPDX-License-Identifier: Apache-2.0
//
// A library that makes any program sample itself by signals: LD_PRELOAD it, with
// PYSTROBE_OWN_RECORDING naming a directory. It waits for a file "go" there that holds a rate in
// hertz, a number of seconds and whether native frames are wanted (0 or 1), writes "done.strobe",
// or "failed" with the reason, and waits again. No Python knows of it.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "profiler/base/thread.h"
#include "profiler/store/strobe.h"
#include "sampler/signal/signal_sampler.h"

namespace pystrobe::signals {
namespace {

// Of the threads that are not the program's.
constexpr char kName[] = "own sampler";

Result<void> Record(const std::string& path, const SignalOptions& options, double seconds) {
  auto sampler = SignalSampler::Open(options);
  if (!sampler) return std::unexpected(sampler.error());
  store::StrobeWriter writer(
      ScopedFd(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)), path);
  std::atomic<bool> stop{false};
  auto clock = StartThread("the end", [&stop, seconds] {
    pthread_setname_np(pthread_self(), kName);
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
  });
  if (!clock) return std::unexpected(clock.error());
  auto done = (*sampler)->Run(writer, stop);
  clock->join();
  return done;
}

void RecordOnRequest(const std::string& directory) {
  pthread_setname_np(pthread_self(), kName);
  for (;; usleep(10'000)) {
    const std::string go = directory + "/go";
    SignalOptions options{.pystrobe_version = "test"};
    double seconds = 0;
    std::ifstream request(go);
    if (!(request >> options.rate_hz >> seconds >> options.native)) continue;
    std::remove(go.c_str());
    const std::string part = directory + "/part";
    const Result<void> done = Record(part, options, seconds);
    if (!done) std::ofstream(part) << done.error().message << '\n' << done.error().hint;
    std::rename(part.c_str(), (directory + (done ? "/done.strobe" : "/failed")).c_str());
  }
}

__attribute__((constructor)) void Begin() {
  const char* directory = std::getenv("PYSTROBE_OWN_RECORDING");
  if (directory == nullptr) return;
  auto thread = StartThread("sampling on request",
                            [name = std::string(directory)] { RecordOnRequest(name); });
  if (thread) thread->detach();
  // Not of the programs that this one starts.
  unsetenv("PYSTROBE_OWN_RECORDING");
  unsetenv("LD_PRELOAD");
}

}  // namespace
}  // namespace pystrobe::signals
