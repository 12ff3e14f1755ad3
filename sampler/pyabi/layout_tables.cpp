// SPDX-License-Identifier: Apache-2.0
//
// Made by generate/generate.py: do not edit. From the headers of CPython
// 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1.
#include <array>

#include "sampler/pyabi/layout.h"
#include "sampler/pyabi/layout_tables.h"

namespace pystrobe::pyabi {
namespace {

#define FIELD(path) #path, [](Layout& layout) -> uint32_t& { return layout.path; }
constexpr uint32_t kNone = kAbsent;

// clang-format off
constexpr auto kRows = std::to_array<LayoutRow>({
    //                                         3.8    3.9   3.10   3.11   3.12
    {FIELD(runtime.interpreters_head),     {   32,    32,    32,    40,    40}},
    {FIELD(runtime.gil),                   { 1152,   352,   352,   360, kNone}},
    {FIELD(runtime.tstate_current),        { 1368,   568,   568,   576, kNone}},
    {FIELD(runtime.gc_collecting),         {  544, kNone, kNone, kNone, kNone}},
    {FIELD(interpreter.next),              {    0,     0,     0,     0,     0}},
    {FIELD(interpreter.id),                {   16,    24,    24,    48,     8}},
    {FIELD(interpreter.threads_head),      {    8,     8,     8,    16,    72}},
    {FIELD(interpreter.imports_modules),   {   56,   856,   856,   888,   944}},
    {FIELD(interpreter.gc_collecting),     {kNone,   816,   816,   848,   312}},
    {FIELD(interpreter.ceval_gil),         {kNone, kNone, kNone, kNone,   384}},
    {FIELD(gil.last_holder),               {    8,     8,     8,     8,     8}},
    {FIELD(gil.locked),                    {   16,    16,    16,    16,    16}},
    {FIELD(gil.switch_number),             {   24,    24,    24,    24,    24}},
    {FIELD(thread.size),                   {  184,   184,   184,   312,   248}},
    {FIELD(thread.next),                   {    8,     8,     8,     8,     8}},
    {FIELD(thread.interp),                 {   16,    16,    16,    16,    16}},
    {FIELD(thread.thread_id),              {  176,   176,   176,   152,   136}},
    {FIELD(thread.frame),                  {   24,    24,    24, kNone, kNone}},
    {FIELD(thread.cframe),                 {kNone, kNone, kNone,    56,    56}},
    {FIELD(thread.root_cframe),            {kNone, kNone, kNone,   336,   272}},
    {FIELD(thread.native_thread_id),       {kNone, kNone, kNone,   160,   144}},
    {FIELD(thread.datastack_chunk),        {kNone, kNone, kNone,   296,   232}},
    {FIELD(thread.datastack_top),          {kNone, kNone, kNone,   304,   240}},
    {FIELD(frame.size),                    {  117,   117,   109,    72,    72}},
    {FIELD(frame.executing),               {  116,   116,   108, kNone, kNone}},
    {FIELD(frame.previous),                {   24,    24,    24,    48,     8}},
    {FIELD(frame.code),                    {   32,    32,    32,    32,     0}},
    {FIELD(frame.instruction),             {  104,   104,    96,    56,    56}},
    {FIELD(frame.generator),               {   96,    96,    88, kNone, kNone}},
    {FIELD(frame.localsplus),              {  360,   360,   352,    72,    72}},
    {FIELD(frame.owner),                   {kNone, kNone, kNone,    69,    70}},
    {FIELD(frame.is_entry),                {kNone, kNone, kNone,    68, kNone}},
    {FIELD(frame.stacktop),                {kNone, kNone, kNone,    64,    64}},
    {FIELD(code.size),                     {  128,   128,   128,   144,   144}},
    {FIELD(code.bytecode),                 {   48,    48,    48,   184,   192}},
    {FIELD(code.locals_names),             {   72,    72,    72,    96,    96}},
    {FIELD(code.cell_names),               {   88,    88,    88, kNone, kNone}},
    {FIELD(code.free_names),               {   80,    80,    80, kNone, kNone}},
    {FIELD(code.line_table),               {  120,   120,   120,   136,   136}},
    {FIELD(code.type),                     {    8,     8,     8,     8,     8}},
    {FIELD(code.filename),                 {  104,   104,   104,   112,   112}},
    {FIELD(code.name),                     {  112,   112,   112,   120,   120}},
    {FIELD(code.first_line),               {   40,    40,    40,    72,    68}},
    {FIELD(code.flags),                    {   36,    36,    36,    48,    48}},
    {FIELD(code.arg_count),                {   16,    16,    16,    56,    52}},
    {FIELD(code.keyword_arg_count),        {   24,    24,    24,    64,    60}},
    {FIELD(code.qualname),                 {kNone, kNone, kNone,   128,   128}},
    {FIELD(code.unit_count),               {kNone, kNone, kNone,    16,    16}},
    {FIELD(code.locals_kinds),             {kNone, kNone, kNone,   104,   104}},
    {FIELD(object.type),                   {    8,     8,     8,     8,     8}},
    {FIELD(object.type_name),              {   24,    24,    24,    24,    24}},
    {FIELD(object.type_flags),             {  168,   168,   168,   168,   168}},
    {FIELD(object.type_basic_size),        {   32,    32,    32,    32,    32}},
    {FIELD(object.type_dict_offset),       {  288,   288,   288,   288,   288}},
    {FIELD(object.type_cached_keys),       {  872,   864,   872,   872,   880}},
    {FIELD(object.bytes_size),             {   16,    16,    16,    16,    16}},
    {FIELD(object.bytes_data),             {   32,    32,    32,    32,    32}},
    {FIELD(object.unicode_length),         {   16,    16,    16,    16,    16}},
    {FIELD(object.unicode_state),          {   32,    32,    32,    32,    32}},
    {FIELD(object.ascii_data),             {   48,    48,    48,    48,    40}},
    {FIELD(object.compact_data),           {   72,    72,    72,    72,    56}},
    {FIELD(object.tuple_items),            {   24,    24,    24,    24,    24}},
    {FIELD(object.tuple_size),             {   16,    16,    16,    16,    16}},
    {FIELD(object.list_items),             {   24,    24,    24,    24,    24}},
    {FIELD(object.list_size),              {   16,    16,    16,    16,    16}},
    {FIELD(object.set_used),               {   24,    24,    24,    24,    24}},
    {FIELD(object.float_value),            {   16,    16,    16,    16,    16}},
    {FIELD(object.long_tag),               {   16,    16,    16,    16,    16}},
    {FIELD(object.long_digits),            {   24,    24,    24,    24,    24}},
    {FIELD(object.dict_used),              {   16,    16,    16,    16,    16}},
    {FIELD(object.dict_keys),              {   32,    32,    32,    32,    32}},
    {FIELD(object.dict_values),            {   40,    40,    40,    40,    40}},
    {FIELD(object.cell_value),             {   16,    16,    16,    16,    16}},
    {FIELD(cframe.current_frame),          {kNone, kNone, kNone,     8,     0}},
    {FIELD(cframe.previous),               {kNone, kNone, kNone,    16,     8}},
});
// clang-format on
#undef FIELD

}  // namespace

std::span<const LayoutRow> LayoutRows() { return kRows; }

}  // namespace pystrobe::pyabi
