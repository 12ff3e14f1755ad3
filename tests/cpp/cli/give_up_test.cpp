// SPDX-License-Identifier: Apache-2.0
#include "cli/give_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "profiler/store/recorder.h"

namespace pystrobe::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr off_t kBig = 128 << 20;  // takes a while to copy
constexpr int kFirst = 3, kSecond = 4;

void GiveUpAndEnd(int status) {
  GiveUp();
  _exit(status);
}

/// Waits in another thread until the copy is under way.
void Await(const fs::path& copy) {
  while (!fs::exists(copy)) std::this_thread::yield();
}

/// Gives up what lets root give files away.
void LoseCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0) _exit(97);
}

class GiveUpTest : public ::testing::Test {
 protected:
  GiveUpTest() {
    std::string pattern = fs::temp_directory_path() / "give_up_test.XXXXXX";
    directory_ = mkdtemp(pattern.data());
    copy_ = directory_ / "saved.strobe";
    places_ = {copy_};
  }
  ~GiveUpTest() override { fs::remove_all(directory_); }

  /// Runs `give_up` in a process with a big recording that is to belong to `owner`; its exit
  /// status.
  template <typename Function>
  int StatusOf(Function give_up, const std::optional<Invoker>& owner = std::nullopt) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      const auto recording = store::CreateMemoryFile();
      if (!recording || ftruncate(recording->get(), kBig) != 0) _exit(99);
      SaveOnGivingUp(recording->get(), places_, owner);
      give_up();
      _exit(98);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  fs::path directory_, copy_;
  std::vector<std::string> places_;
};

TEST_F(GiveUpTest, AnotherThreadWaitsForTheFirst) {
  EXPECT_EQ(StatusOf([this] {
              std::thread second([this] {
                Await(copy_);
                GiveUpAndEnd(kSecond);
              });
              GiveUpAndEnd(kFirst);
            }),
            kFirst);
  EXPECT_EQ(fs::file_size(copy_), kBig);
}

TEST_F(GiveUpTest, AHandlerDoesNotCutItShort) {
  EXPECT_EQ(StatusOf([this] {
              signal(SIGQUIT, [](int) { GiveUpAndEnd(kSecond); });
              const pthread_t first = pthread_self();
              std::thread second([this, first] {
                Await(copy_);
                pthread_kill(first, SIGQUIT);
              });
              GiveUpAndEnd(kFirst);
            }),
            kFirst);
  EXPECT_EQ(fs::file_size(copy_), kBig);
}

// Somebody else may have made a file of that name, or the directory be gone.
TEST_F(GiveUpTest, TriesOnePlaceAfterTheOther) {
  const fs::path taken = directory_ / "taken.strobe";
  std::ofstream(taken) << "mine";
  places_ = {directory_ / "gone" / "saved.strobe", taken, copy_};
  EXPECT_EQ(StatusOf([] { GiveUpAndEnd(kFirst); }), kFirst);
  EXPECT_EQ(fs::file_size(copy_), kBig);
  EXPECT_EQ(fs::file_size(taken), 4U);
}

TEST_F(GiveUpTest, LeavesNoPartOfACopyWhereThereIsNoRoom) {
  EXPECT_EQ(StatusOf([] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit half{kBig / 2, kBig / 2};
              setrlimit(RLIMIT_FSIZE, &half);
              GiveUpAndEnd(kFirst);
            }),
            kFirst);
  EXPECT_FALSE(fs::exists(copy_));
}

// As on a file system without owners.
TEST_F(GiveUpTest, AFileThatCannotBeGivenAwayIsKeptAllTheSame) {
  ::testing::internal::CaptureStderr();
  Invoker other;
  other.uid = getuid() + 1;
  other.gid = getgid() + 1;
  EXPECT_EQ(StatusOf(
                [] {
                  LoseCapabilities();
                  GiveUpAndEnd(kFirst);
                },
                other),
            kFirst);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("what was recorded is in " + copy_.string()));
  EXPECT_EQ(fs::file_size(copy_), kBig);
}

}  // namespace
}  // namespace pystrobe::cli
