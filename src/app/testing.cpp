// The test kit: a message pipe in memory, on a loop that runs only when it is asked to.
#include "app/assembly.hpp"
#include "base/io_loop.hpp"
#include "server/access.hpp"
#include "transport/message_pipe.hpp"
#include "json/parse.hpp"
#include "json/serialize.hpp"

#include <belay/testing.hpp>

#include <map>

namespace belay::inline v0::testing {

namespace {

/// How long a test waits for a blocking tool that does not return.
constexpr auto longest_wait = std::chrono::seconds(10);

app::settings settings_for_tests()
{
    app::settings settings;
    settings.runtime = {}; // what needs no completing
    settings.worker_threads = 1;
    settings.worker_queue = 16;
    return settings;
}

}

class client::impl final : public transport::line_output {
public:
    impl(std::shared_ptr<belay::detail::server_core> core, client_options options)
        : loop_(clock_),
          whole_(
              std::move(core), settings_for_tests(), app::assembly::mounts::left_out, clock_, random_, base::logger()),
          pipe_(std::make_shared<transport::message_pipe>(
              whole_.node(), whole_.core(), loop_, *this, transport::message_pipe_settings{}))
    {
        whole_.start(loop_);
        json::object params{
            {"protocolVersion", options.version},
            {"capabilities", std::move(options.capabilities)},
            {"clientInfo", std::move(options.info)}};
        auto const id = send("initialize", std::move(params));
        initialized_ = result_of(id);
        notify("notifications/initialized", {});
    }
    ~impl() override
    {
        whole_.node().calls().interrupt_all();
        pipe_->close([] {});
        settle();
        advance(std::chrono::seconds(2)); // what does not leave is cut off
        whole_.stop();
        whole_.workers().stop();
    }

    bool write(std::string_view message) override
    {
        auto const value = json_text::parse(message).value();
        auto const& object = value.as_object();
        if (!object.contains("method")) {
            if (auto const* id = object.if_contains("id"); id && id->is_int64())
                answers_[id->get_int64()] = object;
            return true;
        }
        received_.push_back(object);
        if (auto const* id = object.if_contains("id"))
            asked_.push_back({*id, object});
        return true;
    }

    std::int64_t send(std::string_view method, json::object params)
    {
        auto const id = ++last_id_;
        json::object message{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
        feed(message);
        return id;
    }
    void notify(std::string_view method, json::object params)
    {
        feed({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
    }
    void advance(std::chrono::nanoseconds by)
    {
        // In steps, so that timers which set timers find their time.
        auto left = by;
        do {
            auto const step = std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(100));
            clock_.advance(step);
            left -= step;
            settle();
        } while (left > std::chrono::nanoseconds::zero());
    }
    /// Blocking tools run on a thread of their own, in real time.
    void wait_for_workers(std::int64_t id)
    {
        auto const limit = std::chrono::steady_clock::now() + longest_wait;
        while (!answer_of(id) && std::chrono::steady_clock::now() < limit) {
            bool const is_idle = whole_.workers().running() + whole_.workers().queued() == 0;
            settle(); // after the look: what has ended before it has left its answer
            if (is_idle)
                return;
            loop_.context().restart();
            loop_.context().run_one_for(std::chrono::milliseconds(20));
        }
    }

    [[nodiscard]] json::object const* answer_of(std::int64_t id) const
    {
        auto const found = answers_.find(id);
        return found == answers_.end() ? nullptr : &found->second;
    }
    [[nodiscard]] json::object result_of(std::int64_t id) const
    {
        auto const* answer = answer_of(id);
        if (!answer)
            throw std::logic_error("the request is not answered yet; does it wait for time (advance) or an answer of "
                                   "the client (answer)?");
        if (auto const* error = answer->if_contains("error")) {
            auto const* data = error->as_object().if_contains("data");
            throw request_error(
                static_cast<int>(error->at("code").to_number<std::int64_t>()),
                std::string(error->at("message").as_string()), data ? *data : json::value());
        }
        return answer->at("result").as_object();
    }

    std::map<std::string, std::function<json::object(json::object const&)>, std::less<>> answerers_;
    std::vector<json::object> received_;
    json::object initialized_;

    void settle()
    {
        do {
            loop_.poke();
            loop_.context().restart();
            loop_.context().poll();
        } while (answer_one() || loop_.context().poll() > 0);
    }

private:
    void feed(json::object const& message)
    {
        pipe_->receive(json_text::to_json(message));
        settle();
    }
    bool answer_one()
    {
        for (auto at = asked_.begin(); at != asked_.end(); ++at) {
            auto const& method = at->second.at("method").as_string();
            auto const found = answerers_.find(std::string_view(method.data(), method.size()));
            if (found == answerers_.end())
                continue;
            json::object answer{{"jsonrpc", "2.0"}, {"id", at->first}};
            static json::object const nothing;
            auto const* params = at->second.if_contains("params");
            try {
                answer["result"] = found->second(params ? params->as_object() : nothing);
            } catch (std::exception const& error) {
                answer["error"] = json::object{{"code", -1}, {"message", error.what()}};
            }
            asked_.erase(at);
            pipe_->receive(json_text::to_json(answer));
            return true;
        }
        return false;
    }

    base::manual_clock clock_;
    base::io_loop loop_;
    base::seeded_random random_{1};
    app::assembly whole_;
    std::int64_t last_id_ = 0;
    std::map<std::int64_t, json::object> answers_;
    std::vector<std::pair<json::value, json::object>> asked_;
    std::shared_ptr<transport::message_pipe> pipe_;
};

bool pending::is_answered() const
{
    return of_->impl_->answer_of(id_) != nullptr;
}
json::object pending::result() const
{
    of_->impl_->wait_for_workers(id_);
    return of_->impl_->result_of(id_);
}
void pending::cancel()
{
    of_->notify("notifications/cancelled", {{"requestId", id_}});
}

client::client(server const& server, client_options options)
    : impl_(std::make_unique<impl>(belay::detail::access::core(server), std::move(options)))
{
}
client::~client() = default;

pending client::begin(std::string_view method, json::object params)
{
    return {*this, impl_->send(method, std::move(params))};
}
json::object client::request(std::string_view method, json::object params)
{
    return begin(method, std::move(params)).result();
}
json::object client::call(std::string_view tool, json::object arguments)
{
    return request("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
}
void client::notify(std::string_view method, json::object params)
{
    impl_->notify(method, std::move(params));
}
void client::advance(std::chrono::nanoseconds by)
{
    impl_->advance(by);
}
void client::answer(std::string method, std::function<json::object(json::object const&)> function)
{
    impl_->answerers_[std::move(method)] = std::move(function);
    impl_->settle();
}
std::vector<json::object> const& client::received() const
{
    return impl_->received_;
}
std::vector<json::object> client::notifications(std::string_view method) const
{
    std::vector<json::object> found;
    for (auto const& each : impl_->received_)
        if (each.at("method").as_string() == method && !each.contains("id")) {
            auto const* params = each.if_contains("params");
            found.push_back(params ? params->as_object() : json::object());
        }
    return found;
}
json::object const& client::initialized() const
{
    return impl_->initialized_;
}

namespace detail {

void bench::start()
{
    client_ = std::make_unique<client>(server_, options_);
}

void bench::finish(pending const& of)
{
    auto const result = of.result();
    auto const* failed = result.if_contains("isError");
    if (failed && failed->is_bool() && failed->get_bool())
        throw tool_error(std::string(result.at("content").at(0).at("text").as_string()));
}

}

}
