#include "transport/message_pipe.hpp"

#include "protocol/endings.hpp"
#include "protocol/names.hpp"
#include "runtime/notifications.hpp"
#include "transport/beginning.hpp"

#include <utility>

namespace belay::transport {

namespace code = protocol::code;

struct message_pipe::parsed_line {
    json::value value;
    std::size_t bytes;
};

/// What a following writes to.
class message_pipe::sink final : public runtime::event_sink, public std::enable_shared_from_this<sink> {
public:
    sink(std::shared_ptr<message_pipe> pipe, std::shared_ptr<runtime::following> following)
        : pipe_(std::move(pipe)), following_(std::move(following))
    {
    }

    void write_priming(std::string_view, std::chrono::milliseconds, runtime::priming_style) override {}
    void write_event(std::string_view, std::string_view message) override
    {
        written_ += message.size();
        pipe_->write(message);
    }
    void write_id(std::string_view, runtime::priming_style) override {}
    void write_comment(std::string_view) override {}
    void write_retry(std::chrono::milliseconds) override {}
    bool flush() override
    {
        if (pipe_->has_room_)
            return true;
        pipe_->waiting_.insert(following_);
        return false;
    }
    std::shared_ptr<base::receipt> end(std::move_only_function<void()> arrived) override
    {
        leave();
        arrived(); // as far as anybody can know
        return nullptr;
    }
    void abort() override { leave(); }
    std::uint64_t written() const override { return written_; }
    std::uint64_t unacknowledged() const override { return 0; }
    bool peer_gone() const override { return false; }

private:
    void leave()
    {
        // A following holds its sink, and a sink its following, until one of them leaves.
        pipe_->waiting_.erase(following_);
        following_.reset();
    }

    std::shared_ptr<message_pipe> pipe_;
    std::shared_ptr<runtime::following> following_;
    std::uint64_t written_ = 0;
};

namespace {

/// Of what is no message, so that its sender knows which one it was.
std::string id_in(json::value const& value)
{
    auto const* object = value.if_object();
    auto const* id = object ? object->if_contains("id") : nullptr;
    auto text = id ? protocol::id_text(*id) : std::string();
    return text.empty() ? "null" : text;
}

}

message_pipe::message_pipe(
    runtime::node& node, runtime::service& service, base::loop& loop, line_output& out, message_pipe_settings settings)
    : node_(node), service_(service), loop_(loop), out_(out), settings_(std::move(settings))
{
}

message_pipe::~message_pipe() = default;

void message_pipe::write(std::string_view message)
{
    has_room_ = out_.write(message);
}

void message_pipe::drained()
{
    has_room_ = true;
    for (auto const& each : std::exchange(waiting_, {}))
        each->drained();
}

void message_pipe::let_go()
{
    for (auto const& each : std::exchange(waiting_, {}))
        each->peer_gone();
}

void message_pipe::receive(std::string_view line)
{
    if (is_closed_ || line.find_first_not_of(" \t\r") == std::string_view::npos)
        return;
    auto value = protocol::parse_json(line, {});
    if (!value)
        return write(protocol::error_response("null", value.error()));
    auto const kept = std::make_shared<parsed_line>(std::move(*value), line.size());
    auto const* const batch = kept->value.if_array();
    if (!batch) {
        auto const message = protocol::read_message(kept->value);
        if (!message)
            return write(protocol::error_response(id_in(kept->value), message.error()));
        return receive(kept, *message);
    }
    auto const refuse = [&](std::string why) {
        write(protocol::error_response("null", {code::invalid_request, "Invalid Request: " + std::move(why), {}}));
    };
    if (!use_ || !protocol::facts_of(use_->session()->current_revision()).may_batch)
        return refuse("send one message per line, not a batch");
    if (batch->empty() || batch->size() > settings_.batch_max)
        return refuse("a batch has 1 to " + std::to_string(settings_.batch_max) + " messages");
    std::vector<protocol::message> messages;
    for (auto const& each : *batch) {
        auto message = protocol::read_message(each);
        if (!message)
            return write(protocol::error_response(id_in(each), message.error()));
        if (message->method == protocol::method::initialize)
            return refuse("initialize must not be part of a batch");
        messages.push_back(std::move(*message));
    }
    // Nothing makes the answers of a line wait for each other.
    for (auto const& each : messages)
        receive(kept, each);
}

void message_pipe::refuse_line(std::size_t limit)
{
    write(protocol::error_response(
        "null",
        {code::invalid_request, "Invalid Request: a line has at most " + std::to_string(limit) + " bytes", {}}));
}

void message_pipe::receive(std::shared_ptr<parsed_line> const& line, protocol::message const& message)
{
    if (message.kind == protocol::message_kind::request)
        return message.method == protocol::method::initialize ? initialize(message) : request(line, message);
    if (!use_)
        return; // nothing to answer, and nothing that it could be about
    if (message.kind == protocol::message_kind::notification)
        runtime::handle_notification(node_, use_->session(), message, loop_, [](result<void>) {});
    else
        node_.calls().take_answer(*use_->session(), message, [](result<void>) {});
}

void message_pipe::initialize(protocol::message const& message)
{
    auto const revision = protocol::negotiate(message);
    if (!revision)
        return write(protocol::error_response(message.id, revision.error()));
    if (is_opening_)
        return write(
            protocol::error_response(message.id, {code::invalid_request, "Invalid Request: already initializing", {}}));
    auto hello = runtime::read_hello(message, *revision, settings_.principal, service_.features(), node_.settings());
    if (!hello)
        return write(protocol::error_response(message.id, hello.error()));
    auto answer = [self = shared_from_this(), id = message.id, revision = hello->revision,
                   features = hello->features](std::error_code why) {
        self->is_opening_ = false;
        self->write(
            why ? protocol::error_response(id, begin_error(why))
                : protocol::result_response(
                      id, self->service_.initialize_result(revision, runtime::session_mode::kept, features)));
    };
    is_opening_ = true;
    if (use_)
        return node_.sessions().reopen(*use_, std::move(*hello), [answer](result<void> reopened) {
            answer(reopened ? std::error_code() : reopened.error());
        });
    node_.sessions().open(
        std::move(*hello), [self = shared_from_this(), answer](result<runtime::session_use> use) mutable {
            if (!use)
                return answer(use.error());
            self->use_.emplace(std::move(*use));
            answer({});
            self->follow_standalone();
        });
}

void message_pipe::follow_standalone()
{
    node_.attachments().follow(
        *use_, loop_, {std::nullopt, runtime::caller::pipe},
        [self
         = shared_from_this()](std::expected<std::shared_ptr<runtime::following>, runtime::follow_refusal> followed) {
            if (followed)
                (*followed)->start(std::make_shared<sink>(self, *followed));
        });
}

void message_pipe::request(std::shared_ptr<parsed_line> const& line, protocol::message const& message)
{
    if (!use_) {
        if (message.method == protocol::method::ping)
            return write(protocol::result_response(message.id, "{}"));
        return write(protocol::error_response(
            message.id, {code::server_error, "Server not initialized: send initialize first", {}}));
    }
    auto const revision = use_->session()->current_revision();
    auto trace = protocol::trace_context_of(message.meta, std::nullopt, std::nullopt);
    auto outcome = service_.find(message).run({node_, use_->session(), revision, message, trace ? &*trace : nullptr});
    runtime::perform(
        std::move(outcome), [self = shared_from_this(), line](std::string const& response) { self->write(response); },
        [&](runtime::start_call start, auto const&) {
            if (start.once && line->value.is_array())
                return write(protocol::error_response(message.id, batched_key_error()));
            call_origin origin{runtime::caller::pipe, settings_.principal, std::move(trace), line->bytes};
            run_call(request_for(message.id, revision, start, std::move(origin)), std::move(start));
        });
}

void message_pipe::run_call(runtime::call_request request, runtime::start_call start)
{
    auto id = request.ids.front();
    node_.calls().begin(
        *use_, loop_, std::move(request),
        [self = shared_from_this(), start = std::move(start),
         id = std::move(id)](result<runtime::begun_call> begun) mutable {
            if (!begun)
                return self->write(protocol::error_response(id, begin_error(begun.error())));
            auto const to = std::make_shared<sink>(self, begun->following);
            run(self->node_, start, *begun);
            begun->following->start(to);
        });
}

void message_pipe::close(std::move_only_function<void()> done)
{
    if (std::exchange(is_closed_, true) || !use_)
        return done();
    auto const session = use_->session();
    use_.reset();
    node_.sessions().end(
        session->key, loop_, [self = shared_from_this(), done = std::move(done)](result<void>) mutable { done(); });
}

}
