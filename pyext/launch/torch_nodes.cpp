// SPDX-License-Identifier: Apache-2.0
#include "pyext/launch/torch_nodes.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <typeinfo>

#include "profiler/base/read_own.h"

namespace pystrobe::launch {

/// What is read of torch::autograd::Node (torch/csrc/autograd/function.h), as in 2.11; Prove() sees
/// whether it is so.
struct TorchNodes::Node {
  const void* const* functions;       // its virtual ones; before them its type_info
  std::array<const void*, 2> myself;  // std::enable_shared_from_this
  uint64_t sequence;
  uint64_t depth;
  bool has_parent;
  uint64_t thread;
};

namespace {

// What derivatives.yaml describes: their node is made before anything is launched. Of functions
// written by hand, in C++ or in Python, it need not be.
constexpr std::string_view kDescribed = "N5torch8autograd9generated";
constexpr std::string_view kBackward = "Backward";

template <typename Function>
bool Get(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<const TorchNodes> TorchNodes::Find(const std::vector<std::string>& views) {
  // Of those that are loaded, which are never unloaded.
  void* const torch = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  void* const c10 = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  if (torch == nullptr || c10 == nullptr || views.empty()) return nullptr;
  Functions functions{};
  const bool has_all = Get(torch, "_ZN2at15sequence_number4peekEv", functions.next) &&
                       Get(c10, "_ZN3c108GradMode10is_enabledEv", functions.makes) &&
                       Get(torch, "_ZN2at14RecordFunction15currentThreadIdEv", functions.thread) &&
                       Get(torch, "_ZN5torch8autograd16get_current_nodeEv", functions.running);
  if (!has_all) return nullptr;
  return std::unique_ptr<const TorchNodes>(new TorchNodes(functions, views));
}

TorchNodes::TorchNodes(Functions functions, const std::vector<std::string>& views)
    : functions_(functions), views_(views), is_view_(views_.begin(), views_.end()) {}

std::optional<NodeNumber> TorchNodes::LastMade() const noexcept {
  const uint64_t next = functions_.next();
  if (next == 0 || !functions_.makes()) return std::nullopt;
  return NodeNumber{.sequence = next - 1, .thread = functions_.thread()};
}

bool TorchNodes::Prove(PyObject* node, uint64_t sequence) const noexcept {
  if (is_right_.load(std::memory_order_relaxed)) return true;
  // THPCppFunction (torch/csrc/autograd/python_cpp_function.h), which those in Python are not.
  using Held = std::shared_ptr<Node>;
  constexpr auto kSize = static_cast<Py_ssize_t>(sizeof(PyObject) + sizeof(Held));
  if (Py_TYPE(node)->tp_basicsize != kSize) return false;
  const Node* held = nullptr;
  std::memcpy(&held, reinterpret_cast<const std::byte*>(node) + sizeof(PyObject), sizeof held);
  Node seen{};
  if (!ReadOwn(held, &seen, sizeof seen)) return false;
  if (seen.sequence != sequence || seen.thread != functions_.thread()) return false;
  is_right_.store(true, std::memory_order_release);
  return true;
}

std::optional<NodeNumber> TorchNodes::Running() const noexcept {
  if (!is_right_.load(std::memory_order_acquire)) return std::nullopt;
  const auto node = functions_.running();
  if (node == nullptr) return std::nullopt;
  // The two words before a type's functions are of the Itanium C++ ABI: its type_info comes last.
  const auto* const type = static_cast<const std::type_info*>(node->functions[-1]);
  if (!LaunchesFirst(type->name())) return std::nullopt;
  return NodeNumber{.sequence = node->sequence, .thread = node->thread};
}

// "N5torch8autograd9generated15SelectBackward0E" is not, where "Select" is a view.
bool TorchNodes::LaunchesFirst(std::string_view type) const noexcept {
  if (!type.starts_with(kDescribed)) return false;
  type.remove_prefix(kDescribed.size());
  type.remove_prefix(std::min(type.find_first_not_of("0123456789"), type.size()));
  return !is_view_.contains(type.substr(0, type.find(kBackward)));
}

}  // namespace pystrobe::launch
