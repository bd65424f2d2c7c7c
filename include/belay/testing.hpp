// For tests of your own server: drive it in memory, with a clock that the test owns, or call one tool's function
// without a server. No sockets and no waiting; only blocking tools have a thread, and take the time that they take.
//
//     belay::testing::client client(server);             // initialized, as a client of 2025-11-25
//     auto call = client.begin("tools/call", {{"name", "forecast"}, {"arguments", {{"city", "Rome"}}}});
//     client.advance(1s);
//     EXPECT_EQ(client.notifications("notifications/progress").size(), 1u);
//     client.advance(2s);
//     EXPECT_EQ(call.result().at("content").at(0).at("text"), "sunny in Rome");
#pragma once

#include <belay/server.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::inline v0::testing {

/// Thrown where a request was answered with a JSON-RPC error.
class request_error : public std::runtime_error {
public:
    request_error(int code, std::string const& text, json::value data)
        : std::runtime_error(text), code_(code), data_(std::move(data))
    {
    }
    [[nodiscard]] int code() const noexcept { return code_; }
    [[nodiscard]] json::value const& data() const noexcept { return data_; }

private:
    int code_;
    json::value data_;
};

struct client_options {
    std::string version = "2025-11-25";
    json::object capabilities{}; ///< such as {{"elicitation", {}}}
    json::object info{{"name", "test"}, {"version", "0"}};
};

class client;

/// A request that was sent.
class pending {
public:
    [[nodiscard]] bool is_answered() const;
    /// The result. Waits for a blocking tool, up to 10 s. Throws request_error for an error, std::logic_error if there
    /// is no answer yet.
    [[nodiscard]] json::object result() const;
    /// notifications/cancelled for it.
    void cancel();

private:
    friend class client;
    pending(client& of, std::int64_t id) : of_(&of), id_(id) {}
    client* of_;
    std::int64_t id_;
};

/// One client of the server, connected in memory. Everything happens inside the calls made on it.
class client {
public:
    explicit client(server const& server, client_options options = {});
    client(client const&) = delete;
    ~client();

    /// Sends a request and lets the server work until it waits for time or for answers.
    pending begin(std::string_view method, json::object params = {});
    /// The same for what is answered at once. Throws as pending::result().
    json::object request(std::string_view method, json::object params = {});
    /// tools/call: its result, once it is there without time passing.
    json::object call(std::string_view tool, json::object arguments = {});
    void notify(std::string_view method, json::object params = {});

    /// Lets time pass, and the server work. With 0 it does what can be done without time passing.
    void advance(std::chrono::nanoseconds by);

    /// How requests of the server with this method are answered: with the function's result, or its exception as an
    /// error. Without one they stay open.
    void answer(std::string method, std::function<json::object(json::object const& params)> function);

    /// What the server has sent that was no answer, oldest first: whole messages.
    [[nodiscard]] std::vector<json::object> const& received() const;
    /// The params of those notifications.
    [[nodiscard]] std::vector<json::object> notifications(std::string_view method) const;
    /// The InitializeResult.
    [[nodiscard]] json::object const& initialized() const;

private:
    friend class pending;
    class impl;
    std::unique_ptr<impl> impl_;
};

namespace detail {

template<class T>
inline constexpr bool is_no_tool = false;

template<class R, class F, class... Args>
task<std::string> run_into(std::optional<R>& into, F const& function, call& on, Args... args)
{
    R value = co_await function(on, std::move(args)...);
    into.emplace(std::move(value));
    co_return std::string();
}

/// A server with the one function as its tool, and a client of it.
class bench {
public:
    explicit bench(client_options options) : options_(std::move(options)) {}
    server& on() noexcept { return server_; }
    void start();
    /// Throws tool_error if the tool failed.
    void finish(pending const& of);
    client& by() { return *client_; }

private:
    client_options options_;
    server server_{"test", "0"};
    std::unique_ptr<client> client_;
};

}

/// One tool's function under test, with a context of its own: of any shape that server::tool() takes.
template<class R>
class tool_run {
public:
    template<class F, class... Args>
    explicit tool_run(F function, Args... args) : tool_run(client_options{}, std::move(function), std::move(args)...)
    {
    }
    template<class F, class... Args>
    tool_run(client_options options, F function, Args... args) : bench_(std::move(options))
    {
        if constexpr (std::is_invocable_v<F const&, belay::call&, Args...>)
            bench_.on().tool("under_test", [this, function = std::move(function), args...](belay::call& on) {
                return detail::run_into<R, F, Args...>(value_, function, on, args...);
            });
        else if constexpr (std::is_invocable_v<F const&, blocking_call&, Args...>)
            bench_.on().tool("under_test", [this, function = std::move(function), args...](blocking_call& on) {
                value_.emplace(function(on, args...));
                return std::string();
            });
        else if constexpr (std::is_invocable_v<F const&, caller const&, Args...>)
            bench_.on().tool("under_test", [this, function = std::move(function), args...](caller const& by) {
                value_.emplace(function(by, args...));
                return std::string();
            });
        else if constexpr (std::is_invocable_v<F const&, Args...>)
            bench_.on().tool("under_test", [this, function = std::move(function), args...] {
                value_.emplace(function(args...));
                return std::string();
            });
        else
            static_assert(
                detail::is_no_tool<F>,
                "the function takes call&, blocking_call&, caller const& or none of them, and then these arguments");
        bench_.start();
    }

    [[nodiscard]] client& by() { return bench_.by(); }
    /// Begins the function, with progress asked for.
    void begin()
    {
        pending_.emplace(by().begin("tools/call", {{"name", "under_test"}, {"_meta", {{"progressToken", 1}}}}));
    }
    /// What it returned. Throws tool_error with the text of its failure, std::logic_error if it still runs.
    [[nodiscard]] R const& result()
    {
        bench_.finish(begun());
        return *value_;
    }
    void cancel() { begun().cancel(); }

private:
    pending& begun()
    {
        if (!pending_)
            throw std::logic_error("the function was not begun: call begin() first");
        return *pending_;
    }

    std::optional<R> value_;
    detail::bench bench_;
    std::optional<pending> pending_;
};

}
