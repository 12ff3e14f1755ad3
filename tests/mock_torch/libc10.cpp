// SPDX-License-Identifier: Apache-2.0
//
// Whether operations make nodes, as PyTorch's libc10.so has it.

#define EXPORT __attribute__((visibility("default")))

namespace c10 {

thread_local bool makes_nodes = true;

struct GradMode {
  EXPORT static bool is_enabled();
};

bool GradMode::is_enabled() { return makes_nodes; }

}  // namespace c10

extern "C" EXPORT void mock_torch_set_grad(int on) { c10::makes_nodes = on != 0; }
