# Makes a C++ source of the report page, so that the executable carries it:
#
#   cmake -DWEB=<this folder> -DOUTPUT=html_page.cpp -P embed.cmake
#
# The scripts are ES modules for editors and type checkers; in the page they are one module, joined
# in order of need, without their import and export words.

set(scripts text color data query input graph table list tip header ui)

set(script "")
foreach(name IN LISTS scripts)
  file(READ "${WEB}/${name}.js" source)
  string(REGEX REPLACE "\nimport [^\n]* from '[^\n]*';" "" source "${source}")
  string(REGEX REPLACE "\nexport " "\n" source "${source}")
  string(REPLACE "// SPDX-License-Identifier: Apache-2.0\n//\n" "\n" source "${source}")
  string(APPEND script "// ${name}.js\n${source}")
endforeach()
file(READ "${WEB}/style.css" style)
file(READ "${WEB}/page.html" page)
string(REPLACE "{{style}}" "${style}" page "${page}")
string(REPLACE "{{script}}" "// SPDX-License-Identifier: Apache-2.0\n${script}" page "${page}")

# Cuts `page` at `mark`: what is before goes to a C++ array called `name`, what is after stays.
set(arrays "")
macro(cut name mark)
  string(FIND "${page}" "${mark}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "page.html lacks ${mark}")
  endif()
  string(SUBSTRING "${page}" 0 ${at} part)
  string(LENGTH "${mark}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${page}" ${at} -1 page)
  append_array(${name} "${part}")
endmacro()

function(append_array name text)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
  set(arrays "${arrays}const char ${name}[] = {\n${hex}'\\0'};\n" PARENT_SCOPE)
endfunction()

cut(kBeforeTitle "{{title}}")
cut(kBeforeProfile "{{profile}}")
append_array(kAfterProfile "${page}")

file(WRITE "${OUTPUT}" "// Generated from profiler/write/web; do not edit.
#include \"profiler/write/html_page.h\"

namespace pystrobe::write {
namespace {

${arrays}
}  // namespace

HtmlPage GetHtmlPage() {
  return {.before_title = {kBeforeTitle, sizeof kBeforeTitle - 1},
          .before_profile = {kBeforeProfile, sizeof kBeforeProfile - 1},
          .after_profile = {kAfterProfile, sizeof kAfterProfile - 1}};
}

}  // namespace pystrobe::write
")
