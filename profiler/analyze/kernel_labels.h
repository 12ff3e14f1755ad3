// SPDX-License-Identifier: Apache-2.0
//
// What to call kernels, so that no two are called alike. [any thread, const]
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "profiler/model/gpu_record.h"
#include "profiler/model/tables.h"

namespace pystrobe {

/// A kernel goes by its short name. Where that is the name of several, as it is of most that a
/// library makes of one template, as few of the arguments follow as tell them apart, without
/// namespaces where they still do:
/// "at::native::vectorized_elementwise_kernel<FillFunctor<int>>".
class KernelLabels {
 public:
  KernelLabels() = default;
  /// `tables` outlives it.
  KernelLabels(const GpuRecord& record, const Tables& tables);

  /// The label of a kernel of the record. As long as this and the tables are there.
  std::string_view Of(StringId name, StringId short_name) const;
  /// It has arguments of templates, told at its end.
  bool IsTold(StringId name) const { return labels_.contains(name); }

 private:
  const Tables* tables_ = nullptr;
  std::map<StringId, std::string> labels_;  // by name, where the short one does not do
};

}  // namespace pystrobe
