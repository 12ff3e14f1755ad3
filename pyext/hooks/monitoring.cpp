// SPDX-License-Identifier: Apache-2.0
#include <Python.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "pyext/hooks/eval_frame.h"
#include "pyext/hooks/greenlets.h"
#include "pyext/hooks/hooks.h"

// From 3.12 on.
#if PY_VERSION_HEX >= 0x030C0000

namespace pystrobe::hooks {
namespace {

// sys.monitoring calls any object that has a vectorcall. One of a type of its own is called without
// the layer that a builtin function would have between: 8 to 10 ns less for a call and its return.
struct Callback {
  PyObject_HEAD vectorcallfunc call;
};

PyTypeObject callback_type = [] {
  PyTypeObject type{};
  type.ob_base = {PyObject_HEAD_INIT(nullptr) 0};
  type.tp_name = "pystrobe._core.Callback";
  type.tp_basicsize = sizeof(Callback);
  type.tp_vectorcall_offset = offsetof(Callback, call);
  type.tp_call = PyVectorcall_Call;
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  return type;
}();

// Returned for code that is not traced: from then on nothing is told of it.
PyObject* disable = nullptr;

// Of Python functions: called with (code, offset, ...), so the code object is the first. Two of
// these events may not be disabled.
enum class MayDisable : bool { kNo, kYes };
// Those of another kind are called once the stacks may be switched.
enum class Follows : bool { kNo, kYes };
template <Innermost kInnermost, Follows kFollows>
trace::ThreadTrace* TraceOfEvent() {
  trace::ThreadTrace* const trace = CurrentTrace(kInnermost);
  if (kFollows == Follows::kYes && trace != nullptr) {
    FollowStack(*trace, kInnermost == Innermost::kBegins ? Told::kBegin : Told::kEnd, kInnermost);
  }
  return trace;
}
template <auto kTell, Innermost kInnermost, MayDisable kMayDisable, Follows kFollows>
[[gnu::noinline]] PyObject* OnAnything(PyObject* code) {
  trace::ThreadTrace* const trace = TraceOfEvent<kInnermost, kFollows>();
  const bool is_traced = trace == nullptr || std::invoke(kTell, *trace, code);
  if (!is_traced && kMayDisable == MayDisable::kYes) return Py_NewRef(disable);
  Py_RETURN_NONE;
}
// Apart what is most often, which calls nothing and so needs no registers kept and no stack: 3 ns
// of the 30 that a call and its return cost.
template <auto kTellAgain, auto kTell, Innermost kInnermost, MayDisable kMayDisable,
          Follows kFollows>
PyObject* On(PyObject*, PyObject* const* arguments, size_t, PyObject*) {
  PyObject* const code = arguments[0];
  if (kFollows == Follows::kNo) {
    trace::ThreadTrace* const trace = trace::current_trace;
    if (trace != nullptr && std::invoke(kTellAgain, *trace, code)) [[likely]]
      Py_RETURN_NONE;
  }
  return OnAnything<kTell, kInnermost, kMayDisable, kFollows>(code);
}
using Trace = trace::ThreadTrace;

bool BeginAgain(Trace& trace, PyObject* code) {
  if (IsCoroutine(code)) [[unlikely]]
    return false;
  return trace.EnterAgain(code);
}
bool Begin(Trace& trace, PyObject* code) {
  if (!trace.Enter(code)) return false;
  if (IsCoroutine(code)) trace.BeginLife(code, RunningFrame(PyThreadState_Get()));
  return true;
}
bool EndAgain(Trace& trace, PyObject* code) {
  if (IsCoroutine(code)) [[unlikely]]
    return false;
  return trace.LeaveAgain(code);
}
bool End(Trace& trace, PyObject* code) {
  if (IsCoroutine(code)) trace.EndLife(code, RunningFrame(PyThreadState_Get()));
  return trace.Leave(code);
}

// Of functions of C: called with (code, offset, callable, first argument). Python functions have
// events of their own. Up to 3.13 a call of a bound method begins as that, and ends as the function
// it is of (cpython#122029).
template <Follows kFollows>
[[gnu::noinline]] PyObject* OnAnyCall(PyObject* told) {
  PyObject* const callable = PyMethod_Check(told) ? PyMethod_GET_FUNCTION(told) : told;
  if (PyFunction_Check(callable) || PyMethod_Check(callable)) Py_RETURN_NONE;
  trace::ThreadTrace* const trace = TraceOfEvent<Innermost::kIsRunning, kFollows>();
  if (trace == nullptr) Py_RETURN_NONE;
  if (const trace::Key key = fed.functions->KeyOfCallable(callable, *trace)) trace->Enter(key);
  Py_RETURN_NONE;
}
template <Follows kFollows>
PyObject* OnCall(PyObject*, PyObject* const* arguments, size_t, PyObject*) {
  PyObject* const callable = arguments[2];
  if (PyFunction_Check(callable)) Py_RETURN_NONE;
  if (kFollows == Follows::kNo) {
    trace::ThreadTrace* const trace = trace::current_trace;
    const trace::Key key = Functions::QuickKeyOfCallable(callable);
    if (trace != nullptr && key != nullptr && trace->EnterAgain(key)) [[likely]]
      Py_RETURN_NONE;
  }
  return OnAnyCall<kFollows>(callable);
}

template <Follows kFollows>
[[gnu::noinline]] PyObject* OnAnyCallEnd(PyObject* callable) {
  if (PyFunction_Check(callable) || PyMethod_Check(callable)) Py_RETURN_NONE;
  trace::ThreadTrace* const trace = TraceOfEvent<Innermost::kIsRunning, kFollows>();
  if (trace == nullptr) Py_RETURN_NONE;
  const trace::Key key = fed.functions->KeyOfCallable(callable, *trace);
  if (key != nullptr) trace->LeaveInnermost(key);
  Py_RETURN_NONE;
}
template <Follows kFollows>
PyObject* OnCallEnd(PyObject*, PyObject* const* arguments, size_t, PyObject*) {
  PyObject* const callable = arguments[2];
  if (kFollows == Follows::kNo) {
    trace::ThreadTrace* const trace = trace::current_trace;
    const trace::Key key = Functions::QuickKeyOfCallable(callable);
    if (trace != nullptr && key != nullptr && trace->LeaveAgain(key)) [[likely]]
      Py_RETURN_NONE;
  }
  return OnAnyCallEnd<kFollows>(callable);
}

struct Event {
  const char* name;
  vectorcallfunc callback;
};
template <Follows kFollows>
constexpr std::array<Event, 9> kEventsWhich = {
    Event{"PY_START", &On<&BeginAgain, &Begin, Innermost::kBegins, MayDisable::kYes, kFollows>},
    Event{"PY_RESUME",
          &On<&Trace::ResumeAgain, &Trace::Resume, Innermost::kBegins, MayDisable::kYes, kFollows>},
    Event{"PY_THROW",
          &On<&Trace::ResumeAgain, &Trace::Resume, Innermost::kBegins, MayDisable::kNo, kFollows>},
    Event{"PY_RETURN", &On<&EndAgain, &End, Innermost::kIsRunning, MayDisable::kYes, kFollows>},
    Event{
        "PY_YIELD",
        &On<&Trace::LeaveAgain, &Trace::Leave, Innermost::kIsRunning, MayDisable::kYes, kFollows>},
    Event{"PY_UNWIND", &On<&EndAgain, &End, Innermost::kIsRunning, MayDisable::kNo, kFollows>},
    Event{"CALL", &OnCall<kFollows>},
    Event{"C_RETURN", &OnCallEnd<kFollows>},
    Event{"C_RAISE", &OnCallEnd<kFollows>},
};
using Events = std::array<Event, 9>;
constexpr const Events& kEvents = kEventsWhich<Follows::kNo>;
constexpr const Events& kFollowingEvents = kEventsWhich<Follows::kYes>;
constexpr size_t kPythonEvents = 6;

// The same events, and nothing is done but to read the clock, if that.
template <Reads kReads>
PyObject* DoNothing(PyObject*, PyObject* const*, size_t, PyObject*) {
  if (kReads == Reads::kClock) ReadClock();
  Py_RETURN_NONE;
}
// As OnCall, which has nothing to do with Python functions.
template <Reads kReads>
PyObject* DoNothingAtCall(PyObject*, PyObject* const* arguments, size_t, PyObject*) {
  if (kReads == Reads::kClock && !PyFunction_Check(arguments[2])) ReadClock();
  Py_RETURN_NONE;
}
template <Reads kReads>
constexpr Events kEmptyEvents = [] {
  Events events = kEvents;
  for (Event& event : events) event.callback = &DoNothing<kReads>;
  events[kPythonEvents].callback = &DoNothingAtCall<kReads>;
  return events;
}();

// Two that nobody has a claim to; then that which the documentation gives to profilers, and which
// cProfile wants and no other.
constexpr std::array kTools = {3, 4, 2};
constexpr const char* kName = "pystrobe";

std::string TextOf(PyObject* object) {
  PyObject* const text = object == nullptr ? nullptr : PyObject_Str(object);
  const char* bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  const std::string copy = bytes == nullptr ? "?" : bytes;
  if (bytes == nullptr) PyErr_Clear();
  Py_XDECREF(text);
  return copy;
}

class MonitoringHooks final : public Hooks {
 public:
  explicit MonitoringHooks(bool builtins, const Events& events = kEvents)
      : builtins_(builtins), events_(events) {}
  ~MonitoringHooks() override {
    for (Callback* const callback : callbacks_) Py_XDECREF(callback);
    Py_XDECREF(monitoring_);
  }

  const char* name() const override { return "sys.monitoring"; }

  Result<void> Install() override {
    monitoring_ = Py_XNewRef(PySys_GetObject("monitoring"));
    if (monitoring_ == nullptr || PyType_Ready(&callback_type) < 0) {
      PyErr_Clear();
      return Fail(ErrorCode::kUnsupported, "this interpreter has no sys.monitoring");
    }
    Py_XSETREF(disable, PyObject_GetAttrString(monitoring_, "DISABLE"));
    if (disable == nullptr) {
      PyErr_Clear();
      return Fail(ErrorCode::kUnsupported, "this interpreter's sys.monitoring has no DISABLE");
    }
    if (auto taken = TakeTool(); !taken) return taken;
    if (SetEvents() < 0) {
      PyErr_Clear();
      static_cast<void>(Remove());
      return Fail(ErrorCode::kUnsupported, "sys.monitoring refused to tell of calls");
    }
    return {};
  }

  Result<void> Remove() override {
    if (tool_ < 0) return {};
    const int tool = std::exchange(tool_, -1);
    // Up to 3.13 an id that was freed goes on telling.
    if (!HolderOf(tool)) {
      Drop(PyObject_CallMethod(monitoring_, "use_tool_id", "is", tool, kName));
    }
    if (HolderOf(tool) != kName) return FailAsTaken("tool id");
    bool tells_all = EventsOf(tool) == all_;
    Drop(PyObject_CallMethod(monitoring_, "set_events", "ii", tool, 0));
    for (size_t i = 0; i < Count(); ++i) {
      PyObject* const before =
          PyObject_CallMethod(monitoring_, "register_callback", "iiO", tool, bits_[i], Py_None);
      tells_all &= before == reinterpret_cast<PyObject*>(callbacks_[i]);
      Drop(before);
    }
    Drop(PyObject_CallMethod(monitoring_, "free_tool_id", "i", tool));
    if (!tells_all) return FailAsTaken("events");
    return {};
  }

  void FollowStacks() override {
    for (size_t i = 0; i < Count(); ++i) callbacks_[i]->call = kFollowingEvents[i].callback;
  }

 private:
  size_t Count() const { return builtins_ ? events_.size() : kPythonEvents; }

  static Result<void> FailAsTaken(const char* what) {
    return Fail(ErrorCode::kUnsupported,
                "the program took our {} of sys.monitoring away: calls are missing", what);
  }

  static void Drop(PyObject* result) {
    if (result == nullptr) PyErr_Clear();
    Py_XDECREF(result);
  }

  Result<void> TakeTool() {
    std::string holders;
    for (const int tool : kTools) {
      if (const auto holder = HolderOf(tool)) {
        holders += (holders.empty() ? "" : ", ") + *holder;
        continue;
      }
      Drop(PyObject_CallMethod(monitoring_, "use_tool_id", "is", tool, kName));
      if (HolderOf(tool) != kName) continue;
      tool_ = tool;
      return {};
    }
    return FailWithHint(ErrorCode::kUnsupported,
                        "End one of them, or use the engine \"setprofile\".",
                        "all of sys.monitoring's tool ids for profilers are taken: {}", holders);
  }

  // Its bit in sys.monitoring.events.
  int EventOf(const char* name) const {
    PyObject* const events = PyObject_GetAttrString(monitoring_, "events");
    PyObject* const event = events == nullptr ? nullptr : PyObject_GetAttrString(events, name);
    const int bit = event == nullptr ? 0 : static_cast<int>(PyLong_AsLong(event));
    Py_XDECREF(event);
    Py_XDECREF(events);
    return bit;
  }

  int SetEvents() {
    for (size_t i = 0; i < Count(); ++i) {
      auto* const callback = PyObject_New(Callback, &callback_type);
      if (callback == nullptr) return -1;
      callbacks_[i] = callback;
      callback->call = events_[i].callback;
      bits_[i] = EventOf(events_[i].name);
      PyObject* const before =
          PyObject_CallMethod(monitoring_, "register_callback", "iiO", tool_, bits_[i], callback);
      if (before == nullptr) return -1;
      Py_DECREF(before);
      // The end of a call of C comes with its beginning, and may not be asked for by itself.
      if (i <= kPythonEvents) all_ |= bits_[i];
    }
    // What the id's last holder, an earlier trace of ours too, has disabled is to be told again.
    Drop(PyObject_CallMethod(monitoring_, "restart_events", nullptr));
    PyObject* const set = PyObject_CallMethod(monitoring_, "set_events", "ii", tool_, all_);
    Py_XDECREF(set);
    return set == nullptr ? -1 : 0;
  }

  // Nothing: nobody.
  std::optional<std::string> HolderOf(int tool) const {
    PyObject* const holder = PyObject_CallMethod(monitoring_, "get_tool", "i", tool);
    const auto name = holder == Py_None ? std::nullopt : std::optional(TextOf(holder));
    Drop(holder);
    return name;
  }
  int EventsOf(int tool) const {
    PyObject* const events = PyObject_CallMethod(monitoring_, "get_events", "i", tool);
    const int bits = events == nullptr ? 0 : static_cast<int>(PyLong_AsLong(events));
    Drop(events);
    return bits;
  }

  const bool builtins_;
  const Events& events_;
  PyObject* monitoring_ = nullptr;
  int tool_ = -1;
  std::array<int, kEvents.size()> bits_{};
  std::array<Callback*, kEvents.size()> callbacks_{};
  int all_ = 0;  // that were asked for
};

}  // namespace

std::unique_ptr<Hooks> MakeMonitoringHooks(bool builtins) {
  return std::make_unique<MonitoringHooks>(builtins);
}

std::unique_ptr<Hooks> MakeEmptyHooks(bool builtins, Reads reads) {
  const Events& events =
      reads == Reads::kClock ? kEmptyEvents<Reads::kClock> : kEmptyEvents<Reads::kNothing>;
  return std::make_unique<MonitoringHooks>(builtins, events);
}

}  // namespace pystrobe::hooks

#endif
