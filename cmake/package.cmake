# What `cmake --install` installs and CPack packs. Two components: `runtime` is the program, `development` is what a
# C++ project needs to build a server of its own.
if(BELAY_PACKAGE AND CMAKE_LIBRARY_ARCHITECTURE)
  # Where Debian has the libraries of one architecture.
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE} CACHE PATH "Object code libraries")
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What was compiled for a sanitizer is of no use to others, and objects for optimising across files can be linked only by
# the compiler that made them.
string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" flags)
set(flags "${CMAKE_CXX_FLAGS} ${${flags}}")
set(installs_development ON)
if(BELAY_SANITIZE OR flags MATCHES "-flto")
  set(installs_development OFF)
endif()

# belay_installed_library(NAME ROOMS targets… LIBS libraries…)
#
# One archive of the objects of these rooms, which are compiled once; its target is belay::<name>. It shows include/ and
# none of src/. LIBS are needed to link it; what its headers need is said by the caller. Another library beside
# belay::belay is another call, with rooms that are taken out of the list below.
function(belay_installed_library name)
  cmake_parse_arguments(LIBRARY "" "" "ROOMS;LIBS" ${ARGN})
  set(target belay_lib_${name})
  list(TRANSFORM LIBRARY_ROOMS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(${target} STATIC ${objects})
  add_library(belay::${name} ALIAS ${target})
  string(REGEX REPLACE "^belay_belay$" belay file belay_${name})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} EXPORT_NAME ${name} LINKER_LANGUAGE CXX)
  target_compile_features(${target} INTERFACE cxx_std_23)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${LIBRARY_LIBS})
  if(PROJECT_IS_TOP_LEVEL AND installs_development)
    install(TARGETS ${target} EXPORT belay ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endif()
endfunction()

get_property(rooms GLOBAL PROPERTY BELAY_ROOMS)
set(libraries fmt::fmt prometheus-cpp::core)
if(BELAY_REDIS)
  list(APPEND libraries hiredis OpenSSL::SSL)
  set(pc_redis " hiredis openssl")
  set(config_redis "find_dependency(OpenSSL)\n")
endif()
belay_installed_library(belay ROOMS ${rooms} LIBS ${libraries})
# Asio's bodies are in the archive, and whoever includes Asio must see it as the archive did.
get_target_property(definitions belay_asio INTERFACE_COMPILE_DEFINITIONS)
target_compile_definitions(belay_lib_belay INTERFACE ${definitions})
target_link_libraries(belay_lib_belay PUBLIC Boost::headers Boost::json Threads::Threads)
if(BELAY_PACKAGE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  find_program(BELAY_GXX NAMES g++-12 g++ REQUIRED)
  set(for_gcc ${CMAKE_BINARY_DIR}/asio_for_gcc.o)
  list(TRANSFORM definitions PREPEND -D OUTPUT_VARIABLE gxx_definitions)
  # Weak, because both compilers give most of it the same names.
  add_custom_command(OUTPUT ${for_gcc} DEPENDS packaging/asio_for_gcc.cpp VERBATIM
    COMMAND ${BELAY_GXX} -std=c++23 -O2 -fPIC ${gxx_definitions} -c ${CMAKE_SOURCE_DIR}/packaging/asio_for_gcc.cpp -o ${for_gcc}
    COMMAND ${CMAKE_OBJCOPY} --weaken ${for_gcc})
  target_sources(belay_lib_belay PRIVATE ${for_gcc})
endif()

if(NOT PROJECT_IS_TOP_LEVEL)
  return() # what is installed is the business of the project that this one is a part of
endif()

# --- runtime

install(TARGETS belay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES README.md LICENSE SECURITY.md docs/operations.md docs/resume.md docs/settings.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

# --- development

if(NOT installs_development)
  install(CODE "message(STATUS \"The library is not installed from this build; the preset `package` is for that.\")")
  return()
endif()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/belay)
set(development_docdir ${CMAKE_INSTALL_DATAROOTDIR}/doc/libbelay-dev)
install(DIRECTORY include/belay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN *.hpp PATTERN boost_version.hpp EXCLUDE)
configure_file(packaging/boost_version.hpp.in packaging/boost_version.hpp @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/boost_version.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/belay/detail COMPONENT development)
install(EXPORT belay NAMESPACE belay:: FILE belayTargets.cmake DESTINATION ${config_dir} COMPONENT development)
configure_package_config_file(packaging/belayConfig.cmake.in packaging/belayConfig.cmake
  INSTALL_DESTINATION ${config_dir} PATH_VARS development_docdir)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(packaging/belayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/belayConfig.cmake ${CMAKE_BINARY_DIR}/packaging/belayConfigVersion.cmake
  DESTINATION ${config_dir} COMPONENT development)

list(TRANSFORM definitions PREPEND -D)
list(JOIN definitions " " pc_definitions)
# From the folder of the file, so that the prefix can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
configure_file(packaging/belay.pc.in packaging/belay.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/packaging/belay.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${development_docdir} COMPONENT development)
install(DIRECTORY docs DESTINATION ${development_docdir} COMPONENT development
  FILES_MATCHING PATTERN *.md PATTERN *.png)
# What checks the rule for g++ 12.
install(DIRECTORY examples DESTINATION ${development_docdir} USE_SOURCE_PERMISSIONS COMPONENT development)
install(PROGRAMS tools/await_lint.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/belay COMPONENT development)
install(FILES tools/await-lint.query DESTINATION ${CMAKE_INSTALL_DATADIR}/belay COMPONENT development)
