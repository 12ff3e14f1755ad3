// SPDX-License-Identifier: Apache-2.0
#include "pyext/hooks/functions.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "profiler/base/utf8.h"
#include "pyext/hooks/greenlets.h"
#include "pyext/hooks/held_error.h"
#include "pyext/hooks/hooks.h"
#include "pyext/hooks/no_collection.h"

namespace pystrobe::hooks {
namespace {

// No file: they are written in C.
constexpr std::string_view kBuiltIn = "<built-in>";

// Raises nothing, whatever is in it, and makes no object.
std::string TextOf(PyObject* text) {
  if (!PyUnicode_Check(text)) return "?";
#if PY_VERSION_HEX < 0x030C0000
  if (PyUnicode_READY(text) != 0) {
    PyErr_Clear();
    return "?";
  }
#endif
  const auto width = static_cast<uint32_t>(PyUnicode_KIND(text));
  const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
  const auto* const data = static_cast<const std::byte*>(PyUnicode_DATA(text));
  return ToUtf8({data, length * width}, width);
}

trace::FunctionFacts FactsOfCode(PyObject* object) {
  const auto* code = reinterpret_cast<PyCodeObject*>(object);
#if PY_VERSION_HEX >= 0x030B0000
  PyObject* const name = code->co_qualname;
#else
  PyObject* const name = code->co_name;
#endif
  return {TextOf(name), TextOf(code->co_filename), static_cast<uint32_t>(code->co_firstlineno)};
}

struct GiveBack {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, GiveBack>;

// New references, or null. Without the interpreter's lock others may change either at any time.
#ifdef Py_GIL_DISABLED
PyObject* PathList() {
  const Owned sys(PyImport_AddModuleRef("sys"));
  return sys == nullptr ? nullptr : PyObject_GetAttrString(sys.get(), "path");
}
PyObject* ItemOf(PyObject* list, Py_ssize_t i) { return PyList_GetItemRef(list, i); }
#else
PyObject* PathList() {
  PyObject* const list = PySys_GetObject("path");
  Py_XINCREF(list);
  return list;
}
PyObject* ItemOf(PyObject* list, Py_ssize_t i) {
  if (i >= PyList_GET_SIZE(list)) return nullptr;
  PyObject* const item = PyList_GET_ITEM(list, i);
  Py_INCREF(item);
  return item;
}
#endif

// A script that is started as ./src/work.py has that in the name of its file.
std::string Normalized(const std::string& file) {
  return file.find("/.") == std::string::npos
             ? file
             : std::filesystem::path(file).lexically_normal().string();
}

// What the program has there now, where it is a list of texts, as seen from the root.
std::vector<std::string> SysPath() {
  std::vector<std::string> path;
  std::error_code none;
  const std::filesystem::path here = std::filesystem::current_path(none);
  const Owned list(PathList());
  if (list == nullptr || !PyList_Check(list.get())) return path;
  for (Py_ssize_t i = 0;; ++i) {
    const Owned entry(ItemOf(list.get(), i));
    if (entry == nullptr) break;
    if (!PyUnicode_Check(entry.get())) continue;
    path.push_back((here / TextOf(entry.get())).lexically_normal().string());
  }
  PyErr_Clear();
  return path;
}

bool IsAmong(const PyMethodDef* methods, const PyMethodDef* wanted) {
  for (; methods != nullptr && methods->ml_name != nullptr; ++methods) {
    if (methods == wanted) return true;
  }
  return false;
}

// The type that has the method, of those that `type` is derived from: all of them call the same.
// nullptr: none of them has.
PyTypeObject* TypeThatHas(const PyMethodDef* method, const PyTypeObject* type) {
  if (type->tp_mro == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (IsAmong(base->tp_methods, method)) return base;
  }
  return nullptr;
}

// Of whose methods `function` is one.
PyTypeObject* TypeOfSelf(const PyCFunctionObject& function) {
  PyObject* const self = function.m_self;
  return PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
}

std::string OwnerOf(const PyCFunctionObject& function) {
  PyObject* const self = function.m_self;
  if (self == nullptr) return "";
  if (PyModule_Check(self)) {
    const char* name = PyModule_GetName(self);
    if (name == nullptr) PyErr_Clear();
    return name == nullptr ? "" : name;
  }
  const PyTypeObject* const type = TypeOfSelf(function);
  const PyTypeObject* const has = TypeThatHas(function.m_ml, type);
  return (has != nullptr ? has : type)->tp_name;
}

bool IsOfALibrary(const void* definition) {
  Dl_info library;
  return dladdr(definition, &library) != 0;
}

// What the definition of a callable goes with; nullptr: it stays. One that is of no library was
// allocated, for a type (PyO3) or for this one function (pybind11). What a method is bound to is
// the program's, and not to be kept.
PyObject* OwnerOfDefinition(PyObject* callable, const void* definition) {
  if (IsOfALibrary(definition)) return nullptr;
  if (!PyCFunction_Check(callable)) return callable;
  const auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
  if (function->m_self == nullptr) return callable;
  PyTypeObject* const type = TypeThatHas(function->m_ml, TypeOfSelf(*function));
  return type != nullptr ? reinterpret_cast<PyObject*>(type) : callable;
}

std::string NameOfCallable(PyObject* callable) {
  std::string owner, name;
  if (PyCFunction_Check(callable)) {
    const auto* function = reinterpret_cast<PyCFunctionObject*>(callable);
    owner = OwnerOf(*function);
    name = function->m_ml->ml_name;
  } else if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
    owner = PyDescr_TYPE(callable)->tp_name;
    name = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  } else if (PyType_Check(callable)) {
    name = reinterpret_cast<PyTypeObject*>(callable)->tp_name;
  } else {
    owner = Py_TYPE(callable)->tp_name;
    name = "__call__";
  }
  return owner.empty() || owner == "builtins" ? name : fmt::format("{}.{}", owner, name);
}

}  // namespace

Functions::~Functions() {
  for (const auto& [key, object] : kept_) Py_XDECREF(object);
}

trace::Key Functions::KeyOfCallable(PyObject* callable, trace::ThreadTrace& trace) {
  trace::Key key = QuickKeyOfCallable(callable);
  const bool has_definition = key != nullptr || PyCFunction_Check(callable);
  if (key == nullptr && has_definition) {
    key = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  } else if (!has_definition) {
    key = PyType_Check(callable) ? callable : reinterpret_cast<PyObject*>(Py_TYPE(callable));
  }
  if (trace.WasMet(key)) [[likely]]
    return key;
  if (!IsKept(key)) {
    PyObject* const type = static_cast<PyObject*>(const_cast<void*>(key));
    try {
      Keep(key, has_definition ? OwnerOfDefinition(callable, key) : type, callable);
    } catch (const std::bad_alloc&) {
      fed.session->NoteLackOfMemory();
      return nullptr;
    }
  }
  trace.NoteMet(key);
  return key;
}

bool Functions::IsKept(trace::Key key) {
  const std::scoped_lock lock(mutex_);
  return kept_.contains(key);
}

void Functions::Keep(trace::Key key, PyObject* object, PyObject* callable) {
  const HeldError held;
  const NoCollection none_collects;
  auto facts = std::make_unique<const trace::FunctionFacts>(NameOfCallable(callable),
                                                            std::string(kBuiltIn), 0U);
  const std::scoped_lock lock(mutex_);
  facts_.emplace(key, std::move(facts));  // first: what is kept has them
  if (kept_.emplace(key, object).second) Py_XINCREF(object);
}

// What is asked of the interpreter is asked without the lock: where it has none of its own another
// thread may come first.
bool Functions::Admits(trace::Key key) {
  const NoCollection none_collects;
  // Those of C are kept before they are entered.
  auto* const code = static_cast<PyObject*>(const_cast<void*>(key));
  {
    const std::scoped_lock lock(mutex_);
    if (kept_.emplace(key, code).second) Py_INCREF(code);
    const auto known = admits_.find(key);
    if (known != admits_.end()) return known->second;
  }
  thread_names_.Look();
  // Whoever loads them calls something new.
  LookForGreenlets();
  if (filter_.IsEmpty() && !names_at_once_) return true;
  const HeldError held;
  const trace::FunctionFacts& facts = FactsOf(key);
  if (filter_.IsEmpty()) return true;
  const std::string file = Normalized(facts.file);
  const trace::NamedFunction function{facts.name, file, trace::ModulesOf(file, SysPath())};
  const bool admits = filter_.Admits(function);
  const std::scoped_lock lock(mutex_);
  unused_.Look(function);
  return admits_.emplace(key, admits).first->second;
}

std::vector<std::string> Functions::UnusedPatterns() {
  const std::scoped_lock lock(mutex_);
  return unused_.texts();
}

bool Functions::IsRefused(trace::Key key) {
  if (filter_.IsEmpty()) return false;
  const std::scoped_lock lock(mutex_);
  const auto known = admits_.find(key);
  return known != admits_.end() && !known->second;
}

bool Functions::IsOfTheProgram(trace::Key key) {
  const HeldError held;
  return !IsHidden(key);
}

bool Functions::IsHidden(trace::Key key) {
  return !hidden_.empty() && FactsOf(key).file.starts_with(hidden_);
}

const trace::FunctionFacts& Functions::FactsOf(trace::Key key) {
  PyObject* code = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto known = facts_.find(key);
    if (known != facts_.end()) return *known->second;
    code = kept_.at(key);
  }
  auto facts = std::make_unique<const trace::FunctionFacts>(FactsOfCode(code));
  const std::scoped_lock lock(mutex_);
  return *facts_.emplace(key, std::move(facts)).first->second;
}

}  // namespace pystrobe::hooks
