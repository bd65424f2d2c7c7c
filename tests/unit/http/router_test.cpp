#include "http/router.hpp"

#include "fake_request.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace belay::http {

namespace {

class fake_loop final : public base::loop {
public:
    fake_loop() : loop(clock_) {}
    void post(std::move_only_function<void()>) override {}

private:
    inline static base::manual_clock clock_;
};

struct fake_exchange final : exchange {
    fake_request asked;
    unsigned status = 0;
    std::string body;
    std::string allow;

    http::request const& request() const noexcept override { return asked; }
    base::loop& loop() noexcept override { return loop_; }
    void respond(response_head const& head, std::string_view text) override
    {
        status = head.status;
        body = text;
        for (auto const& [name, value] : head.fields)
            if (name == "Allow")
                allow = value;
    }
    void observe(stream_observer&) override {}
    void begin_stream(response_head const&, stream_observer&) override {}
    std::string& out() noexcept override { return body; }
    bool flush() override { return true; }
    std::shared_ptr<base::receipt> end_stream(std::move_only_function<void()>) override { return nullptr; }
    void abort() override {}
    std::size_t unacknowledged() const noexcept override { return 0; }
    bool peer_gone() const noexcept override { return false; }

private:
    fake_loop loop_;
};

std::shared_ptr<fake_exchange> ask(router& router, method verb, std::string path)
{
    auto exchange = std::make_shared<fake_exchange>();
    exchange->asked.verb = verb;
    exchange->asked.where = std::move(path);
    router.handle(exchange);
    return exchange;
}

class RouterTest : public testing::Test {
protected:
    RouterTest()
    {
        router_.add("/a", "GET, HEAD, OPTIONS", [](std::shared_ptr<exchange> e) { respond_text(*e, 200, "a"); });
        router_.add("/b", "POST, OPTIONS", target_);
    }

    struct : handler {
        void handle(std::shared_ptr<exchange> e) override { respond_text(*e, 202, "b"); }
    } target_;
    router router_;
};

}

TEST_F(RouterTest, FindsTheHandlerOfAPath)
{
    EXPECT_EQ(ask(router_, method::get, "/a")->body, "a\n");
    EXPECT_EQ(ask(router_, method::post, "/b")->status, 202u);
}

TEST_F(RouterTest, SendsHeadWhereGetGoes)
{
    EXPECT_EQ(ask(router_, method::head, "/a")->status, 200u);
}

TEST_F(RouterTest, AnswersOptionsWithTheMethods)
{
    auto const answer = ask(router_, method::options, "/b");
    EXPECT_EQ(answer->status, 204u);
    EXPECT_EQ(answer->allow, "POST, OPTIONS");
    EXPECT_EQ(ask(router_, method::options, "*")->status, 204u);
}

TEST_F(RouterTest, RefusesUnknownPaths)
{
    auto const answer = ask(router_, method::get, "/a/<b>");
    EXPECT_EQ(answer->status, 404u);
    EXPECT_EQ(answer->body, "Nothing is served at /a/?b?.\n");
    EXPECT_EQ(ask(router_, method::options, "/c")->status, 404u);
}

TEST_F(RouterTest, RefusesASecondHandlerForAPath)
{
    EXPECT_THROW(router_.add("/a", "GET", target_), std::logic_error);
}

}
