// What a tool that waits returns: an Asio awaitable, so that a tool may await any Asio operation.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace belay::inline v0 {

template<class T = void>
using task = boost::asio::awaitable<T>;

}
