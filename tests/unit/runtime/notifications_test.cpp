#include "runtime/notifications.hpp"

#include "node_fixture.hpp"

#include <boost/json/parse.hpp>

namespace belay::runtime {

namespace {

class Notifications : public NodeFixture {
protected:
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
        auto const begun = begin_with(std::move(id));
        begun.following->peer_gone(); // nobody is connected
        world_.run_all();
        return begun.call;
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
