# Compiles every header of a room by itself: one that leans on what others happened to include before
# it does not compile. Each is checked with all that its room links, what it keeps to itself
# included; therefore called in the folder of the room, where these targets are known. Most need no
# compiling of their own: X.cpp includes X.h before all else.

function(pystrobe_check_headers target)
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(NOT PYSTROBE_CHECK_HEADERS OR NOT headers)
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "h$" "cpp" implementation ${PROJECT_SOURCE_DIR}/${header})
    set(first "")
    if(EXISTS ${implementation})
      file(STRINGS ${implementation} first REGEX "^#include" LIMIT_COUNT 1)
    endif()
    if(first STREQUAL "#include \"${header}\"")
      continue()
    endif()
    set(source ${PROJECT_BINARY_DIR}/header_check/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(${target}_header_check OBJECT ${sources})
  # Not the target itself: the Python module cannot be linked.
  get_target_property(links ${target} LINK_LIBRARIES)
  target_link_libraries(${target}_header_check PRIVATE ${links})
endfunction()
