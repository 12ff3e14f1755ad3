# Compiler settings every target shares, and the function that makes a target of a folder.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Where the executable is installed: a wheel has its own place for scripts.
if(DEFINED SKBUILD_SCRIPTS_DIR)
  set(PYSTROBE_BIN_DIR ${SKBUILD_SCRIPTS_DIR})
else()
  set(PYSTROBE_BIN_DIR bin)
endif()

option(PYSTROBE_WERROR "Treat warnings as errors" OFF)
set(PYSTROBE_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

add_library(pystrobe_options INTERFACE)
# A designated initialiser that names only some members says so; -Wextra takes it for a slip. GCC 12
# sees overlaps in "text" + std::string that cannot be (its bug 105651), and strings moved beyond their
# end once <string> is precompiled.
target_compile_options(pystrobe_options INTERFACE -Wall -Wextra -Wconversion
  -Wno-missing-field-initializers
  $<$<BOOL:${PYSTROBE_WERROR}>:-Werror$<SEMICOLON>-Wno-error=restrict$<SEMICOLON>-Wno-error=array-bounds$<SEMICOLON>-Wno-error=stringop-overflow>)
target_include_directories(pystrobe_options INTERFACE ${PROJECT_SOURCE_DIR})
if(NOT PYSTROBE_SANITIZE)
  # What is shipped runs wherever glibc is new enough, whatever C++ runtime is installed there.
  target_link_options(pystrobe_options INTERFACE -static-libstdc++ -static-libgcc)
else()
  # The check of vptr makes a pipe to learn whether memory can be read, and takes an object for bad where
  # there are no descriptors left, which some tests see to.
  # Compiling is most of what such a check takes: -O1 -g1 takes three fifths of -O2 -g.
  target_compile_options(pystrobe_options INTERFACE
    -fsanitize=${PYSTROBE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1 -g1)
  target_link_options(pystrobe_options INTERFACE -fsanitize=${PYSTROBE_SANITIZE})
  # The shared runtime keeps the demangler that can be stopped to itself; all else is taken from it.
  target_link_libraries(pystrobe_options INTERFACE stdc++ supc++)
endif()

# Half of compiling most files is reading the standard library's headers. The compiler cache cannot keep
# what was compiled with precompiled ones; where it is used, each file has what it includes itself, no more.
set(PYSTROBE_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <expected> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>
  <fmt/format.h> <fmt/ranges.h>)
function(pystrobe_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  if(target STREQUAL pystrobe_base)
    target_precompile_headers(${target} PRIVATE ${PYSTROBE_COMMON_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM pystrobe_base)
  endif()
endfunction()

# pystrobe_library(NAME sources... LINK targets...): the library of one room, alias pystrobe::NAME.
# LINK names the rooms and libraries it may know; that is how the arrows of docs/architecture.md hold.
function(pystrobe_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(pystrobe_${name} STATIC ${arg_SOURCES})
  add_library(pystrobe::${name} ALIAS pystrobe_${name})
  target_link_libraries(pystrobe_${name} PUBLIC pystrobe_options ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  pystrobe_precompile(pystrobe_${name})
  pystrobe_check_headers(pystrobe_${name})
endfunction()
