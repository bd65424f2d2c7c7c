#include "transport/streamable_http.hpp"

#include "fake_exchange.hpp"
#include "protocol/names.hpp"
#include "unit/runtime/node_fixture.hpp"

namespace belay::transport {

namespace {

using question = runtime::troubled_store::question;

/// Counts its runs, and answers when the test does.
class counting_service final : public runtime::service {
public:
    std::vector<std::shared_ptr<runtime::call>> runs;

    [[nodiscard]] std::uint32_t features() const override { return 0; }
    [[nodiscard]] std::string initialize_result(protocol::revision, runtime::session_mode, std::uint32_t) const override
    {
        return "{}";
    }
    [[nodiscard]] runtime::route find(protocol::message const&) override
    {
        runtime::route found;
        found.is_instant = false;
        found.run = [this](runtime::incoming const&) -> runtime::outcome {
            runtime::start_call start;
            start.run = [this](std::shared_ptr<runtime::call> on) { runs.push_back(std::move(on)); };
            return start;
        };
        return found;
    }
    [[nodiscard]] bool can_run(std::uint64_t) const override { return false; }
};

class StreamableHttp : public runtime::NodeFixture {
protected:
    StreamableHttp() : session_(session({"anonymous", protocol::revision::r2025_03_26, "{}", "{}"})) {}
    ~StreamableHttp() override
    {
        node_.calls().interrupt_all();
        world_.run_all();
        service_.runs.clear();
    }

    std::shared_ptr<fake_exchange> post(std::string body)
    {
        auto exchange = std::make_shared<fake_exchange>(
            loop_, std::move(body),
            std::map<std::string, std::string, std::less<>>{
                {std::string(protocol::header::session), base::to_string(session_->session()->key.id)}});
        endpoint_.handle(exchange);
        world_.run_all();
        return exchange;
    }
    static std::string request(std::string const& id)
    {
        return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"work"})";
    }
    static std::string cancel(std::string const& id)
    {
        return R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id + "}}";
    }

    counting_service service_;
    streamable_http endpoint_{node_, service_, {}};
    std::shared_ptr<runtime::session_use> session_;
};

TEST_F(StreamableHttp, WhatABatchSaysBesideItsRequestsIsKeptBeforeTheyRunOrRefusedWithThem)
{
    auto const running = post(request("1"));
    ASSERT_EQ(service_.runs.size(), 1u);
    between_.fail(question::post, 1);
    auto const refused = post("[" + request("2") + "," + cancel("1") + "]");
    EXPECT_EQ(refused->status, 503u);
    EXPECT_EQ(service_.runs.size(), 1u);
    EXPECT_FALSE(service_.runs.front()->is_ended());
    auto const taken = post("[" + request("2") + "," + cancel("1") + "]");
    EXPECT_EQ(taken->status, 200u);
    ASSERT_EQ(service_.runs.size(), 2u);
    EXPECT_EQ(service_.runs.front()->end_reason(), protocol::end_reason::cancelled);
    EXPECT_FALSE(service_.runs.back()->is_ended());
}

TEST_F(StreamableHttp, ABatchCanCancelItsOwnRequests)
{
    post("[" + cancel("2") + "," + request("1") + "," + request("2") + "]");
    ASSERT_EQ(service_.runs.size(), 2u);
    EXPECT_FALSE(service_.runs.front()->is_ended());
    EXPECT_EQ(service_.runs.back()->end_reason(), protocol::end_reason::cancelled);
}

}

}
