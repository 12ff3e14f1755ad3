// SPDX-License-Identifier: Apache-2.0
//
// Where a thread stands when another one takes its CPU: woken by a timer of that CPU, or from
// another CPU. What is held works for some microseconds and makes a system call, over and over.
//
// A wake-up from another CPU marks the thread that runs to be taken off at once, and interrupts its
// CPU microseconds later, on a virtual machine ten or more; a system call that ends in between
// takes it off already. A timer's interrupt does both at the same instant. Needs real-time
// priority, as otherwise who wakes does not always take the CPU.
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int kTargetCpu = 0, kOtherCpu = 1;
constexpr auto kDuration = std::chrono::seconds(3);

enum Place { kAtWork, kInCall };

std::atomic<bool> stop;
std::atomic<int> place, bell;
std::array<uint64_t, 2> seen;

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::abort();
}

void BeRealTime() {
  const sched_param lowest{1};
  if (sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) {
    fmt::print(stderr, "wake_bias: needs real-time priority: run it as root\n");
    std::exit(1);
  }
}

/// A millisecond, give or take a half.
void Rest(std::minstd_rand& random) {
  std::this_thread::sleep_for(microseconds(500 + random() % 1000));
}

/// Returns how long a round takes, and how long its call.
std::array<double, 2> Work(int steps) {
  PinTo(kTargetCpu);
  volatile double sum = 1;
  uint64_t rounds = 0;
  const auto begin = Clock::now();
  while (!stop) {
    place = kAtWork;
    for (int i = 0; i < steps; ++i) sum = sum * 1.0000001;
    place = kInCall;
    syscall(SYS_getppid);
    ++rounds;
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
  const auto first = Clock::now();
  for (int i = 0; i < 100'000; ++i) syscall(SYS_getppid);
  const std::chrono::duration<double, std::micro> calls = Clock::now() - first;
  return {took.count() / static_cast<double>(rounds), calls.count() / 100'000};
}

void LookByTimer() {
  PinTo(kTargetCpu);
  BeRealTime();
  std::minstd_rand random(1);
  while (!stop) {
    Rest(random);
    ++seen[static_cast<size_t>(place.load())];
  }
}

void LookWhenWoken() {
  PinTo(kTargetCpu);
  BeRealTime();
  while (!stop) {
    syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, bell.load(), nullptr, nullptr, 0);
    ++seen[static_cast<size_t>(place.load())];
  }
}

void Wake() {
  PinTo(kOtherCpu);
  BeRealTime();
  std::minstd_rand random(1);
  while (!stop) {
    Rest(random);
    ++bell;
    syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  ++bell;
  syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Measure(std::string_view way, int steps) {
  stop = false;
  seen = {};
  std::array<double, 2> took{};
  std::thread target([&] { took = Work(steps); });
  std::thread looks(way == "timer" ? LookByTimer : LookWhenWoken);
  std::thread waker;
  if (way != "timer") waker = std::thread(Wake);
  std::this_thread::sleep_for(kDuration);
  stop = true;
  if (waker.joinable()) waker.join();
  looks.join();
  target.join();
  const auto all = static_cast<double>(seen[kAtWork] + seen[kInCall]);
  fmt::print(
      "{:18} a round of {:6.2f} us: {:5.1f} % of {:.0f} looks in a call that takes {:.1f} %\n", way,
      took[0], 100 * static_cast<double>(seen[kInCall]) / all, all, 100 * took[1] / took[0]);
}

}  // namespace

int main() {
  for (const int steps : {500, 5000, 50'000}) {
    for (const char* way : {"timer", "from another CPU"}) Measure(way, steps);
  }
}
