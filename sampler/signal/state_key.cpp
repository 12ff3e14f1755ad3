// SPDX-License-Identifier: Apache-2.0
#include "sampler/signal/state_key.h"

#include <pthread.h>

namespace pystrobe::signals {

Address StateKey::ValueOf(int key) {
  return reinterpret_cast<Address>(pthread_getspecific(static_cast<pthread_key_t>(key)));
}

std::optional<Address> StateKey::Get() const {
  const int key = key_.load();
  if (key == kUnknown) return std::nullopt;
  return ValueOf(key);
}

}  // namespace pystrobe::signals
