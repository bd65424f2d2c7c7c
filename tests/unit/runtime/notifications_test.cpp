#include "runtime/notifications.hpp"

#include "runtime/node.hpp"
#include "sim/sim_loop.hpp"
#include "store/memory_store.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace belay::runtime {

namespace {

class Notifications : public testing::Test {
protected:
    Notifications() { world_.add(loop_); }
    base::seeded_random random_{1};
    sim::scheduler world_{random_};
    sim::sim_loop loop_{world_.clock()};
    store::memory_store store_{{}, world_.clock(), 1};
    observe::metrics metrics_;
    node node_{{}, store_, random_, metrics_, {}};
    std::shared_ptr<session_use> use_ = session();

    std::shared_ptr<session_use> session()
    {
        std::shared_ptr<session_use> made;
        node_.sessions().open(
            {}, [&](result<session_use> use) { made = std::make_shared<session_use>(std::move(*use)); });
        return made;
    }
    void notify(std::string const& method, std::string const& params, session_use const& use)
    {
        auto const value = json::parse(R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + "}");
        bool is_done = false;
        handle_notification(
            node_, use.session(), *protocol::read_message(value), loop_, [&](result<void>) { is_done = true; });
        world_.run_all();
        EXPECT_TRUE(is_done);
    }
    void notify(std::string const& method, std::string const& params) { notify(method, params, *use_); }
    std::shared_ptr<call> begin(std::string id)
    {
        std::shared_ptr<call> made;
        call_request request;
        request.ids = {std::move(id)};
        node_.calls().begin(*use_, loop_, std::move(request), [&](result<begun_call> begun) {
            made = begun->call;
            begun->following->peer_gone(); // nobody is connected
        });
        world_.run_all();
        return made;
    }
    ~Notifications() override
    {
        node_.calls().interrupt_all();
        world_.run_all();
    }
};

TEST_F(Notifications, NoteThatTheClientIsReady)
{
    EXPECT_FALSE(use_->session()->current_record()->initialized);
    notify("notifications/initialized", "{}");
    EXPECT_TRUE(use_->session()->current_record()->initialized);
}

TEST_F(Notifications, CancelACall)
{
    auto const one = begin("1");
    auto const other = begin("2");
    bool is_told = false;
    one->on_interrupt([&] { is_told = true; });
    notify("notifications/cancelled", R"({"requestId":1,"reason":"no more"})");
    EXPECT_EQ(one->end_reason(), protocol::end_reason::cancelled);
    EXPECT_TRUE(is_told);
    EXPECT_FALSE(other->is_ended());
}

TEST_F(Notifications, CancelByValueAndType)
{
    auto const number = begin("1");
    auto const text = begin("\"1\"");
    notify("notifications/cancelled", R"({"requestId":"1"})");
    EXPECT_FALSE(number->is_ended());
    EXPECT_TRUE(text->is_ended());
}

TEST_F(Notifications, CancelTheNewestCallWithTheId)
{
    auto const old = begin("0");
    auto const fresh = begin("0");
    notify("notifications/cancelled", R"({"requestId":0})");
    EXPECT_FALSE(old->is_ended());
    EXPECT_TRUE(fresh->is_ended());
}

TEST_F(Notifications, CancelNoOlderCallWhileANewerAnswerIsUnderWay)
{
    auto const old = begin("0");
    auto const fresh = begin("0");
    fresh->answer(protocol::result_response("0", "{}"));
    world_.run_all();
    notify("notifications/cancelled", R"({"requestId":0})");
    EXPECT_FALSE(old->is_ended());
}

TEST_F(Notifications, CancelTheOlderCallOnceTheNewerAnswerHasArrived)
{
    auto const old = begin("0");
    auto const fresh = begin("0");
    fresh->answer(protocol::result_response("0", "{}"));
    world_.run_all();
    store_.note_delivered(fresh->stream(), 1);
    notify("notifications/cancelled", R"({"requestId":0})");
    EXPECT_EQ(old->end_reason(), protocol::end_reason::cancelled);
}

TEST_F(Notifications, CancelNothingInAnotherSession)
{
    auto const one = begin("1");
    auto const other = session();
    notify("notifications/cancelled", R"({"requestId":1})", *other);
    EXPECT_FALSE(one->is_ended());
}

TEST_F(Notifications, IgnoreWhatTheyCannotUse)
{
    auto const one = begin("1");
    for (auto const params :
         {"{}", R"({"requestId":null})", R"({"requestId":[1]})", R"({"requestId":1.5})", R"({"requestId":99})",
          R"({"id":1})"})
        notify("notifications/cancelled", params);
    notify("notifications/roots/list_changed", "{}");
    notify("tools/call", R"({"name":"x"})");
    EXPECT_FALSE(one->is_ended());
}

}

}
