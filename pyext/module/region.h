// SPDX-License-Identifier: Apache-2.0
//
// A part of the program that has a name in reports.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "sampler/pyabi/memory.h"

namespace pystrobe::pyext {

/// A context manager: the frame that enters it is in the region until that is left. What belongs to
/// contextlib passes it on to the frame that called it, as it goes away before that. [with the GIL]
class Region {
 public:
  explicit Region(std::string name) : name_(std::move(name)) {}
  Region(Region&&) = default;
  Region& operator=(Region&&) = default;
  virtual ~Region() = default;

  const std::string& name() const { return name_; }
  /// Raises where no Python code runs.
  virtual void Enter();
  /// Leaves what was entered last, by this frame if it was one that did. Raises where nothing was.
  virtual void Leave();

 private:
  std::string name_;
  std::vector<pyabi::Address> entered_;  ///< frames, the last one last
};

void DefineRegion(pybind11::module_& module);

}  // namespace pystrobe::pyext
