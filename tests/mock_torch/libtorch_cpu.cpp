// SPDX-License-Identifier: Apache-2.0
//
// What pystrobe asks of PyTorch's library, for programs that do without its gigabytes: nodes of
// autograd's, numbered and laid out as torch/csrc/autograd/function.h has them. One of them runs at
// a time, in whichever thread asks.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace at {
namespace sequence_number {

thread_local uint64_t next = 0;

EXPORT uint64_t peek() { return next; }

}  // namespace sequence_number

struct RecordFunction {
  EXPORT static uint64_t currentThreadId();
};

thread_local uint64_t thread = 1;

uint64_t RecordFunction::currentThreadId() { return thread; }

}  // namespace at

namespace torch::autograd {

struct Node : std::enable_shared_from_this<Node> {
  virtual ~Node() = default;
  virtual void apply() {}

  uint64_t sequence_nr = at::sequence_number::next++;
  uint64_t topological_nr = 0;
  bool has_parent = false;
  uint64_t thread_id = at::RecordFunction::currentThreadId();
};

namespace generated {

struct MulBackward0 : Node {};
struct SelectBackward0 : Node {};

}  // namespace generated

// Written by hand.
struct CopySlices : Node {};

std::vector<std::shared_ptr<Node>> all;
std::shared_ptr<Node> running;

EXPORT std::shared_ptr<Node> get_current_node() { return running; }

}  // namespace torch::autograd

using torch::autograd::Node;

/// "Mul", "Select" or "CopySlices"; its place among all.
extern "C" EXPORT uint64_t mock_torch_make(const char* kind) {
  std::shared_ptr<Node> node;
  if (std::strcmp(kind, "Mul") == 0) {
    node = std::make_shared<torch::autograd::generated::MulBackward0>();
  } else if (std::strcmp(kind, "Select") == 0) {
    node = std::make_shared<torch::autograd::generated::SelectBackward0>();
  } else {
    node = std::make_shared<torch::autograd::CopySlices>();
  }
  torch::autograd::all.push_back(node);
  return torch::autograd::all.size() - 1;
}

/// Of the calling thread.
extern "C" EXPORT void mock_torch_set_thread(uint64_t number) { at::thread = number; }

extern "C" EXPORT uint64_t mock_torch_sequence(uint64_t place) {
  return torch::autograd::all[place]->sequence_nr;
}

extern "C" EXPORT Node* mock_torch_node(uint64_t place) {
  return torch::autograd::all[place].get();
}

extern "C" EXPORT void mock_torch_run(uint64_t place) {
  torch::autograd::running = torch::autograd::all[place];
}

extern "C" EXPORT void mock_torch_run_none() { torch::autograd::running = nullptr; }
