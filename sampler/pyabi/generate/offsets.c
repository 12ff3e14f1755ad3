// SPDX-License-Identifier: Apache-2.0
//
// Prints where one CPython release keeps the fields of pystrobe::pyabi::Layout, one "struct.field
// offset" per line. Compiled by generate.py against the internal headers of that release; nothing
// of it is linked into pystrobe.
#define Py_BUILD_CORE 1
#define NEEDS_PY_IDENTIFIER 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>

#if PY_VERSION_HEX < 0x03090000
#include <internal/pycore_pystate.h>
#else
#include <internal/pycore_gc.h>
#include <internal/pycore_gil.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#include <internal/pycore_interpframe_structs.h>
#endif
#define FRAME _PyInterpreterFrame
#else
#include <code.h>
#define FRAME PyFrameObject
#endif

#define OFFSET(name, type, field) printf("%s %zu\n", name, offsetof(type, field))
#define SIZE(name, type) printf("%s %zu\n", name, sizeof(type))
#define END(name, type, field) \
  printf("%s %zu\n", name, offsetof(type, field) + sizeof(((type*)0)->field))

static void PrintRuntime(void) {
  OFFSET("runtime.interpreters_head", _PyRuntimeState, interpreters.head);
#if PY_VERSION_HEX < 0x030C0000
  OFFSET("runtime.gil", _PyRuntimeState, ceval.gil);
  OFFSET("runtime.tstate_current", _PyRuntimeState, gilstate.tstate_current);
#endif
#if PY_VERSION_HEX < 0x03090000
  OFFSET("runtime.gc_collecting", _PyRuntimeState, gc.collecting);
#endif
  OFFSET("interpreter.next", PyInterpreterState, next);
  OFFSET("interpreter.id", PyInterpreterState, id);
#if PY_VERSION_HEX >= 0x030B0000
  OFFSET("interpreter.threads_head", PyInterpreterState, threads.head);
#else
  OFFSET("interpreter.threads_head", PyInterpreterState, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030C0000
  OFFSET("interpreter.ceval_gil", PyInterpreterState, ceval.gil);
  OFFSET("interpreter.imports_modules", PyInterpreterState, imports.modules);
#else
  OFFSET("interpreter.imports_modules", PyInterpreterState, modules);
#endif
#if PY_VERSION_HEX >= 0x03090000
  OFFSET("interpreter.gc_collecting", PyInterpreterState, gc.collecting);
#endif
#if PY_VERSION_HEX >= 0x030E0000
  OFFSET("interpreter.code_object_generation", PyInterpreterState, _code_object_generation);
#endif
#if PY_VERSION_HEX >= 0x030E0000 && defined(Py_GIL_DISABLED)
  OFFSET("interpreter.tlbc_generation", PyInterpreterState, tlbc_indices.tlbc_generation);
#endif
#ifdef Py_GIL_DISABLED
  OFFSET("gil.enabled", struct _gil_runtime_state, enabled);
#endif
  OFFSET("gil.last_holder", struct _gil_runtime_state, last_holder);
  OFFSET("gil.locked", struct _gil_runtime_state, locked);
  OFFSET("gil.switch_number", struct _gil_runtime_state, switch_number);
}

static void PrintThread(void) {
#if PY_VERSION_HEX >= 0x030B0000
  END("thread.size", PyThreadState, datastack_top);
#else
  END("thread.size", PyThreadState, thread_id);
#endif
  OFFSET("thread.next", PyThreadState, next);
  OFFSET("thread.interp", PyThreadState, interp);
  OFFSET("thread.thread_id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030F0000
  OFFSET("thread.base_frame", PyThreadState, base_frame);
  OFFSET("thread.holds_gil", PyThreadState, holds_gil);
#endif
#if PY_VERSION_HEX >= 0x030D0000
  OFFSET("thread.frame", PyThreadState, current_frame);
  OFFSET("thread.status", PyThreadState, _status);
  OFFSET("thread.state", PyThreadState, state);
#elif PY_VERSION_HEX >= 0x030B0000
  OFFSET("thread.cframe", PyThreadState, cframe);
  OFFSET("thread.root_cframe", PyThreadState, root_cframe);
  OFFSET("cframe.current_frame", _PyCFrame, current_frame);
  OFFSET("cframe.previous", _PyCFrame, previous);
#endif
#if PY_VERSION_HEX >= 0x030B0000
  OFFSET("thread.native_thread_id", PyThreadState, native_thread_id);
  OFFSET("thread.datastack_chunk", PyThreadState, datastack_chunk);
  OFFSET("thread.datastack_top", PyThreadState, datastack_top);
#else
  OFFSET("thread.frame", PyThreadState, frame);
#endif
}

static void PrintFrame(void) {
#if PY_VERSION_HEX >= 0x030B0000
  OFFSET("frame.size", FRAME, localsplus);
  OFFSET("frame.previous", FRAME, previous);
#if PY_VERSION_HEX >= 0x030D0000
  OFFSET("frame.code", FRAME, f_executable);
  OFFSET("frame.instruction", FRAME, instr_ptr);
#else
  OFFSET("frame.code", FRAME, f_code);
  OFFSET("frame.instruction", FRAME, prev_instr);
#endif
  OFFSET("frame.owner", FRAME, owner);
#if PY_VERSION_HEX < 0x030C0000
  OFFSET("frame.is_entry", FRAME, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030E0000
  OFFSET("frame.stackpointer", FRAME, stackpointer);
#ifdef Py_GIL_DISABLED
  OFFSET("frame.tlbc_index", FRAME, tlbc_index);
#endif
#else
  OFFSET("frame.stacktop", FRAME, stacktop);
#endif
  OFFSET("frame.localsplus", FRAME, localsplus);
  // _PyStackChunk is written into Layout by hand, for releases whose headers are not at hand too.
  OFFSET("chunk.previous", _PyStackChunk, previous);
  OFFSET("chunk.size", _PyStackChunk, size);
  OFFSET("chunk.top", _PyStackChunk, top);
  OFFSET("chunk.data", _PyStackChunk, data);
#else
#if PY_VERSION_HEX >= 0x030A0000
  END("frame.size", FRAME, f_state);
  OFFSET("frame.executing", FRAME, f_state);
#else
  END("frame.size", FRAME, f_executing);
  OFFSET("frame.executing", FRAME, f_executing);
#endif
  OFFSET("frame.previous", FRAME, f_back);
  OFFSET("frame.code", FRAME, f_code);
  OFFSET("frame.instruction", FRAME, f_lasti);
  OFFSET("frame.generator", FRAME, f_gen);
  OFFSET("frame.localsplus", FRAME, f_localsplus);
#endif
}

static void PrintCode(void) {
#if PY_VERSION_HEX >= 0x030B0000
#if PY_VERSION_HEX >= 0x030D0000
  OFFSET("code.size", PyCodeObject, co_code_adaptive);
#else
  END("code.size", PyCodeObject, co_linetable);
#endif
#if PY_VERSION_HEX >= 0x030E0000 && defined(Py_GIL_DISABLED)
  OFFSET("code.tlbc", PyCodeObject, co_tlbc);
#endif
  OFFSET("code.qualname", PyCodeObject, co_qualname);
  OFFSET("code.bytecode", PyCodeObject, co_code_adaptive);
  OFFSET("code.unit_count", PyCodeObject, ob_base.ob_size);
  OFFSET("code.locals_names", PyCodeObject, co_localsplusnames);
  OFFSET("code.locals_kinds", PyCodeObject, co_localspluskinds);
#else
#if PY_VERSION_HEX >= 0x030A0000
  END("code.size", PyCodeObject, co_linetable);
#else
  END("code.size", PyCodeObject, co_lnotab);
#endif
  OFFSET("code.bytecode", PyCodeObject, co_code);
  OFFSET("code.locals_names", PyCodeObject, co_varnames);
  OFFSET("code.cell_names", PyCodeObject, co_cellvars);
  OFFSET("code.free_names", PyCodeObject, co_freevars);
#endif
#if PY_VERSION_HEX >= 0x030A0000
  OFFSET("code.line_table", PyCodeObject, co_linetable);
#else
  OFFSET("code.line_table", PyCodeObject, co_lnotab);
#endif
  OFFSET("code.type", PyObject, ob_type);
  OFFSET("code.filename", PyCodeObject, co_filename);
  OFFSET("code.name", PyCodeObject, co_name);
  OFFSET("code.first_line", PyCodeObject, co_firstlineno);
  OFFSET("code.flags", PyCodeObject, co_flags);
  OFFSET("code.arg_count", PyCodeObject, co_argcount);
  OFFSET("code.keyword_arg_count", PyCodeObject, co_kwonlyargcount);
}

static void PrintObjects(void) {
  OFFSET("object.type", PyObject, ob_type);
  OFFSET("object.type_name", PyTypeObject, tp_name);
  OFFSET("object.type_flags", PyTypeObject, tp_flags);
  OFFSET("object.type_basic_size", PyTypeObject, tp_basicsize);
  OFFSET("object.type_dict_offset", PyTypeObject, tp_dictoffset);
  OFFSET("object.type_cached_keys", PyHeapTypeObject, ht_cached_keys);
  OFFSET("object.bytes_size", PyBytesObject, ob_base.ob_size);
  OFFSET("object.bytes_data", PyBytesObject, ob_sval);
  OFFSET("object.unicode_length", PyASCIIObject, length);
  OFFSET("object.unicode_state", PyASCIIObject, state);
  SIZE("object.ascii_data", PyASCIIObject);
  SIZE("object.compact_data", PyCompactUnicodeObject);
  OFFSET("object.tuple_items", PyTupleObject, ob_item);
  OFFSET("object.tuple_size", PyTupleObject, ob_base.ob_size);
  OFFSET("object.list_items", PyListObject, ob_item);
  OFFSET("object.list_size", PyListObject, ob_base.ob_size);
  OFFSET("object.set_used", PySetObject, used);
  OFFSET("object.float_value", PyFloatObject, ob_fval);
#if PY_VERSION_HEX >= 0x030C0000
  OFFSET("object.long_tag", PyLongObject, long_value.lv_tag);
  OFFSET("object.long_digits", PyLongObject, long_value.ob_digit);
#else
  OFFSET("object.long_tag", PyLongObject, ob_base.ob_size);
  OFFSET("object.long_digits", PyLongObject, ob_digit);
#endif
  OFFSET("object.dict_used", PyDictObject, ma_used);
  OFFSET("object.dict_keys", PyDictObject, ma_keys);
  OFFSET("object.dict_values", PyDictObject, ma_values);
  OFFSET("object.cell_value", PyCellObject, ob_ref);
}

int main(void) {
  printf("version %u\n", (unsigned)PY_VERSION_HEX);
  PrintRuntime();
  PrintThread();
  PrintFrame();
  PrintCode();
  PrintObjects();
  return 0;
}
