// SPDX-License-Identifier: Apache-2.0
//
// Frames as an evaluator of them is given them, up to 3.11, and what tells one from another on any
// version. [GIL held]
#pragma once

// _PyInterpreterFrame is in headers that are the interpreter's own.
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
#include <frameobject.h>
#include <opcode.h>
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#undef Py_BUILD_CORE

namespace pystrobe::hooks {

/// Of PyCodeObject::co_flags.
constexpr int kGeneratorFlags = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

inline bool IsCoroutine(const void* code) {
  return (static_cast<const PyCodeObject*>(code)->co_flags & CO_COROUTINE) != 0;
}

#if PY_VERSION_HEX >= 0x030C0000

/// The innermost frame of Python.
inline const void* RunningFrame(const PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030D0000
  return thread->current_frame;
#else
  return thread->cframe->current_frame;
#endif
}

/// Nobody evaluates frames there.
inline const void* IdentityOf(const PyFrameObject*) { return nullptr; }

/// The frame has it for as long as it is there. Calls nothing: a hook needs no registers kept then.
inline PyCodeObject* CodeOf(const PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030E0000
  constexpr uintptr_t kTags = 7;  // of a _PyStackRef; objects are aligned to more
  return reinterpret_cast<PyCodeObject*>(frame->f_frame->f_executable.bits & ~kTags);
#elif PY_VERSION_HEX >= 0x030D0000
  return reinterpret_cast<PyCodeObject*>(frame->f_frame->f_executable);
#else
  return frame->f_frame->f_code;
#endif
}

#else

#if PY_VERSION_HEX >= 0x030B0000

using EvalFrame = _PyInterpreterFrame;

/// The call of a generator function is evaluated, until it has made the generator; that is no part
/// of the generator's own call.
inline bool MakesGenerator(const EvalFrame* frame) {
  return (frame->f_code->co_flags & kGeneratorFlags) != 0 &&
         frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/// Whether it is that of a generator or coroutine.
inline bool IsOfGenerator(const EvalFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_GENERATOR;
}

/// Whether it was evaluated before. A new generator stands at what made it.
inline bool GoesOn(const EvalFrame* frame) {
  return IsOfGenerator(frame) && _Py_OPCODE(*frame->prev_instr) != RETURN_GENERATOR;
}

/// Of one that was evaluated: whether that came to nothing before its first instruction.
inline bool NeverBegan(const EvalFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_GENERATOR
             ? _Py_OPCODE(*frame->prev_instr) == RETURN_GENERATOR
             : frame->prev_instr < _PyCode_CODE(frame->f_code);
}

/// The frame that calls what is evaluated next, as IdentityOf has it.
inline const void* RunningFrame(const PyThreadState* thread) {
  return thread->cframe->current_frame;
}
inline const void* IdentityOf(const PyFrameObject* frame) { return frame->f_frame; }
/// The frame has it for as long as it is there. Calls nothing: a hook needs no registers kept then.
inline PyCodeObject* CodeOf(const PyFrameObject* frame) { return frame->f_frame->f_code; }

/// Of a generator's frame that stops: whether it is to go on.
inline bool IsSuspended(const EvalFrame* frame) {
  const auto* const place = reinterpret_cast<const char*>(frame) - offsetof(PyGenObject, gi_iframe);
  return reinterpret_cast<const PyGenObject*>(place)->gi_frame_state == FRAME_SUSPENDED;
}
inline bool IsSuspended(const PyFrameObject* frame) { return IsSuspended(frame->f_frame); }

#else

using EvalFrame = PyFrameObject;

inline bool MakesGenerator(const EvalFrame*) { return false; }
inline bool IsOfGenerator(const EvalFrame* frame) { return frame->f_gen != nullptr; }
inline bool GoesOn(const EvalFrame* frame) { return frame->f_lasti >= 0; }
inline bool NeverBegan(const EvalFrame* frame) { return frame->f_lasti < 0; }
inline const void* RunningFrame(const PyThreadState* thread) { return thread->frame; }
inline const void* IdentityOf(const PyFrameObject* frame) { return frame; }
inline PyCodeObject* CodeOf(const PyFrameObject* frame) { return frame->f_code; }
inline bool IsSuspended(const EvalFrame* frame) {
#if PY_VERSION_HEX >= 0x030A0000
  return frame->f_state == FRAME_SUSPENDED;
#else
  return frame->f_stacktop != nullptr;
#endif
}

#endif
#endif

}  // namespace pystrobe::hooks
