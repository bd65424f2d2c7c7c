// What the HTTP endpoints have in common: reading what was posted, refusing it, and the ways to answer. Where one of
// these says that something is not good, it has answered.
#pragma once

#include "http/exchange.hpp"
#include "protocol/message.hpp"
#include "protocol/revision.hpp"
#include "protocol/trace_context.hpp"
#include "runtime/node.hpp"
#include "runtime/service.hpp"

#include <boost/json/monotonic_resource.hpp>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::transport {

using exchange_ptr = std::shared_ptr<http::exchange>;

inline constexpr std::string_view json_type = "application/json";
inline constexpr std::string_view sse_type = "text/event-stream";

enum class answer_form { automatic, sse, json };

/// Whether an Accept field allows the media type. An absent field allows everything.
[[nodiscard]] bool accepts(std::optional<std::string_view> accept, std::string_view type) noexcept;

// --- refusing

void refuse(
    http::exchange& exchange, unsigned status, protocol::rpc_error const& error, std::vector<http::field> fields = {});
void refuse_unknown_session(http::exchange& exchange);
/// Why something could not be begun, as HTTP says it.
void refuse_begin(http::exchange& exchange, std::error_code why);
/// False: a header that says one thing came twice. Which of them is meant is not for us to guess.
[[nodiscard]] bool check_single_headers(http::exchange& exchange);
/// What the version field says, or what is meant without one. Nothing: it names a revision that is not spoken here.
[[nodiscard]] std::optional<protocol::revision> read_version(http::exchange& exchange);

// --- reading

/// A request's body as JSON, with the memory it lives in.
struct posted {
    posted() {} // leaves the buffer as it is: two kilobytes of zeros are not free
    std::array<unsigned char, 2048> buffer;
    json::monotonic_resource arena{buffer.data(), buffer.size()};
    json::value value = json::value(json::storage_ptr(&arena));
    protocol::message message;
    std::vector<protocol::message> batch; ///< of a body that is an array; never with an `initialize`
    std::vector<runtime::route> routes;   ///< of a batch that has only requests left
    [[nodiscard]] bool is_batch() const noexcept { return value.is_array(); }
};
/// Null: it is not good.
[[nodiscard]] std::shared_ptr<posted> read_post(http::exchange& exchange, std::size_t batch_max);
/// False: a client of the revision may not send several messages at once.
[[nodiscard]] bool check_batch(http::exchange& exchange, protocol::revision revision);

/// Which trace the message belongs to, also noted for the access log.
std::optional<protocol::trace_context> trace_of(http::exchange& exchange, protocol::message const& message);
[[nodiscard]] runtime::caller caller_of(http::request const& request) noexcept;

// --- answering

/// One event without an id: a whole answer for those who want SSE.
void respond_event(http::exchange& exchange, std::string_view response, std::vector<http::field> fields = {});

/// A streamed answer, as SSE. Keeps itself alive until it ends.
class sse_sink final : public runtime::event_sink,
                       public http::stream_observer,
                       public std::enable_shared_from_this<sse_sink> {
public:
    sse_sink(exchange_ptr exchange, std::weak_ptr<runtime::sink_writer> writer);

    void begin();

    void write_priming(std::string_view id, std::chrono::milliseconds retry, runtime::priming_style style) override;
    /// An empty id: none.
    void write_event(std::string_view id, std::string_view message) override;
    void write_id(std::string_view id, runtime::priming_style style) override;
    void write_comment(std::string_view text) override;
    void write_retry(std::chrono::milliseconds retry) override;
    bool flush() override;
    std::shared_ptr<base::receipt> end(std::move_only_function<void()> arrived) override;
    void abort() override;
    std::uint64_t written() const override { return written_; }
    std::uint64_t unacknowledged() const override { return exchange_->unacknowledged(); }
    bool peer_gone() const override { return exchange_->peer_gone(); }

    void on_drained() override;
    void on_closed(http::stream_end why) override;

private:
    exchange_ptr exchange_;
    std::weak_ptr<runtime::sink_writer> writer_;
    std::shared_ptr<sse_sink> self_;
    std::uint64_t written_ = 0;
};

/// As a call that runs several messages names them.
[[nodiscard]] std::vector<std::string> ids_of(std::vector<protocol::message> const& batch);
/// Leaves the requests of a batch and finds their routes. True if all of them are instant.
[[nodiscard]] bool route_batch(runtime::service& service, posted& body);

/// What a batch is run with, once it has its routes. The session may be null.
struct batch_context {
    runtime::node& node;
    std::shared_ptr<runtime::live_session> session;
    protocol::revision revision = protocol::newest_revision;
};
/// Runs the requests of a batch without streams; `done` gets the JSON array of their answers, in the order of the
/// requests. `begun` is told of every call.
void hold_batch(
    batch_context const& context, exchange_ptr const& exchange, posted& body,
    std::function<void(std::shared_ptr<runtime::call> const&)> const& begun,
    std::move_only_function<void(std::string)> done);
/// Runs them as a batch, which gives their answers as they come.
void run_batch(
    batch_context const& context, std::shared_ptr<runtime::batch> const& batch, posted& body,
    protocol::trace_context const* trace);

}
