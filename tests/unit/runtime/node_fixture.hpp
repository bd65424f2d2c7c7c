// A node over the memory store, on one loop with a clock of the test's, and clients at the other end of its
// connections.
#pragma once

#include "runtime/node.hpp"
#include "sim/sim_loop.hpp"
#include "sim/wire.hpp"
#include "store/memory_store.hpp"
#include "troubled_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace belay::runtime {

/// A client that reads one connection.
class reading_client {
public:
    reading_client(
        sim::scheduler& world, sim::sim_loop& loop, std::shared_ptr<following> const& on, std::size_t capacity)
        : world_(world), wire(std::make_shared<sim::wire>(world.clock(), loop, on, capacity))
    {
        on->start(wire);
    }
    /// The messages that have come since the last time; an id without a message is an empty one.
    std::vector<std::string> read()
    {
        std::vector<std::string> messages;
        for (auto const& each : read_events())
            messages.push_back(each.data);
        return messages;
    }
    std::vector<http::sse_event> read_events()
    {
        std::vector<http::sse_event> events;
        for (std::size_t arrived = 1; arrived > 0;) {
            world_.run_all();
            auto const bytes = wire->receive(~std::size_t(0));
            arrived = bytes.size();
            reader_.feed(bytes);
        }
        while (auto event = reader_.next())
            events.push_back(std::move(*event));
        return events;
    }
    [[nodiscard]] std::string const& last_id() const noexcept { return reader_.last_id(); }
    [[nodiscard]] std::optional<std::uint32_t> retry_ms() const noexcept { return reader_.retry_ms(); }

private:
    sim::scheduler& world_;
    http::sse_reader reader_;

public:
    std::shared_ptr<sim::wire> const wire;
};

class NodeFixture : public testing::Test {
protected:
    explicit NodeFixture(settings with = {})
        : store_(with.limits, world_.clock(), 1), node_(std::move(with), between_, random_, metrics_, {})
    {
        world_.add(loop_);
        world_.on(loop_, [&] { node_.start(loop_); });
    }
    ~NodeFixture() override
    {
        node_.calls().interrupt_all();
        world_.run_all();
        world_.on(loop_, [&] { node_.stop(); });
    }

    static constexpr std::size_t wide = 1 << 20;

    base::seeded_random random_{1};
    sim::scheduler world_{random_};
    sim::sim_loop loop_{world_.clock()};
    store::memory_store store_;
    troubled_store between_{store_}; ///< what the node sees of it
    observe::metrics metrics_;
    node node_;
    std::shared_ptr<session_use> const use_ = session();

    std::shared_ptr<session_use> session(client_hello hello = {})
    {
        std::shared_ptr<session_use> made;
        node_.sessions().open(
            std::move(hello), [&](result<session_use> use) { made = std::make_shared<session_use>(std::move(*use)); });
        world_.run_all();
        return made;
    }
    /// What `begin` makes of the request; its connection is followed by nobody.
    begun_call begin_with(call_request request)
    {
        begun_call made;
        node_.calls().begin(*use_, loop_, std::move(request), [&](result<begun_call> begun) {
            ASSERT_TRUE(begun);
            made = std::move(*begun);
        });
        return made;
    }
    begun_call begin_with(std::string id)
    {
        call_request request;
        request.ids = {std::move(id)};
        return begin_with(std::move(request));
    }
    std::shared_ptr<call> begin(call_traits traits = {})
    {
        call_request request;
        request.ids = {"1"};
        request.traits = traits;
        return begin_with(std::move(request)).call;
    }
    std::shared_ptr<reading_client> read_from(std::shared_ptr<following> const& on, std::size_t capacity = wide)
    {
        return std::make_shared<reading_client>(world_, loop_, on, capacity);
    }
    using followed = std::expected<std::shared_ptr<following>, follow_refusal>;
    followed follow(std::optional<std::string> cursor = {}, caller from = caller::program)
    {
        followed outcome = std::unexpected(follow_refusal::unavailable);
        follow_request request;
        request.last_event_id = cursor;
        request.from = from;
        node_.attachments().follow(*use_, loop_, request, [&](followed done) { outcome = std::move(done); });
        world_.run_all();
        return outcome;
    }

    store::page read(store::stream_key const& stream)
    {
        store::page page;
        store_.read_after(stream, 0, {}, std::nullopt, [&](result<store::page> read) {
            ASSERT_TRUE(read);
            page = std::move(*read);
        });
        return page;
    }
    store::page read(call const& of) { return read(of.stream()); }
    std::vector<std::string> log(store::stream_key const& stream)
    {
        std::vector<std::string> texts;
        for (auto const& each : read(stream).events)
            texts.push_back(*each.payload);
        return texts;
    }
    std::vector<std::string> log(call const& of) { return log(of.stream()); }
    std::vector<std::string> announced_to(session_use const& use)
    {
        world_.run_all();
        return log({use.session()->key, use.record()->standalone});
    }

    void say(call& on, std::string text)
    {
        (void)on.emit(std::move(text), [](std::error_code) {});
    }
};

using texts = std::vector<std::string>;

}
