// SPDX-License-Identifier: Apache-2.0
//
// Frames as an evaluator of them is given them, up to 3.11. [GIL held]
#pragma once

// _PyInterpreterFrame is in headers that are the interpreter's own.
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
#include <frameobject.h>
#include <opcode.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE

namespace pystrobe::hooks {

/// Of PyCodeObject::co_flags.
constexpr int kGeneratorFlags = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

#if PY_VERSION_HEX >= 0x030C0000

/// Nobody evaluates frames there.
inline const void* IdentityOf(const PyFrameObject*) { return nullptr; }

#else

#if PY_VERSION_HEX >= 0x030B0000

using EvalFrame = _PyInterpreterFrame;

/// The call of a generator function is evaluated, until it has made the generator; that is no part
/// of the generator's own call.
inline bool MakesGenerator(const EvalFrame* frame) {
  return (frame->f_code->co_flags & kGeneratorFlags) != 0 &&
         frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/// Whether it was evaluated before. A new generator stands at what made it.
inline bool GoesOn(const EvalFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_GENERATOR &&
         _Py_OPCODE(*frame->prev_instr) != RETURN_GENERATOR;
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

#else

using EvalFrame = PyFrameObject;

inline bool MakesGenerator(const EvalFrame*) { return false; }
inline bool GoesOn(const EvalFrame* frame) { return frame->f_lasti >= 0; }
inline bool NeverBegan(const EvalFrame* frame) { return frame->f_lasti < 0; }
inline const void* RunningFrame(const PyThreadState* thread) { return thread->frame; }
inline const void* IdentityOf(const PyFrameObject* frame) { return frame; }

#endif
#endif

}  // namespace pystrobe::hooks
