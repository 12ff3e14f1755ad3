// SPDX-License-Identifier: Apache-2.0
//
// What the CUDA driver calls its objects: as in <cuda.h>, without it. The runtime's handles, which
// PyTorch, CuPy and others use, are the same.
#pragma once

struct CUctx_st;
struct CUevent_st;
struct CUstream_st;

namespace pystrobe::gpu {

using Context = CUctx_st*;
using Event = CUevent_st*;
/// Null is the legacy default stream of the current context.
using Stream = CUstream_st*;

}  // namespace pystrobe::gpu
