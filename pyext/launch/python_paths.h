// SPDX-License-Identifier: Apache-2.0
//
// Which Python calls led to a launch: the thread's own frames, without the GIL, which whoever
// launches has most often given away.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/launch_path.h"
#include "profiler/base/error.h"
#include "profiler/base/hash_map.h"
#include "profiler/model/tables.h"
#include "pyext/launch/forward_paths.h"
#include "pyext/launch/freed_codes.h"
#include "pyext/launch/own_frames.h"
#include "pyext/launch/path_memo.h"
#include "pyext/launch/torch_nodes.h"

namespace pystrobe::launch {

/// Function::name of what stands on a backward call's stack for the launches of autograd's own
/// threads, which have no Python frames; and below the path of the operation whose gradient is
/// made.
inline constexpr std::string_view kAutograd = "<autograd thread>";
/// Of a stack where there is room for no more.
inline constexpr std::string_view kOtherPaths = "<other paths>";

/// The one of this process, never destroyed: a callback of the driver's may be late. A path is a
/// StackId of the tables that End gives.
///
/// A launch costs a hash of its frames and one look (PathMemo); where PyTorch's nodes are followed,
/// three calls of its functions more, which read what belongs to the thread. Only where the look
/// finds nothing are the frames looked at one by one, names read and a lock taken, under which
/// nothing waits.
///
/// Of a thread that is inside several interpreters the frames are those of the state that
/// PyGILState_GetThisThreadState has: before 3.12 that of the first.
class PythonPaths final : public gpu::LaunchPath {
 public:
  /// Fails where there is no address space. [any thread]
  static Result<PythonPaths*> OfThisProcess();

  /// From now on there are paths. Fails where there are already, or this process' own interpreter
  /// cannot be read. [GIL held]
  Result<void> Begin();
  /// No more; what was found. After Begin. [GIL held]
  Tables End();
  /// Adds to `tables`, which have nothing else and follow one session, what is found since.
  /// [any thread; without the GIL]
  void CopyTo(Tables& tables);

  gpu::LaunchOrigin Current() noexcept override;

  /// The calling thread waits for threads of autograd's from now on. What they launch has its path,
  /// while it is the only one that does, less its innermost frame, which is of ours; and its range
  /// where they have none. Returns what Leave wants. [a thread with frames]
  uint64_t EnterBackward() noexcept;
  void LeaveBackward(uint64_t entered) noexcept;

  /// From now on it is noted where operations are called that can be gone back through: what their
  /// gradients launch has that path, too, where it can be known. False where PyTorch does not tell.
  /// `views`: see TorchNodes. [GIL held]
  bool FollowNodes(const std::vector<std::string>& views);
  /// Null where none are followed. [any thread]
  const TorchNodes* nodes() const { return nodes_.load(std::memory_order_acquire); }

 private:
  struct Session;

  PythonPaths(PathMemo memo, ForwardPaths forward);
  static void OnCodeFreed(Address code);
  static Address ToldOf(FreedCodes::Told told);

  gpu::LaunchOrigin Origin() noexcept;
  gpu::LaunchOrigin OriginOf(Address tstate, uint32_t range) noexcept;
  gpu::LaunchOrigin OriginInBackward(uint64_t seed, uint32_t range) noexcept;
  bool CodesLive(Address tstate) const noexcept;
  uint32_t PathOf(Address tstate, uint64_t hash) noexcept;
  void NoteForward(uint32_t session, uint32_t path) const noexcept;
  template <typename MakeStack>
  uint32_t Resolve(uint64_t hash, MakeStack make) noexcept;
  StackId StackOf(Address tstate);
  StackId StackInBackward(StackId backward, StackId forward);
  void LookAtCodes(Session& session, Address tstate);
  void PublishBackward();

  // 0: there is no session. Hashes of one are of no other: memory of code may be another's since.
  std::atomic<uint64_t> seed_{0};
  // Whose code objects are known to live while they stand for a path: of this interpreter, or of
  // all or none.
  static constexpr Address kAll = ~Address{0}, kNone = 0;
  std::atomic<Address> told_of_{kNone};
  std::atomic<const OwnFrames*> frames_{nullptr};  // made once, never freed
  // Of launches without frames, where that is known, the path, and below it the range; else 0.
  std::atomic<uint64_t> backward_{0};
  std::atomic<const TorchNodes*> nodes_{nullptr};  // made once, never freed
  std::atomic<uint32_t> sessions_{0};              // the number of the last one
  ForwardPaths forward_;

  std::mutex mutex_;  // of what follows, and of what is put into the memo
  PathMemo memo_;
  uint64_t seeds_ = 0;
  std::unique_ptr<Session> session_;
  HashSet<Address> codes_;  // of what the memo has under this seed
  std::vector<gpu::LaunchOrigin> in_backward_;
};

}  // namespace pystrobe::launch
