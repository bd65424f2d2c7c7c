// The side of a call that its tool sees, and the coroutine the tool runs in. On the call's loop.
#pragma once

#include "protocol/revision.hpp"
#include "runtime/call.hpp"
#include "runtime/service.hpp"
#include "server/access.hpp"

#include <belay/server.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/intrusive/list.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace belay::runtime {
class node;
}

namespace belay::inline v0::detail {

/// Leaves the tool when its call has ended. Not a std::exception, so that a tool's `catch` does not stop it.
struct unwinding {};

/// What a handler can know of the request it serves.
struct call_context {
    protocol::revision revision = protocol::newest_revision;
    std::string token; ///< JSON text; empty: the caller wants no progress
    json::object meta;
    std::string handler; ///< what is run, for whoever asks what holds a loop up
};
/// What a quick function can know of it, while it runs.
struct request_facts {
    runtime::node& node;
    std::shared_ptr<runtime::live_session> session; ///< null: the request stands alone
    protocol::revision revision;
    json::object const* meta;               ///< null: none
    protocol::trace_context const* trace;   ///< null: none
};
[[nodiscard]] request_facts facts_of(runtime::incoming const& request) noexcept;
/// The name or URI that a request is about; empty: none.
[[nodiscard]] std::string_view subject_of(protocol::message const& message) noexcept;
[[nodiscard]] call_context context_of(runtime::incoming const& request);
/// As handlers see it.
[[nodiscard]] trace trace_for(std::optional<protocol::trace_context> const& of);
/// JSON text; empty: none.
[[nodiscard]] std::string progress_token_of(protocol::message const& message);

/// A session as handlers see it.
class session_link {
public:
    session_link(runtime::node& node, std::shared_ptr<runtime::live_session> session);
    [[nodiscard]] runtime::node& node() const noexcept { return node_; }
    [[nodiscard]] std::shared_ptr<runtime::live_session> const& session() const noexcept { return session_; }

private:
    runtime::node& node_;
    std::shared_ptr<runtime::live_session> session_;
};

class call_state;

/// One coroutine that waits for something of its call, which may have several at once. It belongs to the frame that
/// waits. Whoever is to wake it has a weak pointer: a frame that was cancelled or destroyed is not there any more.
class call_wait : public std::enable_shared_from_this<call_wait>,
                  public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
public:
    explicit call_wait(std::shared_ptr<call_state> of) : of_(std::move(of)) {}
    call_wait(call_wait const&) = delete;
    call_wait& operator=(call_wait const&) = delete;

    /// Suspends the coroutine until resume(). Throws unwinding if the call has ended by then, and
    /// boost::system::system_error (operation_aborted) if the coroutine's cancellation slot was used.
    [[nodiscard]] task<void> suspended();
    /// Runs the coroutine on, here and now. No effect unless it is suspended.
    void resume();
    [[nodiscard]] bool is_suspended() const noexcept { return static_cast<bool>(resume_); }

private:
    void cancel();

    std::shared_ptr<call_state> const of_;
    std::move_only_function<void()> resume_; // the suspended coroutine: dropped without being called, it is destroyed
    bool is_cancelled_ = false;
};

/// The same, for something that gives a value.
template<class T>
class wait_for final : public call_wait {
public:
    wait_for(std::shared_ptr<call_state> of, T otherwise) : call_wait(std::move(of)), value_(std::move(otherwise)) {}

    void resume_with(T value)
    {
        if (!is_suspended())
            return;
        value_ = std::move(value);
        resume();
    }
    [[nodiscard]] T& value() noexcept { return value_; }

private:
    T value_;
};

class call_state : public std::enable_shared_from_this<call_state> {
public:
    call_state(runtime::node& node, std::shared_ptr<runtime::call> on, call_context context);

    [[nodiscard]] task<void> emit(std::string message);
    [[nodiscard]] task<void> sleep(std::chrono::nanoseconds time);
    void progress(double value, std::optional<double> total, std::string const& message);
    [[nodiscard]] bool wants_log(log_level level) const;
    /// The tool has done a good deal without waiting: others have their turn on the loop. Cheap if it has not.
    [[nodiscard]] bool is_turn_over() { return on_->is_turn_over(); }
    [[nodiscard]] task<void> give_way();
    [[nodiscard]] bool is_ended() const noexcept { return is_over_ || on_->is_ended(); }
    void throw_if_ended() const;
    void close_connection(std::chrono::milliseconds retry) { on_->close_connection(retry); }
    /// Asks the client and gives its result. Throws client_error. See questions.cpp.
    [[nodiscard]] task<json::object>
    ask(std::string_view method, std::string params, std::string key, std::optional<std::chrono::nanoseconds> limit);
    /// Whether the client can be asked this; see has_capability().
    [[nodiscard]] bool client_has(std::string_view capability) const;
    /// Throws tool_error where no question can be asked, whatever the client can do.
    void require_questions() const;
    /// A message on the session's standalone stream.
    void notify_session(std::string message) const;
    [[nodiscard]] protocol::revision revision() const noexcept { return context_.revision; }
    [[nodiscard]] protocol::revision_facts const& speaks() const noexcept
    {
        return protocol::facts_of(context_.revision);
    }
    [[nodiscard]] json::object const& meta() const noexcept { return context_.meta; }
    [[nodiscard]] std::string const& handler() const noexcept { return context_.handler; }

    /// The call has ended from outside: whatever the tool awaits is woken.
    void interrupt();
    /// The tool has ended: so does what it started and left waiting.
    void close();

    [[nodiscard]] runtime::call& on() const noexcept { return *on_; }
    [[nodiscard]] runtime::node& node() const noexcept { return node_; }
    [[nodiscard]] boost::asio::cancellation_signal& signal() noexcept { return signal_; }
    /// Holds what the handler's frame uses for as long as there is one; see io_loop::keeper().
    void hold(std::shared_ptr<void> used) { held_ = std::move(used); }

private:
    friend class call_wait;

    void wake_all();

    std::shared_ptr<void> held_; // the first member, so that it goes last
    runtime::node& node_;
    std::shared_ptr<runtime::call> on_;
    call_context context_;
    std::set<std::string> asked_; // keys of the questions so far
    boost::intrusive::list<call_wait, boost::intrusive::constant_time_size<false>> waits_; // in order of arrival
    bool is_over_ = false;
    boost::asio::cancellation_signal signal_;
};

/// Starts the tool's coroutine on the call's loop; it runs until it first waits before this returns.
void start_tool(
    runtime::node& node, std::shared_ptr<runtime::call> on, call_context context, std::string name, waiting_call run);

/// The same for other handlers: `run` gives a value, `render` makes the response of it, `failed` makes the response
/// where it threw.
template<class T>
void start_work(
    runtime::node& node, std::shared_ptr<runtime::call> on, call_context context,
    std::move_only_function<task<T>(call&)> run, std::function<std::string(T const&)> render,
    std::function<std::string(base::logger const&)> failed);

// --- inside

void start_life(std::shared_ptr<call_state> const& state, task<void> life);

template<class T>
task<void> work_life(
    std::shared_ptr<call_state> state, std::move_only_function<task<T>(call&)> run,
    std::function<std::string(T const&)> render, std::function<std::string(base::logger const&)> failed)
{
    auto context = access::make<call>(state);
    std::string response;
    try {
        T value = co_await run(context);
        response = render(value);
    } catch (unwinding const&) {
    } catch (...) {
        if (!state->is_ended()) // else: cancelled inside an operation that is not ours
            response = failed(state->on().logger());
    }
    state->close();
    if (!response.empty())
        state->on().answer(std::move(response));
}

template<class T>
void start_work(
    runtime::node& node, std::shared_ptr<runtime::call> on, call_context context,
    std::move_only_function<task<T>(call&)> run, std::function<std::string(T const&)> render,
    std::function<std::string(base::logger const&)> failed)
{
    auto const state = std::make_shared<call_state>(node, std::move(on), std::move(context));
    auto life = work_life<T>(state, std::move(run), std::move(render), std::move(failed));
    start_life(state, std::move(life));
}

}
