// What a request is refused with before it reaches a handler, by those who read it.
#pragma once

#include "http/request_reader.hpp"

namespace belay::http {

inline constexpr refusal bad_byte{
    400, "The request head holds a control character; send an HTTP/1.1 request in plain text."};
inline constexpr refusal bad_line_end{400, "Each line of the request head must end with CR LF."};
inline constexpr refusal folded_line{400, "A header line must not begin with a blank; send each header on one line."};
inline constexpr refusal bad_request_line{
    400, "The first line must be METHOD, target and HTTP version with one blank between."};
inline constexpr refusal bad_version{505, "This server speaks HTTP/1.1 and HTTP/1.0 only."};
inline constexpr refusal bad_target{
    400, "The request target must be an absolute path or URL in visible ASCII characters."};
inline constexpr refusal bad_field{
    400, "A header line is malformed; send name, colon and value without a blank before the colon."};
inline constexpr refusal bad_length{
    400, "Content-Length must be sent once, as one decimal number, and not with Transfer-Encoding."};
inline constexpr refusal bad_encoding{
    400, "Send either Transfer-Encoding: chunked or Content-Length, once, on HTTP/1.1."};
inline constexpr refusal other_encoding{501, "The only Transfer-Encoding understood here is chunked."};
inline constexpr refusal bad_host{400, "An HTTP/1.1 request must carry exactly one valid Host header."};
inline constexpr refusal bad_expectation{417, "The only expectation understood here is 100-continue."};
inline constexpr refusal bad_chunk{400, "The chunked body is malformed."};
inline constexpr refusal head_too_large{
    431, "The request head is larger than this server accepts; send fewer or shorter headers."};
inline constexpr refusal target_too_long{414, "The request target is longer than this server accepts."};
inline constexpr refusal body_too_large{413, "The request body is larger than this server accepts."};

}
