// SPDX-License-Identifier: Apache-2.0
#include "profiler/trace/trace_session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/cpp/trace/all_keys.h"
#include "tests/cpp/trace/keys.h"

namespace pystrobe::trace {
namespace {

using std::chrono::milliseconds;

void MayCall(TraceSession& session, Key key) {
  ThreadTrace* trace = current_trace != nullptr ? current_trace : session.BeginThread({});
  if (trace == nullptr) return;
  trace->Enter(key);
  trace->Leave(key);
}

void Call(TraceSession& session, Key key) {
  MayCall(session, key);
  ASSERT_NE(current_trace, nullptr);
}

uint64_t CallsOf(const ThreadTrace& trace) {
  uint64_t calls = 0;
  for (const CallNode& node : trace.tree().nodes()) calls += node.calls;
  return calls;
}

TEST(TraceSession, EachThreadHasATraceOfItsOwn) {
  AllKeys watch;
  TraceSession session({}, watch);
  Call(session, KeyOf(0));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&session, i] {
      for (int call = 0; call <= i; ++call) Call(session, KeyOf(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  session.Stop();
  ASSERT_EQ(session.threads().size(), 5U);
  uint64_t calls = 0;
  for (const auto& trace : session.threads()) calls += CallsOf(*trace);
  EXPECT_EQ(calls, 1U + 1 + 2 + 3 + 4);
  EXPECT_EQ(current_trace, nullptr);
}

// As a library does that gives an object of Python back when its thread has ended.
TEST(TraceSession, WhatAThreadCallsAsItGoesAwayIsNotTraced) {
  AllKeys watch;
  TraceSession session({}, watch);
  static TraceSession* traced = nullptr;
  traced = &session;
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, [](void*) { MayCall(*traced, KeyOf(1)); }), 0);
  // Larger than what is kept of ended threads, so that its memory goes.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{64} << 20);
  pthread_t thread{};
  const auto run = [](void* of_thread) -> void* {
    pthread_setspecific(*static_cast<pthread_key_t*>(of_thread), of_thread);
    Call(*traced, KeyOf(0));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &key), 0);
  pthread_attr_destroy(&attributes);
  pthread_join(thread, nullptr);
  pthread_key_delete(key);
  session.Stop();
  ASSERT_EQ(session.threads().size(), 1U);
  EXPECT_EQ(CallsOf(*session.threads().front()), 1U);
  EXPECT_EQ(session.refused_threads(), 0U);
}

TEST(TraceSession, AThreadThatEndedHasItsOwnEnd) {
  AllKeys watch;
  TraceSession session({}, watch);
  std::thread([&session] {
    Call(session, KeyOf(0));
    current_trace->Enter(KeyOf(1));  // and never leaves it
  }).join();
  usleep(20'000);
  session.Stop();
  const ThreadTrace& trace = *session.threads().front();
  EXPECT_GT(trace.end(), trace.begin());
  EXPECT_GE(session.rate().ToTime(session.end() - trace.end()), milliseconds(19));
  EXPECT_EQ(trace.depth(), 0U);
}

TEST(TraceSession, ThreadsThatGoOnAreForgotten) {
  AllKeys watch;
  std::atomic<int> step{0};
  auto first = std::make_unique<TraceSession>(std::vector<KnownThread>{}, watch);
  TraceSession* session = first.get();
  std::thread thread([&] {
    Call(*session, KeyOf(0));
    step = 1;
    while (step != 2) usleep(100);
    Call(*session, KeyOf(1));
  });
  while (step != 1) usleep(100);
  first->Stop();
  EXPECT_EQ(CallsOf(*first->threads().front()), 1U);
  first.reset();
  TraceSession second({}, watch);
  session = &second;
  step = 2;
  thread.join();
  second.Stop();
  ASSERT_EQ(second.threads().size(), 1U);
  EXPECT_EQ(CallsOf(*second.threads().front()), 1U);
}

TEST(TraceSession, AThreadThatWasThereBeganWithIt) {
  AllKeys watch;
  TraceSession session({{gettid(), ThreadCpuNow()}}, watch);
  usleep(20'000);
  const RunningCall running[] = {{KeyOf(0)}};
  session.BeginThread(running);
  session.Stop();
  const ThreadTrace& trace = *session.threads().front();
  EXPECT_EQ(trace.begin(), session.begin());
  const CallNode& node = *trace.tree().root().first_child;
  EXPECT_GE(session.rate().ToTime(node.total), milliseconds(20));
  EXPECT_LT(session.rate().ToTime(node.cpu()), milliseconds(5)) << "it slept";
}

}  // namespace
}  // namespace pystrobe::trace
