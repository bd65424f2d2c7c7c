// Which Boost the library can be used with. This is the header of the source tree, where the library is compiled with
// the Boost that its user has; the one that is installed is made of packaging/boost_version.hpp.in.
#pragma once

#include <boost/version.hpp>

#if BOOST_VERSION < 108100
#error "belay needs Boost 1.81 or newer; put the headers of such a one first"
#endif
