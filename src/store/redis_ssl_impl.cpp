// The one place where the bodies of Asio's TLS are compiled (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
