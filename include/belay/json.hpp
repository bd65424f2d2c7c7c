// The JSON value type of belay: Boost.JSON, under a short name. Included by headers that pass JSON along
// without looking into it.
#pragma once

#include <belay/detail/boost_version.hpp>

#include <boost/json/value.hpp>

namespace belay::inline v0 {

namespace json = boost::json;

}
