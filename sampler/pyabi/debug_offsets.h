// SPDX-License-Identifier: Apache-2.0
//
// _Py_DebugOffsets as each release writes it at the start of _PyRuntime. Private to this room.
//
// Sources: Include/internal/pycore_runtime.h of 3.13, Include/internal/pycore_debug_offsets.h of
// 3.14 and 3.15. The structure has no directory of its sections, hence one mirror per minor
// release; within one it is stable from the first candidate on. Sections that are equal in all
// three are written once.
#pragma once

#include <cstdint>

namespace pystrobe::pyabi::debug_offsets {

struct Header {
  char cookie[8];
  uint64_t version;
  uint64_t free_threaded;
};

struct RuntimeState {
  uint64_t size, finalizing, interpreters_head;
};
struct PyObjectHead {
  uint64_t size, ob_type;
};
struct Sequence {
  uint64_t size, ob_item, ob_size;
};
struct Set {
  uint64_t size, used, table, mask;
};
struct Dict {
  uint64_t size, ma_keys, ma_values;
};
struct Float {
  uint64_t size, ob_fval;
};
struct Long {
  uint64_t size, lv_tag, ob_digit;
};
struct Bytes {
  uint64_t size, ob_size, ob_sval;
};
struct Generator {
  uint64_t size, gi_name, gi_iframe, gi_frame_state;
};
struct ListNode {
  uint64_t next, prev;
};
struct DebuggerSupport {
  uint64_t eval_breaker, remote_debugger_support, remote_debugging_enabled;
  uint64_t debugger_pending_call, debugger_script_path, debugger_script_path_size;
};

struct Interpreter13 {
  uint64_t size, id, next, threads_head, gc, imports_modules, sysdict, builtins, ceval_gil;
  uint64_t gil_runtime_state, gil_runtime_state_enabled, gil_runtime_state_locked;
  uint64_t gil_runtime_state_holder;
};
struct Interpreter14 {
  uint64_t size, id, next, threads_head, threads_main, gc, imports_modules, sysdict, builtins;
  uint64_t ceval_gil, gil_runtime_state, gil_runtime_state_enabled, gil_runtime_state_locked;
  uint64_t gil_runtime_state_holder, code_object_generation, tlbc_generation;
};

struct Thread13 {
  uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id;
  uint64_t datastack_chunk, status;
};
struct Thread15 {
  uint64_t size, prev, next, interp, current_frame, base_frame, last_profiled_frame;
  uint64_t last_profiled_frame_seq, thread_id, native_thread_id, datastack_chunk, status;
  uint64_t holds_gil, gil_requested, current_exception, exc_state;
};

struct Frame13 {
  uint64_t size, previous, executable, instr_ptr, localsplus, owner;
};
struct Frame14 {
  uint64_t size, previous, executable, instr_ptr, localsplus, owner, stackpointer, tlbc_index;
};

struct Code13 {
  uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames;
  uint64_t localspluskinds, co_code_adaptive;
};
struct Code14 {
  uint64_t size, filename, name, qualname, linetable, firstlineno, argcount, localsplusnames;
  uint64_t localspluskinds, co_code_adaptive, co_tlbc;
};

struct Type13 {
  uint64_t size, tp_name, tp_repr, tp_flags;
};
struct Type15 {
  uint64_t size, tp_name, tp_repr, tp_flags, tp_basicsize, tp_dictoffset;
};
struct HeapType15 {
  uint64_t size, ht_cached_keys;
};

struct Unicode13 {
  uint64_t size, state, length, asciiobject_size;
};
struct Unicode15 {
  uint64_t size, state, length, asciiobject_size, compactunicodeobject_size;
};

struct Gc13 {
  uint64_t size, collecting;
};
struct Gc15 {
  uint64_t size, collecting, frame, generation_stats_size, generation_stats;
};

struct Table13 {
  static constexpr int kMinor = 13;
  Header header;
  RuntimeState runtime_state;
  Interpreter13 interpreter_state;
  Thread13 thread_state;
  Frame13 interpreter_frame;
  Code13 code_object;
  PyObjectHead pyobject;
  Type13 type_object;
  Sequence tuple_object;
  Sequence list_object;
  Dict dict_object;
  Float float_object;
  Long long_object;
  Bytes bytes_object;
  Unicode13 unicode_object;
  Gc13 gc;
};
static_assert(sizeof(Table13) == 584);

struct Table14 {
  static constexpr int kMinor = 14;
  Header header;
  RuntimeState runtime_state;
  Interpreter14 interpreter_state;
  Thread13 thread_state;
  Frame14 interpreter_frame;
  Code14 code_object;
  PyObjectHead pyobject;
  Type13 type_object;
  Sequence tuple_object;
  Sequence list_object;
  Set set_object;
  Dict dict_object;
  Float float_object;
  Long long_object;
  Bytes bytes_object;
  Unicode13 unicode_object;
  Gc13 gc;
  Generator gen_object;
  ListNode llist_node;
  DebuggerSupport debugger_support;
};
static_assert(sizeof(Table14) == 760);

struct Table15 {
  static constexpr int kMinor = 15;
  Header header;
  RuntimeState runtime_state;
  Interpreter14 interpreter_state;
  Thread15 thread_state;
  uint64_t err_stackitem_exc_value;
  Frame14 interpreter_frame;
  Code14 code_object;
  PyObjectHead pyobject;
  Type15 type_object;
  HeapType15 heap_type_object;
  Sequence tuple_object;
  Sequence list_object;
  Set set_object;
  Dict dict_object;
  Float float_object;
  Long long_object;
  Bytes bytes_object;
  Unicode15 unicode_object;
  Gc15 gc;
  Generator gen_object;
  ListNode llist_node;
  DebuggerSupport debugger_support;
};
static_assert(sizeof(Table15) == 888);

}  // namespace pystrobe::pyabi::debug_offsets
