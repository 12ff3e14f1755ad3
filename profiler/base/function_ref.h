// SPDX-License-Identifier: Apache-2.0
//
// A non-owning reference to something callable, for callbacks that do not outlive the call.
// (std::function_ref is C++26.)
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace pystrobe {

template <typename Signature>
class FunctionRef;

/// Refers to `callable`, which must live as long as the FunctionRef: pass it down, never store it.
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable)  // NOLINT(google-explicit-constructor): a lambda is the argument
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace pystrobe
