# What is precompiled. All by names that are found, not by paths: the list that CMake writes of them is then the same in
# every clone, which ccache needs (cmake/compile).
set(BELAY_PRECOMPILED_STD
  <algorithm> <array> <atomic> <chrono> <cstdint> <deque> <expected> <functional> <memory> <mutex> <optional> <span>
  <string> <string_view> <system_error> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(BELAY_PRECOMPILED_ASIO ${BELAY_PRECOMPILED_STD}
  <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp> <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp>
  <boost/asio/post.hpp> <boost/asio/steady_timer.hpp> <boost/asio/use_awaitable.hpp>)

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
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  foreach(room IN LISTS ROOM_USES)
    target_link_libraries(${target} PUBLIC belay_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ROOM_LIBS} PRIVATE belay_warnings)
  if(name STREQUAL io)
    target_precompile_headers(${target} PRIVATE ${BELAY_PRECOMPILED_ASIO})
  elseif(ROOM_ASIO)
    target_precompile_headers(${target} REUSE_FROM belay_io)
  elseif(name STREQUAL base)
    target_precompile_headers(${target} PRIVATE ${BELAY_PRECOMPILED_STD})
  else()
    target_precompile_headers(${target} REUSE_FROM belay_base)
  endif()
endfunction()
