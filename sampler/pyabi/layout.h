// SPDX-License-Identifier: Apache-2.0
//
// Where CPython keeps what a sampler needs, normalised over 3.8 to 3.15. Filled from tables made by
// the committed generator (3.8-3.12) or from the target's own _Py_DebugOffsets (3.13+).
//
// All offsets in bytes from the start of the structure named. kAbsent where a version has no such
// field; code must ask before it uses one of those.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "profiler/base/error.h"
#include "sampler/pyabi/memory.h"

namespace pystrobe::pyabi {

inline constexpr uint32_t kAbsent = UINT32_MAX;

/// Bits of PyThreadState._status (Include/cpython/pystate.h). Its thread_id is that of its thread
/// from when the first is set until the second is too, 3.12+ (tstate_is_bound in Python/pystate.c).
inline constexpr uint32_t kStatusBound = 1U << 1, kStatusUnbound = 1U << 2;
/// The thread is attached, 3.12+.
inline constexpr uint32_t kStatusActive = 1U << 4;
/// Set where a state is made the thread's current one, and cleared in the one that was, 3.13+
/// (tstate_activate in Python/pystate.c).
inline constexpr uint32_t kStatusBoundGilstate = 1U << 3;

struct PyVersion {
  uint8_t major = 0, minor = 0, micro = 0;
  uint8_t release_level = 0xf;  ///< 0xa alpha, 0xb beta, 0xc candidate, 0xf final
  uint8_t serial = 0;

  static PyVersion FromHex(uint32_t hex);  ///< PY_VERSION_HEX
  std::string ToString() const;            ///< "3.13.0", "3.15.0rc1"
  friend auto operator<=>(const PyVersion&, const PyVersion&) = default;
};

/// How frames are kept.
enum class FrameStyle : uint8_t {
  kFrameObjects,       ///< 3.8-3.10: a linked list of PyFrameObject on the heap
  kInterpreterFrames,  ///< 3.11+: _PyInterpreterFrame in chunks of a per-thread data stack
};

/// How the line table is encoded.
enum class LineTableStyle : uint8_t {
  kLnotab,     ///< 3.8, 3.9: co_lnotab
  kLinetable,  ///< 3.10: PEP 626 co_linetable
  kLocations,  ///< 3.11+: PEP 657 location table
};

/// How much of a GIL is copied.
inline constexpr uint32_t kGilBytes = 48;

struct Layout {
  PyVersion version;
  bool free_threaded = false;
  FrameStyle frame_style = FrameStyle::kInterpreterFrames;
  LineTableStyle line_table_style = LineTableStyle::kLocations;

  struct {
    uint32_t interpreters_head = kAbsent;
    uint32_t gil = kAbsent;             ///< 3.8-3.11: the GIL structure itself, inside _PyRuntime
    uint32_t tstate_current = kAbsent;  ///< 3.8-3.11: gilstate.tstate_current, the holder
    uint32_t gc_collecting = kAbsent;   ///< 3.8 only; later in the interpreter
  } runtime;

  struct {
    uint32_t next = kAbsent;
    uint32_t id = kAbsent;
    uint32_t threads_head = kAbsent;
    uint32_t ceval_gil = kAbsent;               ///< 3.12+: *pointer* to the interpreter's GIL
    uint32_t imports_modules = kAbsent;         ///< the sys.modules dict
    uint32_t gc_collecting = kAbsent;           ///< int, 3.9+
    uint32_t code_object_generation = kAbsent;  ///< 3.14+
    uint32_t tlbc_generation = kAbsent;         ///< 3.14t+
  } interpreter;

  /// struct _gil_runtime_state; all within its first kGilBytes.
  struct {
    uint32_t last_holder = kAbsent;
    uint32_t locked = kAbsent;  ///< int: 1 held, 0 free, -1 not created yet
    uint32_t switch_number =
        kAbsent;                 ///< counts changes of last_holder (Python/ceval_gil.c, take_gil)
    uint32_t enabled = kAbsent;  ///< int, free-threaded builds only
  } gil;

  struct {
    uint32_t size = kAbsent;  ///< bytes that hold every field below
    uint32_t next = kAbsent;
    uint32_t interp = kAbsent;
    uint32_t thread_id = kAbsent;         ///< pthread_self()
    uint32_t native_thread_id = kAbsent;  ///< 3.11+
    uint32_t frame = kAbsent;             ///< 3.8-3.10 PyFrameObject*; 3.13+ current_frame
    uint32_t cframe = kAbsent;            ///< 3.11, 3.12: the innermost _PyCFrame
    uint32_t root_cframe = kAbsent;       ///< 3.11, 3.12: the outermost one lies here, past `size`
    uint32_t datastack_chunk = kAbsent;   ///< 3.11+
    uint32_t datastack_top = kAbsent;     ///< 3.11+
    uint32_t status = kAbsent;            ///< 3.13+: bit field, see kStatusActive
    uint32_t state = kAbsent;             ///< 3.13+: int, 0 detached, 1 attached, 2 suspended, ...
    uint32_t base_frame = kAbsent;        ///< 3.15+: address of the sentinel frame is stored here
    uint32_t holds_gil = kAbsent;         ///< 3.15+
  } thread;

  /// _PyCFrame, 3.11 and 3.12: what each run of the evaluation loop keeps on the C stack.
  struct {
    uint32_t current_frame = kAbsent;
    uint32_t previous = kAbsent;  ///< the one of the run around it
  } cframe;

  /// PyFrameObject (kFrameObjects) or _PyInterpreterFrame.
  struct {
    uint32_t size = kAbsent;          ///< bytes that hold every field below, localsplus excluded
    uint32_t previous = kAbsent;      ///< f_back
    uint32_t code = kAbsent;          ///< f_code / f_executable
    uint32_t instruction = kAbsent;   ///< f_lasti (int) / prev_instr / instr_ptr (pointer)
    uint32_t executing = kAbsent;     ///< char: 3.8, 3.9 f_executing; 3.10 f_state
    uint32_t generator = kAbsent;     ///< 3.8-3.10: the generator it is of, or null
    uint32_t owner = kAbsent;         ///< 3.11+
    uint32_t is_entry = kAbsent;      ///< 3.11
    uint32_t stacktop = kAbsent;      ///< 3.11-3.13: int, -1 while the frame executes
    uint32_t stackpointer = kAbsent;  ///< 3.14+: address of the first free stack slot
    uint32_t tlbc_index = kAbsent;    ///< 3.14t+
    uint32_t localsplus = kAbsent;
    uint64_t code_tag_mask = 0;  ///< bits to clear in `code` (3.14+: 7)
  } frame;

  /// _PyStackChunk: previous 0, size 8, top 16, data 24 (Include/cpython/pystate.h, 3.11-3.15).
  struct {
    uint32_t previous = 0, size = 8, top = 16, data = 24;
  } chunk;

  struct {
    uint32_t size = kAbsent;  ///< bytes that hold every field below, co_code_adaptive excluded
    uint32_t type = 8;        ///< ob_type
    uint32_t filename = kAbsent, name = kAbsent, qualname = kAbsent;
    uint32_t first_line = kAbsent;
    uint32_t line_table = kAbsent;  ///< pointer to bytes
    uint32_t flags = kAbsent;
    uint32_t arg_count = kAbsent;
    uint32_t keyword_arg_count = kAbsent;
    uint32_t bytecode = kAbsent;      ///< 3.11+: co_code_adaptive; <=3.10: pointer to co_code bytes
    uint32_t unit_count = kAbsent;    ///< 3.11+: ob_size, the length of the bytecode in code units
    uint32_t tlbc = kAbsent;          ///< 3.14t+: _PyCodeArray*
    uint32_t locals_names = kAbsent;  ///< co_localsplusnames (3.11+) / co_varnames
    uint32_t locals_kinds = kAbsent;  ///< 3.11+
    uint32_t cell_names = kAbsent, free_names = kAbsent;  ///< <=3.10
  } code;

  struct {
    uint32_t type = 8;             ///< ob_type
    uint32_t type_name = kAbsent;  ///< tp_name in PyTypeObject
    uint32_t type_flags = kAbsent;
    uint32_t type_basic_size = kAbsent, type_dict_offset = kAbsent;
    uint32_t type_cached_keys = kAbsent;  ///< ht_cached_keys in PyHeapTypeObject
    uint32_t bytes_size = kAbsent, bytes_data = kAbsent;
    uint32_t unicode_length = kAbsent, unicode_state = kAbsent;
    uint32_t unicode_kind_shift = 2;  ///< bits of the state before `kind`
    uint32_t ascii_data = kAbsent;    ///< sizeof(PyASCIIObject)
    uint32_t compact_data = kAbsent;  ///< sizeof(PyCompactUnicodeObject)
    uint32_t tuple_items = kAbsent, tuple_size = kAbsent;
    uint32_t list_items = kAbsent, list_size = kAbsent;
    uint32_t set_used = kAbsent;
    uint32_t float_value = kAbsent;
    uint32_t cell_value = kAbsent;                       ///< ob_ref
    uint32_t long_tag = kAbsent, long_digits = kAbsent;  ///< <=3.11: long_tag is ob_size
    uint32_t dict_used = kAbsent, dict_keys = kAbsent, dict_values = kAbsent;
  } object;
};

/// Whether a frame with this _PyInterpreterFrame.owner is Python's. The first three values are the
/// same in every version: a thread, a generator, a frame object. Others by version: 3.11 none;
/// 3.12, 3.13: 3 (C stack); 3.14: 3 (interpreter), 4 (C stack); 3.15: 3 (interpreter).
constexpr bool IsPythonOwner(uint8_t owner) { return owner <= 2; }
/// The same where a frame may have no owner (before 3.11): then it is.
inline bool IsPythonFrame(const Layout& layout, uint8_t owner) {
  return layout.frame.owner == kAbsent || IsPythonOwner(owner);
}

/// The committed table for a release without debug offsets, 3.8 to 3.12, as it is on x86-64 Linux
/// (with Py_DEBUG too). Other builds of a version, such as --with-trace-refs, have other offsets,
/// so check what they lead to. Fails with kUnsupported for any other version, naming it and those
/// known.
Result<Layout> LayoutFromTable(PyVersion version);

/// As many bytes from the start of _PyRuntime as any version known needs.
inline constexpr size_t kDebugOffsetsSize = 888;

/// Parses _Py_DebugOffsets of 3.13 to 3.15 as found at the start of _PyRuntime; one parser per
/// minor version. Checks cookie, version, size, and that every offset lies within its structure.
/// Fails with kUnsupported, saying what was seen.
Result<Layout> LayoutFromDebugOffsets(std::span<const std::byte> bytes);

}  // namespace pystrobe::pyabi
