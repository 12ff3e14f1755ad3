# Libraries from the system. fmt, CLI11, protozero and robin-map are header-only here, so that the
# executable needs nothing of them where it runs; libelf, zlib and zstd are linked statically for
# the same reason.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tsl-robin-map REQUIRED)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)
find_path(LIBELF_INCLUDE_DIR libelf.h REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_path(ZLIB_INCLUDE_DIR zlib.h REQUIRED)
find_library(LIBELF_ARCHIVE libelf.a REQUIRED)
find_library(ZSTD_ARCHIVE libzstd.a REQUIRED)
find_library(ZLIB_ARCHIVE libz.a REQUIRED)

add_library(pystrobe_zlib INTERFACE)
target_include_directories(pystrobe_zlib SYSTEM INTERFACE ${ZLIB_INCLUDE_DIR})
target_link_libraries(pystrobe_zlib INTERFACE ${ZLIB_ARCHIVE})

add_library(pystrobe_zstd INTERFACE)
target_include_directories(pystrobe_zstd SYSTEM INTERFACE ${ZSTD_INCLUDE_DIR})
target_link_libraries(pystrobe_zstd INTERFACE ${ZSTD_ARCHIVE})

add_library(pystrobe_elf INTERFACE)
target_include_directories(pystrobe_elf SYSTEM INTERFACE ${LIBELF_INCLUDE_DIR})
target_link_libraries(pystrobe_elf INTERFACE ${LIBELF_ARCHIVE} pystrobe_zlib)

add_library(pystrobe_protozero INTERFACE)
target_include_directories(pystrobe_protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})
