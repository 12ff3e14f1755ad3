// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

namespace pystrobe::hooks {

/// Up to 3.11 whoever makes an object may have to collect garbage, and so run finalizers, which
/// give the GIL away, end the tracing, or call what is traced. While one of these lives nobody
/// collects: of what is not prepared for that nothing may be asked of the interpreter without it.
/// Later ones collect between instructions. (3.9 can be told so by Python alone; what is asked
/// there makes no objects that are collected, but where it fails.) [GIL held]
class NoCollection {
 public:
#if PY_VERSION_HEX >= 0x030A0000 && PY_VERSION_HEX < 0x030C0000
  NoCollection() : was_enabled_(PyGC_Disable() != 0) {}
  ~NoCollection() {
    if (was_enabled_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;

 private:
  bool was_enabled_;
#else
  NoCollection() {}
#endif
};

}  // namespace pystrobe::hooks
