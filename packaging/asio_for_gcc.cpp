// Functions of Asio's executors that g++ gives other names than clang. Compiled by g++ into the archive of clang's
// objects, so that programs of both find theirs.
#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <boost/asio/impl/any_completion_executor.ipp>
#include <boost/asio/impl/any_io_executor.ipp>
