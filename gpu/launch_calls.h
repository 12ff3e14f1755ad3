// SPDX-License-Identifier: Apache-2.0
//
// Which functions of the driver put work on a device, whose records carry the call's correlation
// id, which wait for one, and which begin and end the capture of a stream. [any thread]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pystrobe::gpu {

enum class LaunchKind : uint8_t { kKernel, kGraph, kCopy, kSet };
inline constexpr size_t kLaunchKinds = 4;

/// As CUPTI numbers the driver's functions (CUpti_driver_api_trace_cbid). Some a CUPTI of before
/// does not know.
std::span<const uint32_t> LaunchCallIds();

/// Nullopt of any other. [async-signal-safe]
std::optional<LaunchKind> KindOfLaunchCall(uint32_t id);

/// Those that return only once the device has done what is behind them in a stream, or more. Some
/// are launches too.
std::span<const uint32_t> WaitCallIds();
/// [async-signal-safe]
bool IsWaitCall(uint32_t id);

enum class CaptureEdge : uint8_t { kBegin, kEnd };
/// Of a stream, into a graph.
std::span<const uint32_t> CaptureCallIds();
/// Nullopt of any other. [async-signal-safe]
std::optional<CaptureEdge> CaptureEdgeOf(uint32_t id);

}  // namespace pystrobe::gpu
