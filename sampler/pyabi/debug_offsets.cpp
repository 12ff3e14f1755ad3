// SPDX-License-Identifier: Apache-2.0
#include "sampler/pyabi/debug_offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "sampler/pyabi/layout.h"

namespace pystrobe::pyabi {
namespace {

using namespace debug_offsets;

constexpr char kCookie[] = "xdebugpy";
constexpr uint64_t kMaxStateSize = 64U << 20;  // _PyRuntime and interpreters
constexpr uint64_t kMaxSize = 64U << 10;       // anything smaller

/// Takes offsets over, remembering the first one that cannot be true.
class Checker {
 public:
  /// A whole structure.
  uint32_t Size(const char* name, uint64_t size, uint64_t limit = kMaxSize) {
    if (size == 0 || size > limit) {
      Complain(fmt::format("{} is {} bytes", name, size));
      return kAbsent;
    }
    return static_cast<uint32_t>(size);
  }

  /// A field of `width` bytes, aligned to them, within a structure of `size` bytes.
  uint32_t Field(const char* name, uint64_t offset, uint64_t size, uint64_t width = 8) {
    if (offset > kMaxStateSize || offset + width > size || offset % width != 0) {
      Complain(fmt::format("{} at {} is not inside its {} bytes", name, offset, size));
      return kAbsent;
    }
    return static_cast<uint32_t>(offset);
  }

  const std::string& complaint() const { return complaint_; }

 private:
  void Complain(std::string text) {
    if (complaint_.empty()) complaint_ = std::move(text);
  }
  std::string complaint_;
};

template <typename Table>
void FillInterpreter(const Table& table, Checker& check, Layout& layout) {
  const auto& runtime = table.runtime_state;
  check.Size("runtime_state", runtime.size, kMaxStateSize);
  layout.runtime.interpreters_head =
      check.Field("runtime_state.interpreters_head", runtime.interpreters_head, runtime.size);

  const auto& in = table.interpreter_state;
  auto& out = layout.interpreter;
  check.Size("interpreter_state", in.size, kMaxStateSize);
  check.Size("gc", table.gc.size);
  check.Field("gc.collecting", table.gc.collecting, table.gc.size, 4);
  out.next = check.Field("interpreter_state.next", in.next, in.size);
  out.id = check.Field("interpreter_state.id", in.id, in.size);
  out.threads_head = check.Field("interpreter_state.threads_head", in.threads_head, in.size);
  out.ceval_gil = check.Field("interpreter_state.ceval_gil", in.ceval_gil, in.size);
  out.imports_modules =
      check.Field("interpreter_state.imports_modules", in.imports_modules, in.size);
  check.Field("interpreter_state.gc", in.gc, in.size);
  out.gc_collecting = check.Field("gc.collecting", in.gc + table.gc.collecting, in.size, 4);
  if constexpr (requires { in.code_object_generation; }) {
    out.code_object_generation =
        check.Field("interpreter_state.code_object_generation", in.code_object_generation, in.size);
    if (layout.free_threaded) {
      out.tlbc_generation =
          check.Field("interpreter_state.tlbc_generation", in.tlbc_generation, in.size, 4);
    }
  }
}

template <typename Table>
void FillGil(const Table& table, Checker& check, Layout& layout) {
  // Given from the start of the interpreter, all but `enabled`; wanted from the start of the GIL.
  const auto& in = table.interpreter_state;
  const uint64_t start = in.gil_runtime_state;
  check.Field("interpreter_state.gil_runtime_state", start, in.size);
  const uint64_t room = std::min<uint64_t>(in.size - start, kGilBytes);
  layout.gil.last_holder =
      check.Field("gil_runtime_state_holder", in.gil_runtime_state_holder - start, room);
  layout.gil.locked =
      check.Field("gil_runtime_state_locked", in.gil_runtime_state_locked - start, room, 4);
  // Include/internal/pycore_gil.h: `int locked; unsigned long switch_number;`
  layout.gil.switch_number =
      check.Field("gil switch_number", in.gil_runtime_state_locked - start + 8, room);
  if (layout.free_threaded) {
    layout.gil.enabled =
        check.Field("gil_runtime_state_enabled", in.gil_runtime_state_enabled, room, 4);
  }
}

template <typename Table>
void FillThread(const Table& table, Checker& check, Layout& layout) {
  const auto& in = table.thread_state;
  auto& out = layout.thread;
  check.Size("thread_state", in.size);
  out.next = check.Field("thread_state.next", in.next, in.size);
  out.interp = check.Field("thread_state.interp", in.interp, in.size);
  out.thread_id = check.Field("thread_state.thread_id", in.thread_id, in.size);
  out.native_thread_id = check.Field("thread_state.native_thread_id", in.native_thread_id, in.size);
  out.frame = check.Field("thread_state.current_frame", in.current_frame, in.size);
  out.datastack_chunk = check.Field("thread_state.datastack_chunk", in.datastack_chunk, in.size);
  // Include/cpython/pystate.h, 3.13 to 3.15: datastack_chunk, datastack_top, datastack_limit.
  out.datastack_top = check.Field("thread datastack_top", in.datastack_chunk + 8, in.size);
  out.status = check.Field("thread_state.status", in.status, in.size, 4);
  // Include/cpython/pystate.h. All that lies between `_status` and `current_frame` are ints:
  //   3.13: _whence, state, 6 more    3.14: holds_gil, _whence, state, 5 more
  //   3.15: holds_gil, gil_requested, _whence, state, ...
  if constexpr (requires { in.holds_gil; }) {
    out.holds_gil = check.Field("thread_state.holds_gil", in.holds_gil, in.size, 4);
    out.base_frame = check.Field("thread_state.base_frame", in.base_frame, in.size);
    out.state = check.Field("thread state", in.holds_gil + 12, in.size, 4);
  } else if (in.current_frame == in.status + 40) {
    out.state = check.Field("thread state", in.status + (Table::kMinor == 13 ? 8 : 12), in.size, 4);
  }
  out.size = 0;
  const auto hold = [&out](std::initializer_list<uint32_t> offsets, uint32_t width) {
    for (uint32_t offset : offsets) {
      if (offset != kAbsent) out.size = std::max(out.size, offset + width);
    }
  };
  hold({out.next, out.interp, out.frame, out.base_frame, out.thread_id, out.native_thread_id}, 8);
  hold({out.datastack_chunk, out.datastack_top}, 8);
  hold({out.status, out.state, out.holds_gil}, 4);
}

template <typename Table>
void FillFrame(const Table& table, Checker& check, Layout& layout) {
  const auto& in = table.interpreter_frame;
  auto& out = layout.frame;
  check.Size("interpreter_frame", in.size);
  // What lies before localsplus is copied; every other field must lie there.
  out.localsplus = check.Field("interpreter_frame.localsplus", in.localsplus, in.size);
  const uint64_t copied = in.localsplus;
  out.previous = check.Field("interpreter_frame.previous", in.previous, copied);
  out.code = check.Field("interpreter_frame.executable", in.executable, copied);
  out.instruction = check.Field("interpreter_frame.instr_ptr", in.instr_ptr, copied);
  out.owner = check.Field("interpreter_frame.owner", in.owner, copied, 1);
  if constexpr (requires { in.stackpointer; }) {
    out.stackpointer = check.Field("interpreter_frame.stackpointer", in.stackpointer, copied);
    // Include/internal/pycore_stackref.h: Py_TAG_BITS is 1 to 3 of the low bits, and frames lie
    // at multiples of 8, code objects at multiples of 16.
    out.code_tag_mask = 7;
    if (layout.free_threaded) {
      out.tlbc_index = check.Field("interpreter_frame.tlbc_index", in.tlbc_index, copied, 4);
    }
  } else {
    // Include/internal/pycore_frame.h of 3.13: `instr_ptr; int stacktop; ...`
    out.stacktop = check.Field("frame stacktop", in.instr_ptr + 8, copied, 4);
  }
  out.size = out.localsplus;
}

template <typename Table>
void FillCode(const Table& table, Checker& check, Layout& layout) {
  const auto& in = table.code_object;
  auto& out = layout.code;
  check.Size("code_object", in.size);
  // The last field; what lies before it is copied.
  out.bytecode = check.Field("code_object.co_code_adaptive", in.co_code_adaptive, in.size);
  const uint64_t copied = in.co_code_adaptive;
  out.filename = check.Field("code_object.filename", in.filename, copied);
  out.name = check.Field("code_object.name", in.name, copied);
  out.qualname = check.Field("code_object.qualname", in.qualname, copied);
  out.line_table = check.Field("code_object.linetable", in.linetable, copied);
  out.first_line = check.Field("code_object.firstlineno", in.firstlineno, copied, 4);
  out.arg_count = check.Field("code_object.argcount", in.argcount, copied, 4);
  // Include/cpython/code.h: co_flags, co_argcount, co_posonlyargcount, co_kwonlyargcount.
  out.flags = check.Field("code co_flags", in.argcount - 4, copied, 4);
  out.keyword_arg_count = check.Field("code co_kwonlyargcount", in.argcount + 8, copied, 4);
  out.locals_names = check.Field("code_object.localsplusnames", in.localsplusnames, copied);
  out.locals_kinds = check.Field("code_object.localspluskinds", in.localspluskinds, copied);
  out.unit_count = check.Field("tuple_object.ob_size", table.tuple_object.ob_size, copied);
  out.type = check.Field("pyobject.ob_type", table.pyobject.ob_type, copied);
  if constexpr (requires { in.co_tlbc; }) {
    if (layout.free_threaded) {
      out.tlbc = check.Field("code_object.co_tlbc", in.co_tlbc, copied);
    }
  }
  out.size = out.bytecode;
}

template <typename Table>
void FillTypes(const Table& table, Checker& check, Layout& layout) {
  auto& out = layout.object;
  check.Size("pyobject", table.pyobject.size);
  out.type = check.Field("pyobject.ob_type", table.pyobject.ob_type, table.pyobject.size);
  const auto& type = table.type_object;
  check.Size("type_object", type.size);
  out.type_name = check.Field("type_object.tp_name", type.tp_name, type.size);
  out.type_flags = check.Field("type_object.tp_flags", type.tp_flags, type.size);
  if constexpr (requires { type.tp_dictoffset; }) {
    out.type_basic_size = check.Field("type_object.tp_basicsize", type.tp_basicsize, type.size);
    out.type_dict_offset = check.Field("type_object.tp_dictoffset", type.tp_dictoffset, type.size);
    const auto& heap = table.heap_type_object;
    out.type_cached_keys = check.Field("heap_type_object.ht_cached_keys", heap.ht_cached_keys,
                                       check.Size("heap_type_object", heap.size));
  } else {
    // Include/cpython/object.h of 3.13 and 3.14: tp_basicsize follows tp_name, tp_dictoffset is 32
    // pointers further; PyHeapTypeObject adds the number, sequence, ... slots (58 pointers: 4
    // async, 36 number, 3 mapping, 10 sequence, 2 buffer, name, slots, qualname).
    out.type_basic_size = check.Field("type tp_basicsize", type.tp_name + 8, type.size);
    out.type_dict_offset = check.Field("type tp_dictoffset", type.tp_name + 264, type.size);
    out.type_cached_keys = static_cast<uint32_t>(type.size) + 58 * 8;
  }
}

template <typename Table>
void FillObjects(const Table& table, Checker& check, Layout& layout) {
  auto& out = layout.object;
  const auto field = [&check](const char* name, uint64_t offset, uint64_t size,
                              uint64_t width = 8) {
    check.Size(name, size);
    return check.Field(name, offset, size, width);
  };
  const auto& bytes = table.bytes_object;
  out.bytes_size = field("bytes_object.ob_size", bytes.ob_size, bytes.size);
  out.bytes_data = field("bytes_object.ob_sval", bytes.ob_sval, bytes.size, 1);
  const auto& text = table.unicode_object;
  out.unicode_length = field("unicode_object.length", text.length, text.asciiobject_size);
  out.unicode_state = field("unicode_object.state", text.state, text.asciiobject_size, 4);
  // Include/cpython/unicodeobject.h: `interned` has a byte of its own in free-threaded builds of
  // 3.14 and later.
  if (layout.free_threaded && Table::kMinor >= 14) out.unicode_kind_shift = 8;
  out.ascii_data = field("unicode_object.asciiobject_size", text.asciiobject_size, text.size);
  if constexpr (requires { text.compactunicodeobject_size; }) {
    out.compact_data = field("unicode_object.compactunicodeobject_size",
                             text.compactunicodeobject_size, text.size);
  } else {
    // Include/cpython/unicodeobject.h: PyCompactUnicodeObject adds utf8_length and utf8.
    out.compact_data = field("compact str", text.asciiobject_size + 16, text.size);
  }
  const auto& tuple = table.tuple_object;
  out.tuple_items = field("tuple_object.ob_item", tuple.ob_item, tuple.size);
  out.tuple_size = field("tuple_object.ob_size", tuple.ob_size, tuple.size);
  const auto& list = table.list_object;
  out.list_items = field("list_object.ob_item", list.ob_item, list.size);
  out.list_size = field("list_object.ob_size", list.ob_size, list.size);
  if constexpr (requires { table.set_object; }) {
    out.set_used = field("set_object.used", table.set_object.used, table.set_object.size);
  } else {
    // Include/cpython/setobject.h: PyObject_HEAD, fill, used.
    out.set_used = static_cast<uint32_t>(table.pyobject.size) + 8;
  }
  out.float_value =
      field("float_object.ob_fval", table.float_object.ob_fval, table.float_object.size);
  // Include/cpython/cellobject.h: PyObject_HEAD, ob_ref.
  out.cell_value = static_cast<uint32_t>(table.pyobject.size);
  const auto& number = table.long_object;
  out.long_tag = field("long_object.lv_tag", number.lv_tag, number.size);
  out.long_digits = field("long_object.ob_digit", number.ob_digit, number.size, 4);
  const auto& dict = table.dict_object;
  // Include/cpython/dictobject.h: ma_used, ma_version_tag, ma_keys, ma_values.
  out.dict_used = field("dict ma_used", dict.ma_keys - 16, dict.size);
  out.dict_keys = field("dict_object.ma_keys", dict.ma_keys, dict.size);
  out.dict_values = field("dict_object.ma_values", dict.ma_values, dict.size);
}

template <typename Table>
Result<Layout> Parse(std::span<const std::byte> bytes, PyVersion version) {
  Table table;
  if (bytes.size() < sizeof table) {
    return Fail(ErrorCode::kUnsupported, "debug offsets of Python {} are {} bytes, {} were read",
                version.ToString(), sizeof(Table), bytes.size());
  }
  std::memcpy(&table, bytes.data(), sizeof table);
  Layout layout;
  layout.version = version;
  layout.free_threaded = table.header.free_threaded != 0;
  Checker check;
  FillInterpreter(table, check, layout);
  FillGil(table, check, layout);
  FillThread(table, check, layout);
  FillFrame(table, check, layout);
  FillCode(table, check, layout);
  FillTypes(table, check, layout);
  FillObjects(table, check, layout);
  if (!check.complaint().empty()) {
    return Fail(ErrorCode::kUnsupported, "debug offsets of Python {} make no sense: {}",
                version.ToString(), check.complaint());
  }
  return layout;
}

}  // namespace

Result<Layout> LayoutFromDebugOffsets(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) {
    return Fail(ErrorCode::kUnsupported, "debug offsets are cut after {} bytes", bytes.size());
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.cookie, kCookie, sizeof header.cookie) != 0) {
    return Fail(ErrorCode::kUnsupported, "no debug offsets: they begin with {:02x}, not \"{}\"",
                fmt::join(header.cookie, " "), kCookie);
  }
  if (header.version > UINT32_MAX || header.free_threaded > 1) {
    return Fail(ErrorCode::kUnsupported, "debug offsets with version {:#x}, free_threaded {}",
                header.version, header.free_threaded);
  }
  PyVersion version = PyVersion::FromHex(static_cast<uint32_t>(header.version));
  // The table changed until the last beta of each release.
  if (version.release_level == 0xc || version.release_level == 0xf) {
    if (version.major == 3 && version.minor == 13) return Parse<Table13>(bytes, version);
    if (version.major == 3 && version.minor == 14) return Parse<Table14>(bytes, version);
    if (version.major == 3 && version.minor == 15) return Parse<Table15>(bytes, version);
  }
  return Fail(ErrorCode::kUnsupported,
              "debug offsets of Python {} are not known: known are 3.13, 3.14 and 3.15",
              version.ToString());
}

}  // namespace pystrobe::pyabi
