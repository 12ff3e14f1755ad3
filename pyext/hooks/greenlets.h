// SPDX-License-Identifier: Apache-2.0
//
// Greenlets: a thread goes from one stack of Python to another, of which no hook tells. [GIL held;
// several threads at once where there is none]
#pragma once

#include <Python.h>

#include "pyext/hooks/eval_frame.h"
#include "pyext/hooks/hooks.h"

namespace pystrobe::hooks {

/// What AwaitGreenlets waits for may have come to pass. Runs no Python.
void LookForGreenlets();

/// Of a frame, what the event tells.
enum class Told { kBegin, kCallOfC, kEnd };

/// The rest of FollowStack.
void FollowTo(trace::ThreadTrace& trace, const void* stack, Innermost innermost);

#if PY_VERSION_HEX >= 0x030B0000

/// Frames are in chunks of memory. Each greenlet has chunks of its own, and the first one as long
/// as it runs. nullptr: it has had no frame.
inline const void* StackOf(const PyThreadState* thread) {
  const _PyStackChunk* chunk = thread->datastack_chunk;
  while (chunk != nullptr && chunk->previous != nullptr) chunk = chunk->previous;
  return chunk;
}

/// Has `trace` on the stack of what is told next.
template <typename Frame = PyFrameObject>
void FollowStack(trace::ThreadTrace& trace, Told, Innermost innermost, const Frame* = nullptr) {
  const void* const stack = StackOf(PyThreadState_Get());
  if (!trace.IsOn(stack)) [[unlikely]]
    FollowTo(trace, stack, innermost);
}

#else

/// The outermost frame, which stays as long as the stack.
inline const void* StackOf(const PyFrameObject* frame) {
  while (frame != nullptr && frame->f_back != nullptr) frame = frame->f_back;
  return frame;
}
inline const void* StackOf(const PyThreadState* thread) { return StackOf(thread->frame); }

inline void FollowStack(trace::ThreadTrace& trace, Told told, Innermost innermost,
                        const PyFrameObject* frame) {
  const PyFrameObject* const before = told == Told::kBegin ? frame->f_back : frame;
  const bool goes_on = before != nullptr && before == trace.frame_of_stack();
  trace.NoteFrameOfStack(told == Told::kEnd ? frame->f_back : frame);
  if (goes_on) return;
  const void* const stack = StackOf(frame);
  if (!trace.IsOn(stack)) FollowTo(trace, stack, innermost);
}

#endif

}  // namespace pystrobe::hooks
