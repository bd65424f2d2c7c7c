# belay_room(NAME USES rooms… [LIBS libraries…] [ASIO] SOURCES files…)
#
# One library target per room of the house. A room links exactly the rooms of its USES line, which is
# what holds the walls at build time; tools/check_rooms.py reads the same lines against the includes.
# ASIO gives the room a precompiled header with Asio; rooms without it never see Asio. There is one of each
# kind, made by base and by its part io, and the other rooms use it too.
function(belay_room name)
  cmake_parse_arguments(ROOM "ASIO" "" "USES;LIBS;SOURCES" ${ARGN})
  set(target belay_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  set_property(GLOBAL APPEND PROPERTY BELAY_ROOMS ${target}) # for the installed library
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  foreach(room IN LISTS ROOM_USES)
    target_link_libraries(${target} PUBLIC belay_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ROOM_LIBS} PRIVATE belay_warnings)
  if(name STREQUAL io)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch_asio.hpp)
  elseif(ROOM_ASIO)
    target_precompile_headers(${target} REUSE_FROM belay_io)
  elseif(name STREQUAL base)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch_std.hpp)
  else()
    target_precompile_headers(${target} REUSE_FROM belay_base)
  endif()
endfunction()
