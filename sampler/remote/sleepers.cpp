// SPDX-License-Identifier: Apache-2.0
#include "sampler/remote/sleepers.h"

namespace pystrobe::remote {
namespace {

// Copied in one read. One that ends meanwhile spoils it for all.
constexpr size_t kBatch = 32;

}  // namespace

void Sleepers::Take(const Tick& tick) {
  if (context_.locals || context_.native != nullptr || !threads_.exact_clock()) return;
  for (const auto& domain : threads_.domains()) {
    for (SampledThread* thread : domain->threads) {
      if (thread->has_stack() || !thread->MayHaveRun(tick) || thread->clock().Running()) continue;
      batch_.push_back(thread);
      if (batch_.size() == kBatch) TakeBatch(*domain, tick);
    }
    TakeBatch(*domain, tick);
  }
}

void Sleepers::TakeBatch(LockDomain& domain, const Tick& tick) {
  if (batch_.empty()) return;
  batch_.front()->Prepare(job_, domain.lock(), batch_.front()->copy());
  job_.witness = {};
  for (size_t i = 1; i < batch_.size(); ++i) job_.threads.push_back(&batch_[i]->copy());
  job_.RunUnproved();
  if (job_.read_ok) context_.codes.Update(job_.seen_codes, job_.generation, tick.time);
  for (SampledThread* thread : batch_) {
    const ThreadCopy& copy = thread->copy();
    if (!job_.read_ok || copy.status != pyabi::WalkStatus::kComplete) continue;
    const auto seen = thread->SeenAsleep();
    if (!seen) continue;
    copy.plan->Confirm();
    thread->TakeCopy(tick, job_.HoldsLock(copy) ? kSampleGil : 0, seen, Names::kAll);
  }
  batch_.clear();
  context_.files.CloseLent();
}

}  // namespace pystrobe::remote
