# Inside this tree, find_package(belay) finds the tree: the examples read like projects of their own.
include(FindPackageHandleStandardArgs)
set(belay_VERSION ${CMAKE_PROJECT_VERSION})
set(belay_TARGET belay::belay)
find_package_handle_standard_args(belay REQUIRED_VARS belay_TARGET VERSION_VAR belay_VERSION)
