// SPDX-License-Identifier: Apache-2.0
//
// The one hash table of the project, so that it can be exchanged in one place.
#pragma once

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include <functional>

namespace pystrobe {

template <typename Key, typename Value, typename Hash = std::hash<Key>,
          typename Equal = std::equal_to<Key>>
using HashMap = tsl::robin_map<Key, Value, Hash, Equal>;

template <typename Key, typename Hash = std::hash<Key>, typename Equal = std::equal_to<Key>>
using HashSet = tsl::robin_set<Key, Hash, Equal>;

}  // namespace pystrobe
