// SPDX-License-Identifier: Apache-2.0
#include <Python.h>
#include <fmt/format.h>
#include <frameobject.h>
#include <opcode.h>

#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "profiler/base/read_own.h"
#include "pyext/hooks/eval_frame.h"
#include "pyext/hooks/greenlets.h"
#include "pyext/hooks/hooks.h"

namespace pystrobe::hooks {
namespace {

std::atomic<bool> with_builtins = false;
enum class State {
  kSilent,  // a hook that is still there takes itself away
  kTells,
  kFollows,  // and the stacks may be switched
};
std::atomic<State> state = State::kSilent;
std::atomic<bool> program_ends = false;
std::atomic<uint32_t> installs = 0;

// Without the interpreter's lock: one thread's count of those that have a hook must not be stale
// when the interpreter turns its events on or off by it. Who waits does not keep others from
// stopping it.
class OneAtATime {
 public:
#ifdef Py_GIL_DISABLED
  OneAtATime() { PyMutex_Lock(&mutex_); }
  ~OneAtATime() { PyMutex_Unlock(&mutex_); }

 private:
  inline static PyMutex mutex_;
#else
  OneAtATime() {}
#endif
};

#if PY_VERSION_HEX >= 0x030B0000
// In each of the forms that the interpreter makes of it.
bool IsResume(int opcode) {
  switch (opcode) {
    case RESUME:
#ifdef RESUME_QUICK
    case RESUME_QUICK:
#endif
#ifdef RESUME_CHECK
    case RESUME_CHECK:
#endif
#ifdef INSTRUMENTED_RESUME
    case INSTRUMENTED_RESUME:
#endif
      return true;
    default:
      return false;
  }
}
#endif

// A call of a generator begins once, and goes on as often as it yields.
bool GoesOn(PyFrameObject* frame, const PyCodeObject* code) {
  if ((code->co_flags & kGeneratorFlags) == 0) return false;
#if PY_VERSION_HEX < 0x030B0000
  return frame->f_lasti >= 0;
#else
  // It begins at a RESUME whose operand has its last two bits zero (Python/bytecodes.c). Closed, or
  // thrown something, it goes on where it yielded.
  const int at = PyFrame_GetLasti(frame);
  if (at < 0) return true;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(code->co_code_adaptive) + at;
  return !IsResume(bytes[0]) || (bytes[1] & 3) != 0;
#endif
}

// A generator that ends, or is thrown something, before its first step: up to 3.10 that looks like
// a call.
bool NeverBegan([[maybe_unused]] PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030B0000
  return frame->f_lasti < 0;
#else
  return false;
#endif
}

// What tells the frame of the event from others, as long as it is there.
const void* FrameOfEvent([[maybe_unused]] const PyFrameObject* frame) {
#if PY_VERSION_HEX < 0x030C0000
  return IdentityOf(frame);
#else
  return RunningFrame(PyThreadState_Get());
#endif
}

// Of a coroutine whose end is told: whether it only waits. `value`: nullptr where it raised.
bool Waits(PyFrameObject* frame, [[maybe_unused]] const PyCodeObject* code, const PyObject* value) {
  if (value == nullptr) return false;
#if PY_VERSION_HEX < 0x030C0000
  return IsSuspended(frame);
#else
  // It stands at the yield (3.12), or at what comes behind it.
  const int at = PyFrame_GetLasti(frame);
  if (at < 0) return false;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(code->co_code_adaptive) + at;
  return bytes[0] == YIELD_VALUE || bytes[0] == INSTRUMENTED_YIELD_VALUE ||
         (IsResume(bytes[0]) && (bytes[1] & 3) != 0);
#endif
}

void OnFunctionOfC(PyObject* callable, bool begins) {
  trace::ThreadTrace* const trace = CurrentTrace(Innermost::kIsRunning);
  if (trace == nullptr) return;
  const trace::Key quick = Functions::QuickKeyOfCallable(callable);
  if (quick != nullptr && (begins ? trace->EnterAgain(quick) : trace->LeaveAgain(quick))) return;
  const trace::Key key = fed.functions->KeyOfCallable(callable, *trace);
  if (key == nullptr) return;
  static_cast<void>(begins ? trace->Enter(key) : trace->LeaveInnermost(key));
}

void Follow(PyFrameObject* frame, int what) {
  trace::ThreadTrace* const trace = trace::current_trace;
  if (trace == nullptr) return;
  const bool begins = what == PyTrace_CALL;
  FollowStack(*trace,
              begins                   ? Told::kBegin
              : what == PyTrace_RETURN ? Told::kEnd
                                       : Told::kCallOfC,
              begins ? Innermost::kBegins : Innermost::kIsRunning, frame);
}

void OnBegin(trace::ThreadTrace& trace, PyFrameObject* frame) {
  PyCodeObject* const code = CodeOf(frame);
  const trace::Key key = Functions::KeyOfCode(reinterpret_cast<PyObject*>(code));
  if (GoesOn(frame, code)) {
    trace.Resume(key);
  } else if (trace.Enter(key) && IsCoroutine(code)) {
    trace.BeginLife(key, FrameOfEvent(frame));
  }
}

// `value`: nullptr where it raised.
void OnEnd(trace::ThreadTrace& trace, PyFrameObject* frame, const PyObject* value) {
  PyCodeObject* const code = CodeOf(frame);
  const trace::Key key = Functions::KeyOfCode(reinterpret_cast<PyObject*>(code));
  if (NeverBegan(frame)) {
    trace.TakeBack(key);
    return;
  }
  if (IsCoroutine(code) && !Waits(frame, code, value)) trace.EndLife(key, FrameOfEvent(frame));
  trace.Leave(key);
}

int OnEvent(PyObject*, PyFrameObject* frame, int what, PyObject* argument);

// Of the calling thread, which may be in an event of it. Once after each trace: where an audit hook
// refuses that, it stays, and what runs in that hook may be told here.
void TakeOwnAway() {
  [[gnu::tls_model("initial-exec")]] constinit static thread_local uint32_t tried = 0;
  if (tried == installs) return;
  const OneAtATime lock;
  if (PyThreadState_Get()->c_profilefunc != &OnEvent || state != State::kSilent) return;
  tried = installs;
  PyEval_SetProfile(nullptr, nullptr);
  // While an audit hook was called, the next trace may have begun, and found it here.
  if (state != State::kSilent) PyEval_SetProfile(&OnEvent, nullptr);
}

[[gnu::noinline]] int OnAnyEvent(PyFrameObject* frame, int what, PyObject* argument) {
  const State now = state.load(std::memory_order_acquire);
  if (now == State::kSilent) {
    if (!program_ends.load(std::memory_order_relaxed)) TakeOwnAway();
    return 0;
  }
  if (now == State::kFollows) Follow(frame, what);
  switch (what) {
    case PyTrace_CALL:
      if (auto* const trace = CurrentTrace(Innermost::kBegins)) OnBegin(*trace, frame);
      break;
    case PyTrace_RETURN:
      if (auto* const trace = CurrentTrace(Innermost::kIsRunning)) OnEnd(*trace, frame, argument);
      break;
    case PyTrace_C_CALL:
      if (with_builtins) OnFunctionOfC(argument, true);
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      if (with_builtins) OnFunctionOfC(argument, false);
      break;
    default:
      break;
  }
  return 0;
}

// Whether it is as it is most often, and was told.
bool TellAgain(PyFrameObject* frame, int what) {
  trace::ThreadTrace* const trace = trace::current_trace;
  if (trace == nullptr || state.load(std::memory_order_acquire) != State::kTells) return false;
  PyCodeObject* const code = CodeOf(frame);
  if ((code->co_flags & kGeneratorFlags) != 0) return false;
  const trace::Key key = Functions::KeyOfCode(reinterpret_cast<PyObject*>(code));
  return what == PyTrace_CALL ? trace->EnterAgain(key)
                              : !NeverBegan(frame) && trace->LeaveAgain(key);
}

int OnEvent(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
  if (what == PyTrace_CALL || what == PyTrace_RETURN) {
    if (TellAgain(frame, what)) [[likely]]
      return 0;
  } else if (!with_builtins.load(std::memory_order_relaxed) &&
             state.load(std::memory_order_acquire) == State::kTells) {
    if (trace::ThreadTrace* const trace = trace::current_trace) trace->NotePassedOver();
    return 0;
  }
  return OnAnyEvent(frame, what, argument);
}

// The threads that were given our hook, by their states' ids.
std::mutex hooked_mutex;
std::set<uint64_t> hooked;

void NoteHooked(const PyThreadState* thread) {
  const std::scoped_lock lock(hooked_mutex);
  hooked.insert(thread->id);
}

// Without the interpreter's lock the states of others may go at any time: there it is copies of
// them, as far as the list can be followed, to look at and no more.
template <typename Visit>
void ForEachThread(const Visit& visit) {
#ifdef Py_GIL_DISABLED
  constexpr size_t kMostThreads = 1 << 20;
  const PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  PyThreadState copy;
  for (size_t i = 0; i < kMostThreads && thread != nullptr; ++i, thread = copy.next) {
    if (!ReadOwn(thread, &copy, sizeof copy)) return;
    visit(&copy);
  }
#else
  PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  for (; thread != nullptr; thread = PyThreadState_Next(thread)) visit(thread);
#endif
}

void SetInAllThreads() {
#if PY_VERSION_HEX >= 0x030C0000
  PyEval_SetProfileAllThreads(&OnEvent, nullptr);
#else
  ForEachThread([](PyThreadState* thread) {
    if (_PyEval_SetProfile(thread, &OnEvent, nullptr) < 0) PyErr_Clear();
  });
#endif
  ForEachThread(&NoteHooked);
}

struct Holders {
  size_t lost = 0;       // threads that had it taken away by others
  size_t of_others = 0;  // whose is left
};

Holders LookAtHolders() {
  // Not with the lock held: an audit hook may run when a hook is taken away.
  std::set<uint64_t> were_hooked;
  {
    const std::scoped_lock lock(hooked_mutex);
    were_hooked.swap(hooked);
  }
  Holders found;
  ForEachThread([&](const PyThreadState* thread) {
    if (thread->c_profilefunc == &OnEvent) return;
    found.of_others += thread->c_profilefunc != nullptr ? 1 : 0;
    found.lost += were_hooked.contains(thread->id) ? 1 : 0;
  });
  return found;
}

#ifdef Py_GIL_DISABLED
// Each thread is outside of the hook once: to set one, whichever, waits for that.
void StopTheWorld() {
  const PyThreadState* const own = PyThreadState_Get();
  PyEval_SetProfile(own->c_profilefunc, own->c_profileobj);
}
#endif

void RemoveFromAllThreads([[maybe_unused]] const Holders& holders) {
#if PY_VERSION_HEX >= 0x030C0000
  // It cannot be taken from single other threads, nor at all from one that runs: without the lock
  // of the interpreter that may be between finding that it has a hook and calling it (3.13,
  // call_profile_func in Python/legacy_tracing.c). Each such one takes its own away, at its next
  // event.
#ifdef Py_GIL_DISABLED
  StopTheWorld();
#else
  if (holders.of_others == 0) {
    PyEval_SetProfileAllThreads(nullptr, nullptr);
    return;
  }
#endif
  TakeOwnAway();
#else
  ForEachThread([](PyThreadState* thread) {
    if (thread->c_profilefunc != &OnEvent) return;
    if (_PyEval_SetProfile(thread, nullptr, nullptr) < 0) PyErr_Clear();
  });
#endif
}

// What `threading` has each new thread call with its first event: that thread's hooks are set then,
// and the event told.
PyObject* OnNewThread(PyObject*, PyObject* arguments) {
  PyObject *frame, *event, *argument;
  if (!PyArg_UnpackTuple(arguments, "trace", 3, 3, &frame, &event, &argument)) return nullptr;
  if (state == State::kSilent) Py_RETURN_NONE;
  PyEval_SetProfile(&OnEvent, nullptr);
  try {
    NoteHooked(PyThreadState_Get());
  } catch (const std::bad_alloc&) {  // that it was taken from this one later nobody will tell
  }
  if (PyUnicode_CompareWithASCIIString(event, "call") == 0) {
    OnEvent(nullptr, reinterpret_cast<PyFrameObject*>(frame), PyTrace_CALL, nullptr);
  }
  Py_RETURN_NONE;
}
PyMethodDef on_new_thread = {"trace", &OnNewThread, METH_VARARGS, nullptr};

std::string AttributeText(PyObject* object, const char* name) {
  PyObject* const value = PyObject_GetAttrString(object, name);
  const char* const text =
      value != nullptr && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
  std::string copy = text == nullptr ? "?" : text;
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  Py_XDECREF(value);
  return copy;
}

#ifdef Py_GIL_DISABLED
constexpr const char* kNoHolder = "a hook of C, or of another thread";
#else
constexpr const char* kNoHolder = "a hook of C";
#endif

// Null: kNoHolder.
PyObject* HeldBy(const PyThreadState* thread) {
#ifdef Py_GIL_DISABLED
  // That of another thread may go at any time.
  return thread->id == PyThreadState_Get()->id ? thread->c_profileobj : nullptr;
#else
  return thread->c_profileobj;
#endif
}

// What sys.setprofile was given, or a profiler of C has set beside its hook.
std::string DescribeHolder(PyObject* holder) {
  if (holder == nullptr) return kNoHolder;
  PyObject* const function = PyMethod_Check(holder) ? PyMethod_GET_FUNCTION(holder) : holder;
  if (!PyFunction_Check(function)) {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(holder));
    return fmt::format("an object of type {}.{}", AttributeText(type, "__module__"),
                       AttributeText(type, "__qualname__"));
  }
  auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return fmt::format("{}.{} ({}:{})", AttributeText(function, "__module__"),
                     AttributeText(function, "__qualname__"),
                     AttributeText(reinterpret_cast<PyObject*>(code), "co_filename"),
                     code->co_firstlineno);
}

class SetProfileHooks final : public Hooks {
 public:
  explicit SetProfileHooks(bool builtins) : builtins_(builtins) {}
  ~SetProfileHooks() override { Py_XDECREF(before_); }

  const char* name() const override { return "PyEval_SetProfile"; }

  Result<void> Install() override {
    bool is_taken = false;
    PyObject* holder = nullptr;
    ForEachThread([&](PyThreadState* thread) {
      if (is_taken || thread->c_profilefunc == nullptr || thread->c_profilefunc == &OnEvent) return;
      is_taken = true;
      holder = HeldBy(thread);
      Py_XINCREF(holder);  // to be asked about once no list of threads is gone through
    });
    if (is_taken) {
      const std::string who = DescribeHolder(holder);
      Py_XDECREF(holder);
      return FailWithHint(ErrorCode::kUnsupported,
                          "Stop it first (sys.setprofile(None)), or leave it the calls.",
                          "another profiler has the hook of a thread (sys.setprofile): {}", who);
    }
    PyObject* const threading = PyImport_ImportModule("threading");
    if (threading != nullptr) {
      before_ = PyObject_GetAttrString(threading, "_profile_hook");
      PyObject* const hook = PyCFunction_New(&on_new_thread, nullptr);
      PyObject* const done = PyObject_CallMethod(threading, "setprofile", "O", hook);
      Py_XDECREF(done);
      Py_XDECREF(hook);
      Py_DECREF(threading);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    Tell();
    if (PyThreadState_Get()->c_profilefunc == &OnEvent) return {};
    static_cast<void>(Remove());
    return FailWithHint(ErrorCode::kUnsupported,
                        "Where an audit hook of the program refuses sys.setprofile, let it pass.",
                        "the interpreter refused to set the profile hook");
  }

  Result<void> Remove() override {
    const Holders holders = LookAtHolders();  // before any takes its own away
    state = State::kSilent;
    RemoveFromAllThreads(holders);
    PyObject* const threading = PyImport_ImportModule("threading");
    if (threading != nullptr) {
      PyObject* const done =
          PyObject_CallMethod(threading, "setprofile", "O", before_ != nullptr ? before_ : Py_None);
      Py_XDECREF(done);
      Py_DECREF(threading);
    }
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    if (holders.lost == 0) return {};
    return Fail(
        ErrorCode::kUnsupported,
        "the program set the profile hook of {} meanwhile: what they called later is missing",
        holders.lost == 1 ? "a thread" : fmt::format("{} threads", holders.lost));
  }

  void FollowStacks() override { state = State::kFollows; }

 private:
  void Tell() {
    const OneAtATime lock;
    with_builtins = builtins_;
    ++installs;
    state = State::kTells;
    SetInAllThreads();
  }

  const bool builtins_;
  PyObject* before_ = nullptr;
};

int DoNothing(PyObject*, PyFrameObject*, int, PyObject*) { return 0; }
template <bool kBuiltins>
int ReadTheClock(PyObject*, PyFrameObject*, int what, PyObject*) {
  if (kBuiltins || what == PyTrace_CALL || what == PyTrace_RETURN) ReadClock();
  return 0;
}

class EmptyHooks final : public Hooks {
 public:
  explicit EmptyHooks(Py_tracefunc hook) : hook_(hook) {}
  const char* name() const override { return "PyEval_SetProfile"; }
  Result<void> Install() override {
    PyEval_SetProfile(hook_, nullptr);
    return {};
  }
  Result<void> Remove() override {
    PyEval_SetProfile(nullptr, nullptr);
    return {};
  }
  void FollowStacks() override {}

 private:
  const Py_tracefunc hook_;
};

}  // namespace

std::unique_ptr<Hooks> MakeEmptySetProfileHooks(bool builtins, Reads reads) {
  if (reads == Reads::kNothing) return std::make_unique<EmptyHooks>(&DoNothing);
  return std::make_unique<EmptyHooks>(builtins ? &ReadTheClock<true> : &ReadTheClock<false>);
}

void ProgramEnds() { program_ends = true; }

std::unique_ptr<Hooks> MakeSetProfileHooks(bool builtins) {
  return std::make_unique<SetProfileHooks>(builtins);
}

}  // namespace pystrobe::hooks
