// SPDX-License-Identifier: Apache-2.0
#include "cli/give_up.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "cli/unkept_file.h"

namespace pystrobe::cli {
namespace {

enum class Recording { kNone, kExpected, kBegun };

// A handler has no other way to reach its data.
std::atomic<Recording> recording;
std::atomic<int> save_fd;
std::atomic<uid_t> save_uid;
std::atomic<gid_t> save_gid;
using Path = std::array<char, 4096>;
std::array<Path, kMostPlacesToSave> save_paths;
std::atomic<size_t> save_path_count;

void Say(std::string_view text) {
  // A handler has nobody to tell that stderr is gone.
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

bool Save(int from, const char* path) {
  const int to = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (to < 0) return false;
  off_t offset = 0;
  ssize_t sent = 1;
  while (sent > 0) sent = ::sendfile(to, from, &offset, 1 << 20);
  // A file system without owners (vfat, some network ones) refuses; the file is still good.
  if (sent == 0) (void)!::fchown(to, save_uid, save_gid);
  if (sent != 0) ::unlink(path);
  ::close(to);
  return sent == 0;
}

/// In the first place that takes it; nullptr: none does.
const char* Save(int from) {
  for (size_t i = 0; i < save_path_count; ++i) {
    if (Save(from, save_paths[i].data())) return save_paths[i].data();
  }
  return nullptr;
}

void LetOnlyTheFirstGoOn() {
  // First of all: a handler that came in the middle would wait for the thread it interrupted.
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
  static std::atomic_flag begun;
  if (!begun.test_and_set()) return;
  for (;;) ::pause();
}

}  // namespace

void ExpectRecording() { recording = Recording::kExpected; }

void SaveOnGivingUp(int fd, std::span<const std::string> paths,
                    const std::optional<Invoker>& owner) {
  // Not while half of it is changed.
  recording = Recording::kExpected;
  save_uid = owner ? owner->uid : static_cast<uid_t>(-1);
  save_gid = owner ? owner->gid : static_cast<gid_t>(-1);
  save_path_count = std::min(paths.size(), save_paths.size());
  for (size_t i = 0; i < save_path_count; ++i) {
    const size_t length = std::min(paths[i].size(), save_paths[i].size() - 1);
    std::memcpy(save_paths[i].data(), paths[i].data(), length);
    save_paths[i][length] = '\0';
  }
  save_fd = fd;
  recording = Recording::kBegun;
}

void SaveNothing() { recording = Recording::kNone; }

void GiveUp() {
  LetOnlyTheFirstGoOn();
  UnkeptFile::RemoveAll();
  const Recording state = recording.load();
  if (state == Recording::kNone) return;
  if (state == Recording::kExpected) {
    Say("\npystrobe: gave up; nothing was recorded\n");
    return;
  }
  const int from = save_fd.load();
  const char* path = from >= 0 ? Save(from) : save_paths.front().data();
  if (path == nullptr) {
    Say("\npystrobe: gave up; the recording could not be kept\n");
    return;
  }
  Say("\npystrobe: gave up; what was recorded is in ");
  Say(path);
  Say("\n");
}

}  // namespace pystrobe::cli
