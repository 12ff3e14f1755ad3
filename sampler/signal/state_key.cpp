// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/state_key.h"

#include <limits.h>
#include <pthread.h>

namespace pystrobe::signals {
namespace {

// Each takes some microseconds. A thread of a sub-interpreter may have another state under the key.
constexpr int kMostTries = 64;

Address ValueOf(int key) {
  return reinterpret_cast<Address>(pthread_getspecific(static_cast<pthread_key_t>(key)));
}

}  // namespace

void StateKey::LearnFrom(Address state) {
  if (key_.load() != kUnknown || tries_.fetch_add(1) >= kMostTries) return;
  for (int key = 0; key < PTHREAD_KEYS_MAX; ++key) {
    if (ValueOf(key) != state) continue;
    key_.store(key);
    return;
  }
}

std::optional<Address> StateKey::Get() const {
  const int key = key_.load();
  if (key == kUnknown) return std::nullopt;
  return ValueOf(key);
}

}  // namespace pystrobe::signals
