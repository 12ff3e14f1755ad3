// SPDX-License-Identifier: Apache-2.0
#include "cli/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "cli/unkept_file.h"

namespace pystrobe::cli {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
// Left to the child while there is one.
constexpr int kQuit = SIGQUIT;
// `timeout` and others signal a process and its group at once, and mean one stop.
constexpr int64_t kOneStopNs = 200'000'000;

// A handler has no other way to reach its data.
std::atomic<bool> stop_flag;
std::atomic<int64_t> first_stop_ns;  // 0: none yet
std::atomic<pid_t> forward_child;
std::atomic<int> keep_fd;
std::atomic<bool> keep;
std::atomic<uid_t> keep_uid;
std::atomic<gid_t> keep_gid;
std::array<char, 4096> keep_path;
std::array<struct sigaction, kSignals.size()> old_actions;
struct sigaction old_quit;

void Say(std::string_view text) {
  // A handler has nobody to tell that stderr is gone.
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

/// [async-signal-safe]
void KeepRecordingNow() {
  if (!keep.load()) {
    Say("\npystrobe: gave up; nothing was recorded\n");
    return;
  }
  const int from = keep_fd.load();
  if (from >= 0) {
    const int to = ::open(keep_path.data(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    off_t offset = 0;
    ssize_t sent = to < 0 ? -1 : 1;
    while (sent > 0) sent = ::sendfile(to, from, &offset, 1 << 20);
    if (sent < 0 || ::fchown(to, keep_uid, keep_gid) != 0) {
      Say("\npystrobe: gave up; the recording could not be kept\n");
      return;
    }
  }
  Say("\npystrobe: gave up; what was recorded is in ");
  Say(keep_path.data());
  Say("\n");
}

/// [async-signal-safe]
int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// [async-signal-safe]
void Handle(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  const pid_t child = forward_child.load();
  const int64_t now = NowNs();
  int64_t first = 0;
  if (child > 0) {
    // The terminal sends to the whole foreground group, so the child has that one already.
    if (info->si_code <= 0) ::kill(child, signal);
  } else if (first_stop_ns.compare_exchange_strong(first, now)) {
    stop_flag.store(true);
  } else if (now - first >= kOneStopNs) {
    UnkeptFile::RemoveAll();
    KeepRecordingNow();
    ::_exit(128 + signal);
  }
  errno = saved_errno;
}

}  // namespace

StopSignals::StopSignals() {
  stop_flag = false;
  first_stop_ns = 0;
  forward_child = 0;
  keep = false;
  struct sigaction action{};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO;  // no SA_RESTART: a wait is to end
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &old_actions[i]);
    // nohup and background jobs of a shell without job control ask for this.
    if (old_actions[i].sa_handler == SIG_IGN) sigaction(kSignals[i], &old_actions[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  Release();
  StopForwarding();
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_actions[i], nullptr);
}

std::atomic<bool>& StopSignals::stop() { return stop_flag; }

void StopSignals::Hold() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &mask_);
  held_ = true;
}

void StopSignals::Release() {
  if (held_) sigprocmask(SIG_SETMASK, &mask_, nullptr);
  held_ = false;
}

void StopSignals::ForwardTo(pid_t child) {
  forward_child = child;
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(kQuit, &ignore, &old_quit);
}

void StopSignals::StopForwarding() {
  if (forward_child.exchange(0) > 0) sigaction(kQuit, &old_quit, nullptr);
}

void StopSignals::KeepOnSecond(int fd, const std::string& path,
                               const std::optional<Invoker>& owner) {
  keep = false;
  keep_uid = owner ? owner->uid : static_cast<uid_t>(-1);
  keep_gid = owner ? owner->gid : static_cast<gid_t>(-1);
  const size_t length = std::min(path.size(), keep_path.size() - 1);
  std::memcpy(keep_path.data(), path.data(), length);
  keep_path[length] = '\0';
  keep_fd = fd;
  keep = true;
}

void StopSignals::KeepNothing() { keep = false; }

}  // namespace pystrobe::cli
