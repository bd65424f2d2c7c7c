# The project's warnings. Errors only on clang: g++ 12 has false positives in Asio at -O2.
add_library(belay_warnings INTERFACE)
target_compile_options(belay_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(belay_warnings INTERFACE -Wno-implicit-int-float-conversion -Wthread-safety)
  if(BELAY_WERROR)
    target_compile_options(belay_warnings INTERFACE -Werror)
  endif()
else()
  # g++ calls it shadowing where a member has the name of its type.
  target_compile_options(belay_warnings INTERFACE -Wno-shadow -Wno-maybe-uninitialized -Wno-missing-field-initializers)
  if(CMAKE_UNITY_BUILD)
    # It takes a source file that is compiled together with others for a header, where this would be a mistake.
    target_compile_options(belay_warnings INTERFACE -Wno-subobject-linkage)
  endif()
endif()
