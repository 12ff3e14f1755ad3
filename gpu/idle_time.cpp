// SPDX-License-Identifier: Apache-2.0
#include "gpu/idle_time.h"

#include <algorithm>

#include "profiler/base/hash.h"

namespace pystrobe::gpu {
namespace {

uint64_t HashOf(const IdleKey& key) {
  const uint64_t paths = uint64_t{key.from} << 32 | key.to;
  const uint64_t place = uint64_t{key.device} << 8 | static_cast<uint64_t>(key.cause);
  return MixBits(MixBits(paths) ^ place);
}

// Of std::push_heap, whose greatest is on top.
constexpr auto kBeginsLater = [](const auto& a, const auto& b) { return a.begin_ns > b.begin_ns; };

constexpr auto kIsLonger = [](const IdleGap& a, const IdleGap& b) {
  return a.length_ns() > b.length_ns();
};

}  // namespace

void TimeSum::Add(uint64_t nanoseconds) {
  ++count;
  total_ns += nanoseconds;
  max_ns = std::max(max_ns, nanoseconds);
}

IdleTime::IdleTime(const IdleOptions& options) : options_(options) { Clear(); }

void IdleTime::Clear() {
  pending_.clear();
  waits_.clear();
  wait_sums_.assign(1, {});
  wait_places_.clear();
  devices_.clear();
  pasts_.clear();
  keys_.clear();
  sums_.clear();
  index_ = {};
  gaps_.clear();
  for (size_t cause = 0; cause < kIdleCauses; ++cause) {
    keys_.push_back({.cause = static_cast<IdleCause>(cause)});
    sums_.emplace_back();
  }
}

void IdleTime::Add(const HostWait& wait) {
  SumOf(wait).time.Add(static_cast<uint64_t>(std::max<int64_t>(0, wait.end_ns - wait.begin_ns)));
  // Nearly always at the end.
  auto after = waits_.end();
  while (after != waits_.begin() && std::prev(after)->end_ns > wait.end_ns) --after;
  waits_.insert(after, wait);
  if (waits_.size() > options_.max_waits) waits_.pop_front();
}

void IdleTime::Add(const GpuWork& work) {
  if (work.begin_ns <= 0 || work.end_ns < work.begin_ns) return;
  const bool is_known = work.launch && work.origin != kUnknownOrigin;
  pending_.push_back({.begin_ns = work.begin_ns,
                      .end_ns = work.end_ns,
                      .launch_ns = is_known ? work.launch->time_ns : 0,
                      .device = work.device,
                      .path = is_known ? work.origin.path : 0,
                      .tid = is_known ? work.launch->tid : 0});
  std::ranges::push_heap(pending_, kBeginsLater);
  if (pending_.size() <= options_.window) return;
  std::ranges::pop_heap(pending_, kBeginsLater);
  Take(pending_.back());
  pending_.pop_back();
}

void IdleTime::Finish() {
  std::ranges::sort(pending_, {}, &Pending::begin_ns);
  for (const Pending& work : pending_) Take(work);
  pending_.clear();
}

void IdleTime::Take(const Pending& work) {
  const size_t place = PlaceOf(work.device);
  Past& past = pasts_[place];
  DeviceUse& use = devices_[place];
  const bool is_first = past.busy_until_ns == 0;
  if (!is_first && work.begin_ns > past.busy_until_ns) {
    use.idle_ns += static_cast<uint64_t>(work.begin_ns - past.busy_until_ns);
    Charge(work, past);
  }
  const int64_t from = std::max(work.begin_ns, past.busy_until_ns);
  if (work.end_ns > from) use.busy_ns += static_cast<uint64_t>(work.end_ns - from);
  past.busy_until_ns = std::max(past.busy_until_ns, work.end_ns);
  if (work.launch_ns < past.launch_ns) return;
  past.launch_ns = work.launch_ns;
  past.path = work.path;
}

// Until the launch it is the program's, from then on the launch's own. What was launched before
// the device had nothing to do is the device's.
void IdleTime::Charge(const Pending& work, const Past& past) {
  const int64_t since = past.busy_until_ns;
  IdleKey key{.device = work.device, .to = work.path};
  if (work.launch_ns == 0) {
    Note(key, work.begin_ns - since);
    return;
  }
  if (work.launch_ns <= since) {
    key.cause = IdleCause::kQueue;
    Note(key, work.begin_ns - since);
    return;
  }
  // The clocks of both are told from each other to a microsecond or so.
  const int64_t launch_ns = std::min(work.launch_ns, work.begin_ns);
  key.cause = IdleCause::kLaunch;
  Note(key, work.begin_ns - launch_ns);
  ChargeHost(work, past, launch_ns);
}

// Who goes on from a wait has to launch something first, which takes its time; what takes longer
// is something else, as it is without a wait.
void IdleTime::ChargeHost(const Pending& work, const Past& past, int64_t until_ns) {
  IdleKey key{.device = work.device, .from = past.path, .to = work.path};
  int64_t since = past.busy_until_ns, acted_ns = past.launch_ns;
  if (const HostWait* const wait = WaitAt(work, since)) {
    key.from = wait->path;
    acted_ns = wait->end_ns;
    const bool goes_on = until_ns - acted_ns <= kSteadyNs;
    key.cause = IdleCause::kWait;
    Note(key, (goes_on ? until_ns : acted_ns) - since);
    if (goes_on) return;
    since = acted_ns;
  }
  const bool is_steady = work.launch_ns - acted_ns <= kSteadyNs;
  key.cause = is_steady ? IdleCause::kLaunches : IdleCause::kHost;
  Note(key, until_ns - since);
  if (is_steady || until_ns <= since) return;
  Keep({.begin_ns = since, .end_ns = until_ns, .sum = SumOf(key), .tid = work.tid});
}

void IdleTime::Keep(const IdleGap& gap) {
  gaps_.push_back(gap);
  std::ranges::push_heap(gaps_, kIsLonger);
  if (gaps_.size() <= options_.max_gaps) return;
  std::ranges::pop_heap(gaps_, kIsLonger);
  gaps_.pop_back();
}

// That the launching thread was in as the device ran out of work, and has returned from.
const HostWait* IdleTime::WaitAt(const Pending& work, int64_t idle_since_ns) const {
  auto at = std::ranges::upper_bound(waits_, work.launch_ns, {}, &HostWait::end_ns);
  while (at != waits_.begin()) {
    --at;
    if (at->end_ns < idle_since_ns) return nullptr;
    if (at->tid == work.tid && at->begin_ns < idle_since_ns) return &*at;
  }
  return nullptr;
}

void IdleTime::Note(const IdleKey& key, int64_t nanoseconds) {
  if (nanoseconds > 0) sums_[SumOf(key)].Add(static_cast<uint64_t>(nanoseconds));
}

uint32_t IdleTime::SumOf(const IdleKey& key) {
  const auto fresh = static_cast<uint32_t>(keys_.size());
  const auto is_it = [&](uint32_t id) { return keys_[id] == key; };
  if (fresh >= kIdleCauses + options_.max_sums) {
    return index_.Find(HashOf(key), is_it).value_or(static_cast<uint32_t>(key.cause));
  }
  const auto hash_of = [&](uint32_t id) { return HashOf(keys_[id]); };
  const uint32_t found = index_.FindOrAdd(HashOf(key), fresh, is_it, hash_of);
  if (found == fresh) {
    keys_.push_back(key);
    sums_.emplace_back();
  }
  return found;
}

WaitSum& IdleTime::SumOf(const HostWait& wait) {
  const auto found = wait_places_.find(wait.path);
  if (found != wait_places_.end()) return wait_sums_[found->second];
  if (wait_sums_.size() > options_.max_sums) return wait_sums_.front();
  wait_places_.emplace(wait.path, static_cast<uint32_t>(wait_sums_.size()));
  return wait_sums_.emplace_back(WaitSum{.path = wait.path, .time = {}});
}

size_t IdleTime::PlaceOf(uint32_t device) {
  const auto found = std::ranges::find(devices_, device, &DeviceUse::device);
  const auto place = static_cast<size_t>(found - devices_.begin());
  if (found == devices_.end()) {
    devices_.push_back({.device = device});
    pasts_.emplace_back();
  }
  return place;
}

}  // namespace pystrobe::gpu
