// SPDX-License-Identifier: Apache-2.0
//
// The context that a call of the driver needs. For gpu's own source files.
#pragma once

#include <cstdint>

#include "gpu/driver_api.h"
#include "gpu/handles.h"

namespace pystrobe::gpu {

/// A context that is current on the calling thread while this lives; then the one before is again.
/// [one thread]
class ScopedContext {
 public:
  /// The context of `stream`; of the default stream the thread's own, and where that has none, the
  /// first device's primary context, which is then made, as CUDA's runtime would do it. Fails in a
  /// child of fork(), and after the stream or its context is gone.
  static Result<ScopedContext> Of(const DriverApi& cuda, Stream stream);
  /// A context that has been seen before.
  static Result<ScopedContext> Of(const DriverApi& cuda, Context context);

  ScopedContext(ScopedContext&& other) noexcept;
  ScopedContext& operator=(ScopedContext&&) = delete;
  ~ScopedContext();

  Context context() const { return context_; }
  /// No two contexts of a process have the same, not even one after the other at one address.
  uint64_t id() const { return id_; }

 private:
  ScopedContext(const DriverApi& cuda, Context context) : cuda_(&cuda), context_(context) {}
  Result<void> Enter();

  const DriverApi* cuda_;
  Context context_;
  uint64_t id_ = 0;
  bool pushed_ = false;
};

}  // namespace pystrobe::gpu
