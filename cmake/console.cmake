# The console page: built from web/ by npm, and put into the program as it is and as gzip makes it.
set(BELAY_CONSOLE_SOURCES app/no_console.cpp)
if(BELAY_CONSOLE)
  find_program(BELAY_NPM npm)
  if(NOT BELAY_NPM)
    message(FATAL_ERROR "npm is needed to build the console page: install it (scripts/setup build), "
      "or configure with -DBELAY_CONSOLE=OFF for a program without the page")
  endif()
  set(out ${PROJECT_BINARY_DIR}/console)
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB_RECURSE console_inputs CONFIGURE_DEPENDS
    ${web}/client/src/*.ts ${web}/react/src/*.ts* ${web}/console/src/*)
  add_custom_command(
    OUTPUT ${out}/console_files.cpp ${out}/console_files.S
    COMMAND ${web}/build_console ${out}
    DEPENDS ${console_inputs} ${web}/build_console ${web}/package-lock.json ${web}/console/embed.mjs
      ${web}/console/index.html ${web}/console/package.json ${web}/console/vite.config.ts
    COMMENT "Building the console page" VERBATIM USES_TERMINAL)
  set(BELAY_CONSOLE_SOURCES ${out}/console_files.cpp ${out}/console_files.S)
  set_source_files_properties(${out}/console_files.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(${out}/console_files.S PROPERTIES COMPILE_OPTIONS -Wno-unused-command-line-argument)
endif()
