# Compiles every header of every room by itself: one that leans on what others happened to include
# before it does not compile. Each is checked with the include paths of its room.

function(pystrobe_check_headers folder target)
  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  if(NOT headers OR NOT TARGET ${target})
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    set(source ${PROJECT_BINARY_DIR}/header_check/${header}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  add_library(${target}_header_check OBJECT ${sources})
  # The room's own options too, even those it keeps from its users.
  target_include_directories(${target}_header_check PRIVATE
    $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_link_libraries(${target}_header_check PRIVATE ${target})
endfunction()

foreach(room base model analyze store write)
  pystrobe_check_headers(profiler/${room} pystrobe_${room})
endforeach()
foreach(room pyabi remote)
  pystrobe_check_headers(sampler/${room} pystrobe_${room})
endforeach()
pystrobe_check_headers(cli pystrobe_cli)
pystrobe_check_headers(pyext/module pystrobe_core)
