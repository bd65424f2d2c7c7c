# Debian packages, by `cpack` in the build folder: `belay` is the program with its unit and manual page, `libbelay-dev`
# what a C++ project needs. Two, because a machine that serves has no use for Boost's headers.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME belay)
set(CPACK_PACKAGE_CONTACT "Belay maintainers <maintainers@belay.invalid>" CACHE STRING "Who made the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME belay)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "MCP server that never drops a call
Serves the Model Context Protocol over HTTP. What a tool says is kept in a log
first, and a caller whose connection broke reads on where it stopped.
.
This package has the reference server and a systemd unit, which is not enabled.")

set(boost libboost${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev)
set(boost_json libboost-json${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbelay-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${boost}, ${boost_json}, libfmt-dev (>= 9), prometheus-cpp-dev")
if(BELAY_REDIS)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libhiredis-dev, libssl-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "belay, clang-tools-19")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "C++ library for MCP servers that never drop a call
Headers and a static library to write servers of the Model Context Protocol.
A tool is a function or a coroutine, its arguments are a struct, and a call
survives the loss of its caller's connection.
.
There are a CMake package (belay) and a pkg-config file. Needs C++23: clang 19
or g++ 12.")

# Only in the packages, not in what `cmake --install` installs.
string(TIMESTAMP build_time "%a, %d %b %Y %H:%M:%S +0000" UTC)
configure_file(packaging/changelog.in packaging/changelog @ONLY)
find_program(GZIP gzip REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(made ${CMAKE_BINARY_DIR}/packaging)
add_custom_command(OUTPUT ${made}/belay.1.gz
  COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/packaging/man.py $<TARGET_FILE:belay> > ${made}/belay.1
  COMMAND ${GZIP} -9nf ${made}/belay.1
  DEPENDS belay packaging/man.py VERBATIM)
add_custom_command(OUTPUT ${made}/changelog.gz ${made}/changelog.Debian.gz
  COMMAND ${GZIP} -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${made}/changelog.gz
  COMMAND ${GZIP} -9nc ${made}/changelog > ${made}/changelog.Debian.gz
  DEPENDS CHANGELOG.md ${made}/changelog VERBATIM)
add_custom_target(belay_package_files ALL DEPENDS ${made}/belay.1.gz ${made}/changelog.gz)
install(FILES ${made}/belay.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES packaging/belay.service DESTINATION lib/systemd/system COMPONENT runtime EXCLUDE_FROM_ALL)
foreach(package IN ITEMS runtime:belay development:libbelay-dev)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  install(FILES packaging/copyright ${made}/changelog.gz ${made}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
