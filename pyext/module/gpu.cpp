// SPDX-License-Identifier: Apache-2.0
#include "pyext/module/gpu.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "gpu/event_timer.h"
#include "gpu/measure.h"
#include "gpu/nvtx.h"
#include "gpu/statistics.h"
#include "pyext/module/errors.h"
#include "pyext/module/region.h"
#include "pyext/module/text.h"

namespace py = pybind11;

namespace pystrobe::pyext {
namespace {

gpu::Stream ToStream(uintptr_t handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Python's libraries give handles as numbers
  return reinterpret_cast<gpu::Stream>(handle);
}

template <typename Function>
auto CallReleased(Function function) {
  const py::gil_scoped_release released;
  return function();
}

template <typename T>
auto ValueOf(Result<T> result) {
  if constexpr (std::is_void_v<T>) {
    if (!result) Raise(result.error());
  } else {
    return ValueOrRaise(std::move(result));
  }
}

// Without the GIL: the driver takes long to begin, and may wait for a lock of its own.
template <typename Function>
auto Released(Function function) {
  return ValueOf(CallReleased(function));
}

// The same of what waits for the device. Many a driver spins meanwhile, which is no work of the
// program's: what a profiler sees of it has a name of its own.
template <typename Function>
auto Waiting(Function function) {
  Region wait("GPU wait");
  wait.Enter();
  auto result = CallReleased(function);
  wait.Leave();
  return ValueOf(std::move(result));
}

py::list Devices() {
  py::list devices;
  for (const gpu::Device& device : Released(&gpu::ListDevices)) {
    devices.append(py::dict(
        py::arg("index") = device.index, py::arg("name") = device.name,
        py::arg("compute_capability") = py::make_tuple(device.compute_major, device.compute_minor),
        py::arg("multiprocessors") = device.multiprocessors,
        py::arg("memory_bytes") = device.memory_bytes, py::arg("l2_bytes") = device.l2_bytes,
        py::arg("clock_hz") = device.clock_hz, py::arg("memory_clock_hz") = device.memory_clock_hz,
        py::arg("memory_bus_bits") = device.memory_bus_bits));
  }
  return devices;
}

/// Calls a function of Python, and keeps what it raises. [GIL held]
class Call : public gpu::Workload {
 public:
  explicit Call(py::function function) : function_(std::move(function)) {}
  Result<void> Run() override {
    try {
      function_();
      // Functions of C hear of no signal.
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    } catch (py::error_already_set& error) {
      raised_ = std::make_unique<py::error_already_set>(std::move(error));
      return Fail(ErrorCode::kGpu, "the work that was to be measured failed");
    }
    return {};
  }
  void RaiseAgain() {
    if (raised_ == nullptr) return;
    raised_->restore();
    throw py::error_already_set();
  }

 private:
  py::function function_;
  std::unique_ptr<py::error_already_set> raised_;
};

py::dict DictOf(gpu::Measurement& measured) {
  return py::dict(
      py::arg("gpu_seconds") = std::move(measured.gpu_seconds),
      py::arg("cpu_seconds") = std::move(measured.cpu_seconds),
      py::arg("stop") = measured.stop == gpu::Measurement::Stop::kQuiet ? "quiet" : "time cap",
      py::arg("throttled") = measured.throttled, py::arg("empty_seconds") = measured.empty_seconds,
      py::arg("clock_hz") = measured.clock_hz);
}

py::list Measure(const std::vector<py::function>& functions, gpu::MeasureOptions options) {
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<gpu::Workload*> workloads;
  workloads.reserve(functions.size());
  for (const py::function& function : functions) {
    workloads.push_back(calls.emplace_back(std::make_unique<Call>(function)).get());
  }
  // With the GIL held from the first event to the second: to wait for it would be in the time.
  options.wait = [](FunctionRef<Result<void>()> waits) { return CallReleased(waits); };
  Released([&] { return gpu::EventTimer::Prepare(options.stream); });
  auto measured = gpu::MeasureInTurn(workloads, options);
  for (const auto& call : calls) call->RaiseAgain();
  py::list all;
  for (gpu::Measurement& one : ValueOrRaise(std::move(measured))) all.append(DictOf(one));
  return all;
}

// Times in seconds. `wait` is left to Measure().
void DefineMeasure(py::module_& module) {
  using gpu::MeasureOptions;
  py::class_<MeasureOptions>(module, "GpuMeasureOptions")
      .def(py::init<>())
      .def_property(
          "stream", py::cpp_function(),
          [](MeasureOptions& options, uintptr_t handle) { options.stream = ToStream(handle); })
      .def_readwrite("num_warmups", &MeasureOptions::num_warmups)
      .def_readwrite("flush_l2", &MeasureOptions::flush_l2)
      .def_readwrite("hold_back", &MeasureOptions::hold_back)
      .def_readwrite("min_samples", &MeasureOptions::min_samples)
      .def_readwrite("min_seconds", &MeasureOptions::min_seconds)
      .def_readwrite("max_noise", &MeasureOptions::max_noise)
      .def_readwrite("time_cap", &MeasureOptions::time_cap_seconds)
      .def_readwrite("low_clock", &MeasureOptions::low_clock)
      .def_property("patience", py::cpp_function(), [](MeasureOptions& options, double seconds) {
        options.patience = Nanoseconds(static_cast<Nanoseconds::rep>(seconds * 1e9));
      });
  module.def("gpu_measure", &Measure, py::arg("functions"), py::arg("options"));
}

/// A region that is a range for NVTX too. [with the GIL]
class Range : public Region {
 public:
  using Region::Region;
  void Enter() override {
    Region::Enter();
    gpu::PushNvtxRange(name());
  }
  void Leave() override {
    Region::Leave();
    gpu::PopNvtxRange();
  }
};

thread_local std::vector<Range> pushed;  // by this thread, and not popped
thread_local size_t num_pushed = 0;      // by this thread, popped or not

void Push(const py::object& name) {
  Range range(FromName(name, "a range"));
  range.Enter();
  pushed.push_back(std::move(range));
  ++num_pushed;
}

void Pop() {
  if (pushed.empty()) {
    Raise({ErrorCode::kInvalidArgument,
           fmt::format("this thread has no range to pop: it pushed {}, and has popped as many",
                       num_pushed),
           "Call range_pop() once for each range_push() of the same thread."});
  }
  pushed.back().Leave();
  pushed.pop_back();
}

void DefineRange(py::module_& module) {
  py::class_<Range, Region>(module, "GpuRange")
      .def(py::init([](const py::object& name) { return Range(FromName(name, "a range")); }),
           py::arg("name"));
  module.def("gpu_range_push", &Push, py::arg("name"),
             "Opens a range on this thread, until :func:`range_pop`. As :class:`range`.");
  module.def("gpu_range_pop", &Pop,
             "Closes the range that this thread has pushed last.\n\n"
             ":raises InvalidArgumentError: there is none.");
  module.def("gpu_range_start", &gpu::StartNvtxRange, py::arg("name"));
  module.def("gpu_range_end", &gpu::EndNvtxRange, py::arg("number"));
}

/// A timer that can be made before what it times, so that little is between that and its events.
/// These are recorded with the GIL held: to wait for that would be in the time.
class Timer {
 public:
  explicit Timer(uintptr_t stream) : stream_(ToStream(stream)) {
    Released([&] { return gpu::EventTimer::Prepare(stream_); });
  }
  void Start() {
    if (timer_) {
      Raise({ErrorCode::kInvalidArgument,
             fmt::format("the timer of stream {} was started already", fmt::ptr(stream_)),
             "Time each block with a timer of its own."});
    }
    timer_.emplace(ValueOf(gpu::EventTimer::Start(stream_)));
  }
  void Stop() { ValueOf(started().Stop()); }
  std::optional<double> Read() {
    gpu::EventTimer& timer = started();
    return Released([&] {
      const std::lock_guard one_at_a_time(mutex_);
      return timer.Read();
    });
  }
  double Wait() {
    gpu::EventTimer& timer = started();
    return Waiting([&] {
      const std::lock_guard one_at_a_time(mutex_);
      return timer.Wait();
    });
  }

 private:
  gpu::EventTimer& started() {
    if (!timer_) {
      Raise({ErrorCode::kInvalidArgument,
             fmt::format("the timer of stream {} was not started", fmt::ptr(stream_)),
             "Start it before the block that it times."});
    }
    return *timer_;
  }

  gpu::Stream stream_;
  std::mutex mutex_;  // once it has ended
  std::optional<gpu::EventTimer> timer_;
};

void DefineTimer(py::module_& module) {
  py::class_<Timer>(module, "GpuTimer")
      .def(py::init<uintptr_t>(), py::arg("stream"))
      .def("start", &Timer::Start)
      .def("stop", &Timer::Stop)
      .def("read", &Timer::Read)
      .def("wait", &Timer::Wait);
}

}  // namespace

void DefineGpu(py::module_& module) {
  DefineTimer(module);
  DefineRange(module);
  DefineMeasure(module);
  module.def("gpu_driver_version", [] { return Released(&gpu::DriverVersion); });
  module.def("gpu_is_initialized", [] { return Released(&gpu::IsInitialized); });
  module.def("gpu_devices", &Devices);
  module.def(
      "gpu_synchronize",
      [](std::optional<uintptr_t> stream) {
        Waiting([&] {
          return stream ? gpu::EventTimer::Synchronize(ToStream(*stream))
                        : gpu::EventTimer::SynchronizeAll();
        });
      },
      py::arg("stream"));
  module.def(
      "gpu_summarize",
      [](const std::vector<double>& seconds) {
        const gpu::Summary summary = gpu::Summarize(seconds);
        return py::dict(
            py::arg("count") = summary.count, py::arg("min") = summary.min,
            py::arg("max") = summary.max, py::arg("mean") = summary.mean,
            py::arg("median") = summary.median, py::arg("first_quartile") = summary.first_quartile,
            py::arg("third_quartile") = summary.third_quartile, py::arg("noise") = summary.noise);
      },
      py::arg("seconds"));
  module.def(
      "gpu_p_value",
      [](const std::vector<double>& some, const std::vector<double>& others) {
        return gpu::PValueOfDifference(some, others);
      },
      py::arg("some"), py::arg("others"));
}

}  // namespace pystrobe::pyext
