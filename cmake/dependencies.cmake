# Libraries from the system. CLI11, protozero and robin-map are header-only, fmt is compiled here, and
# the executable links libdw, libelf and what these need, zlib and zstd statically: it needs nothing
# of them where it runs.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tsl-robin-map REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)

# Of fmt the headers alone: profiler/base compiles its code.
add_library(pystrobe_fmt INTERFACE)
target_include_directories(pystrobe_fmt SYSTEM INTERFACE
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)

add_library(pystrobe_protozero INTERFACE)
target_include_directories(pystrobe_protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})

# pystrobe_system_library(NAME header library): target pystrobe_NAME, the static library for
# executables. Distributions do not compile it for shared objects, so the Python module takes the
# shared one, which a wheel carries along.
function(pystrobe_system_library name header library)
  string(TOUPPER ${name} prefix)
  find_path(${prefix}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${prefix}_ARCHIVE lib${library}.a REQUIRED)
  find_library(${prefix}_SHARED lib${library}.so REQUIRED)
  add_library(pystrobe_${name}_archive STATIC IMPORTED GLOBAL)
  set_target_properties(pystrobe_${name}_archive PROPERTIES
    IMPORTED_LOCATION ${${prefix}_ARCHIVE})
  add_library(pystrobe_${name} INTERFACE)
  target_include_directories(pystrobe_${name} SYSTEM INTERFACE ${${prefix}_INCLUDE_DIR})
  target_link_libraries(pystrobe_${name} INTERFACE
    $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>,${${prefix}_SHARED},pystrobe_${name}_archive>)
endfunction()

pystrobe_system_library(zlib zlib.h z)
pystrobe_system_library(zstd zstd.h zstd)
pystrobe_system_library(elf libelf.h elf)
pystrobe_system_library(lzma lzma.h lzma)
pystrobe_system_library(bz2 bzlib.h bz2)
pystrobe_system_library(dw elfutils/libdwfl.h dw)
# Sections may be compressed. Said of the archives, so that the linker gets them in that order.
target_link_libraries(pystrobe_elf_archive INTERFACE pystrobe_zlib_archive)
target_link_libraries(pystrobe_dw_archive INTERFACE
  pystrobe_elf_archive pystrobe_lzma_archive pystrobe_bz2_archive ${CMAKE_DL_LIBS})
