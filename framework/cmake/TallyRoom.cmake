# A room is a folder of framework/src: its sources make one static library. All rooms share one include folder, so that an include names its
# room, and libraries are passed on, so that a room also links what its ROOMS link: neither the compiler nor the linker holds a room to its
# list. tests/structure/include_graph_test.py does: a room includes what its ROOMS name, all of it, and nothing else.
include_guard(GLOBAL)

add_library(tally_flags INTERFACE)
target_compile_options(tally_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Winvalid-pch)
if(TALLY_WARNINGS_AS_ERRORS)
  target_compile_options(tally_flags INTERFACE -Werror)
endif()
if(TALLY_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr)
  add_link_options(-fsanitize=address,undefined)
endif()

# tally_room(NAME [TORCH] [ROOMS room...] [LIBRARIES library...])
# TORCH: compiled with the precompiled header of LibTorch and c10d.
function(tally_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*.cc")
  add_library(tally_${name} STATIC ${sources})
  target_include_directories(tally_${name} PUBLIC
    "${CMAKE_CURRENT_SOURCE_DIR}/src" "${CMAKE_CURRENT_BINARY_DIR}")
  list(TRANSFORM ROOM_ROOMS PREPEND tally_)
  target_link_libraries(tally_${name} PUBLIC tally_api ${ROOM_ROOMS} ${ROOM_LIBRARIES} PRIVATE tally_flags)
  if(ROOM_TORCH)
    target_link_libraries(tally_${name} PUBLIC tally::host_api)
    target_precompile_headers(tally_${name} REUSE_FROM tally_precompiled)
  endif()
endfunction()

# The precompiled header wants the very flags it was made with: -fPIC, where CMake gives an executable -fPIE.
function(tally_reuse_precompiled target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_precompile_headers(${target} REUSE_FROM tally_precompiled)
endfunction()
