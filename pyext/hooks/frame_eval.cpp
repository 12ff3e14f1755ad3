// SPDX-License-Identifier: Apache-2.0
#include <Python.h>

#include "pyext/hooks/hooks.h"

// Up to 3.11. Later ones lose more by it than by sys.monitoring, and their depth of recursion.
#if PY_VERSION_HEX < 0x030C0000

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "pyext/hooks/eval_frame.h"
#include "pyext/hooks/greenlets.h"
#include "pyext/hooks/held_error.h"

namespace pystrobe::hooks {
namespace {

// PEP 523: what evaluates the frames of an interpreter can be set. Ours tells of the call, lets the
// one before evaluate it, and tells of its end; a frame that raises comes back, too. Functions of C
// have no frames.
_PyFrameEvalFunction evaluates = nullptr;
enum class State {
  kSilent,  // nothing is told by us any more: of the frames that we have open the end is not either
  kTells,
  kFollows,  // and the stacks may be switched
};
State state = State::kSilent;

// Every frame that is evaluated through us needs room on the C stack, which from 3.11 on a call of
// Python does not otherwise: a program that recurses deeply must not end by it. How far a main
// thread's stack goes is a limit that the program may lower, so it is asked for again each time
// that the stack is so much deeper.
struct Stack {
  uintptr_t begin = 0;
  uintptr_t short_size = 0;  // so much from there on is too little
  uintptr_t look_size = 0;   // so much is to be looked at again
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Stack stack;

// Of this thread, which is at `here`; that may be elsewhere than on its own stack.
Stack StackAt(uintptr_t here) {
  constexpr uintptr_t kMostKept = uintptr_t{1} << 20, kBetweenLooks = uintptr_t{1} << 18;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* address = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &address, &size);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t short_size = std::min<uintptr_t>(size / 4, kMostKept);
  const uintptr_t left = here - begin;
  if (left >= size || left < short_size + kBetweenLooks) return {begin, short_size, short_size};
  return {begin, short_size, left - kBetweenLooks};
}

[[gnu::always_inline]] inline uintptr_t Here() {
  char here;
  return reinterpret_cast<uintptr_t>(&here);
}

// Elsewhere than on the thread's own stack (coroutines of C) nothing is known. (The frame's address
// would cost each function that asks a register.)
[[gnu::always_inline]] inline bool MayStackBeShort() {
  return Here() - stack.begin < stack.look_size;
}

bool IsStackShort() {
  if (!MayStackBeShort()) return false;
  const uintptr_t here = Here();
  stack = StackAt(here);
  return here < stack.begin + stack.short_size;
}

trace::ThreadTrace* Begin() {
  trace::ThreadTrace* const trace = BeginThread(Innermost::kIsRunning);
  if (trace != nullptr) stack = StackAt(Here());
  return trace;
}

class FrameEvalHooks;
FrameEvalHooks* installed = nullptr;
void GoOnWithoutStack();

// After a frame was evaluated: whether its end is told to `trace`. Meanwhile the tracing may have
// ended, or that of another session begun.
bool IsToldOfEnd(trace::ThreadTrace* trace, const EvalFrame* frame) {
  if (trace != trace::current_trace || state == State::kSilent) return false;
  if (state == State::kFollows) FollowStack(*trace, Told::kEnd, Innermost::kIsRunning, frame);
  return true;
}

// `raised`: of itself, and not as it was told to.
void TellEnd(trace::ThreadTrace& trace, const EvalFrame* frame, trace::Key key, bool is_coroutine,
             bool raised) {
  if (raised && NeverBegan(frame)) {
    trace.TakeBack(key);  // the limit of recursion
    return;
  }
  if (is_coroutine && !IsSuspended(frame)) trace.EndLife(key, frame);
  trace.Leave(key);
}

PyObject* EvaluateTraced(trace::ThreadTrace* trace, PyThreadState* thread, EvalFrame* frame,
                         int throws) {
  const trace::Key key = frame->f_code;
  const bool is_of_generator = IsOfGenerator(frame);
  const bool goes_on = is_of_generator && (throws != 0 || GoesOn(frame));
  const bool is_traced = goes_on ? trace->Resume(key) : trace->Enter(key);
  // Whose frames are there afterwards, too.
  const bool is_coroutine = is_of_generator && is_traced && IsCoroutine(key);
  if (is_coroutine && !goes_on) trace->BeginLife(key, frame);
  if (!is_traced) trace->NotePassedOver();  // of its end it is not told
  PyObject* const result = evaluates(thread, frame, throws);
  if (IsToldOfEnd(trace, frame) && is_traced) {
    TellEnd(*trace, frame, key, is_coroutine, result == nullptr && throws == 0);
  }
  return result;
}

[[gnu::noinline]] PyObject* EvaluateAny(PyThreadState* thread, EvalFrame* frame, int throws) {
  trace::ThreadTrace* trace = trace::current_trace;
  if (state == State::kSilent) return evaluates(thread, frame, throws);
  if (state == State::kFollows && trace != nullptr) {
    FollowStack(*trace, Told::kBegin, Innermost::kIsRunning, frame);
  }
  if (trace == nullptr) trace = Begin();
  if (trace == nullptr || MakesGenerator(frame)) return evaluates(thread, frame, throws);
  if (IsStackShort()) {
    GoOnWithoutStack();
    return evaluates(thread, frame, throws);
  }
  if (trace->IsAmongRunning()) trace->ReturnTo(RunningFrame(thread));
  return EvaluateTraced(trace, thread, frame, throws);
}

// Of what BeginAgain has entered, by a key of that time: who evaluates below may give the frame
// other code, as debuggers do.
[[gnu::noinline]] PyObject* EndAny(trace::ThreadTrace* trace, const EvalFrame* frame,
                                   trace::Key key, int throws, PyObject* result) {
  if (IsToldOfEnd(trace, frame)) {
    TellEnd(*trace, frame, key, false, result == nullptr && throws == 0);
  }
  return result;
}

// Apart what is most often: as little as can be is kept for it on the C stack, and in registers.
bool BeginAgain(trace::ThreadTrace* trace, const PyCodeObject* code) {
  if (trace == nullptr || state != State::kTells) return false;
  if ((code->co_flags & kGeneratorFlags) != 0) return false;
  return !MayStackBeShort() && !trace->IsAmongRunning() && trace->EnterAgain(code);
}

[[gnu::noinline]] PyObject* End(trace::ThreadTrace* trace, const EvalFrame* frame, trace::Key key,
                                int throws, PyObject* result) {
  const bool is_told = result != nullptr && trace == trace::current_trace &&
                       state == State::kTells && trace->LeaveAgain(key);
  if (is_told) [[likely]]
    return result;
  return EndAny(trace, frame, key, throws, result);
}

PyObject* Evaluate(PyThreadState* thread, EvalFrame* frame, int throws) {
  trace::ThreadTrace* const trace = trace::current_trace;
  const PyCodeObject* const code = frame->f_code;
  if (!BeginAgain(trace, code)) [[unlikely]]
    return EvaluateAny(thread, frame, throws);
  return End(trace, frame, code, throws, evaluates(thread, frame, throws));
}

class FrameEvalHooks final : public Hooks {
 public:
  const char* name() const override {
    return rest_ == nullptr ? "frame evaluation" : "frame evaluation, then PyEval_SetProfile";
  }

  Result<void> Install() override {
    PyInterpreterState* const interpreter = PyInterpreterState_Get();
    const _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    // What is over ours may call it, or not. Once that has gone ours is back, with what it calls;
    // or the interpreter's own is, which calls nobody.
    const bool is_back = is_below_another_ && now == &Evaluate;
    if (is_below_another_ && !is_back && now != &_PyEval_EvalFrameDefault) {
      return FailWithHint(ErrorCode::kUnsupported, "Use the engine \"setprofile\".",
                          "another frame evaluator was set over that of an earlier trace");
    }
    if (now != &Evaluate) evaluates = now;
    is_below_another_ = false;
    installed = this;
    state = State::kTells;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, &Evaluate);
    return {};
  }

  Result<void> Remove() override {
    if (rest_ == nullptr) {
      state = State::kSilent;
      return TakeAway();
    }
    if (rest_refused_.empty()) return rest_->Remove();
    return Fail(ErrorCode::kUnsupported,
                "the C stack was too short to trace on by frame evaluation, and {}: what came "
                "later is missing",
                rest_refused_);
  }

  // What calls it is the interpreter, which no exception of C++ may go through.
  void GoOnBySetProfile() {
    try {
      GoOnBySetProfileOrThrow();
    } catch (const std::bad_alloc&) {
      fed.session->NoteLackOfMemory();
    }
  }

  void FollowStacks() override {
    if (rest_ != nullptr) return rest_->FollowStacks();
    state = State::kFollows;
  }

 private:
  // PyEval_SetProfile needs no stack. It tells of the end of what we have told the beginning of.
  void GoOnBySetProfileOrThrow() {
    const bool follows = std::exchange(state, State::kSilent) == State::kFollows;
    static_cast<void>(TakeAway());
    const HeldError held;
    rest_ = MakeSetProfileHooks(false);
    if (auto set = rest_->Install(); !set) rest_refused_ = set.error().message;
    if (follows && rest_refused_.empty()) rest_->FollowStacks();
  }

  // What calls us we cannot take away.
  static Result<void> TakeAway() {
    PyInterpreterState* const interpreter = PyInterpreterState_Get();
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != &Evaluate) {
      is_below_another_ = true;
      return Fail(ErrorCode::kUnsupported,
                  "another frame evaluator was set meanwhile: calls may be missing");
    }
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluates);
    return {};
  }

  static inline bool is_below_another_ = false;
  std::unique_ptr<Hooks> rest_;  // what has taken over
  std::string rest_refused_;     // why it could not
};

template <Reads kReads>
PyObject* EvaluateAlone(PyThreadState* thread, EvalFrame* frame, int throws) {
  if (kReads == Reads::kNothing) return _PyEval_EvalFrameDefault(thread, frame, throws);
  ReadClock();
  PyObject* const result = _PyEval_EvalFrameDefault(thread, frame, throws);
  ReadClock();
  return result;
}

class EmptyHooks final : public Hooks {
 public:
  explicit EmptyHooks(Reads reads)
      : evaluate_(reads == Reads::kClock ? &EvaluateAlone<Reads::kClock>
                                         : &EvaluateAlone<Reads::kNothing>) {}
  const char* name() const override { return "frame evaluation"; }
  Result<void> Install() override { return Set(evaluate_, &_PyEval_EvalFrameDefault); }
  Result<void> Remove() override { return Set(&_PyEval_EvalFrameDefault, evaluate_); }
  void FollowStacks() override {}

 private:
  static Result<void> Set(_PyFrameEvalFunction to, _PyFrameEvalFunction from) {
    PyInterpreterState* const interpreter = PyInterpreterState_Get();
    if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != from) {
      return Fail(ErrorCode::kUnsupported, "another frame evaluator is set");
    }
    _PyInterpreterState_SetEvalFrameFunc(interpreter, to);
    return {};
  }

  const _PyFrameEvalFunction evaluate_;
};

[[gnu::cold, gnu::noinline]] void GoOnWithoutStack() { installed->GoOnBySetProfile(); }

}  // namespace

bool HasFrameEval() {
#if PY_VERSION_HEX >= 0x030B0000
  // Before, a __getitem__ that is called often had its frame evaluated inline whatever was set
  // (https://github.com/python/cpython/issues/104405).
  constexpr unsigned long kFirst = 0x030B04F0;
  return Py_Version >= kFirst;
#else
  return true;
#endif
}

std::unique_ptr<Hooks> MakeFrameEvalHooks() { return std::make_unique<FrameEvalHooks>(); }

std::unique_ptr<Hooks> MakeEmptyHooks(bool builtins, Reads reads) {
  if (builtins) return MakeEmptySetProfileHooks(builtins, reads);
  return std::make_unique<EmptyHooks>(reads);
}

}  // namespace pystrobe::hooks

#endif
