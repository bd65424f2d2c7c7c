#include "runtime/batch.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

class Batch : public NodeFixture {
protected:
    std::shared_ptr<batch> begin_both()
    {
        std::shared_ptr<batch> made;
        call_request request;
        request.ids = {"1", "2"};
        node_.calls().begin_batch(*use_, loop_, std::move(request), [&](result<begun_batch> begun) {
            ASSERT_TRUE(begun);
            made = begun->batch;
        });
        return made;
    }
    std::shared_ptr<call> member(std::uint32_t number)
    {
        return node_.calls().begin_member(both_, number, std::to_string(number + 1), {});
    }
    [[nodiscard]] store::stream_key stream() const { return {use_->session()->key, both_->output()->stream().value()}; }

    std::shared_ptr<batch> both_ = begin_both();
};

TEST_F(Batch, EndsWithTheLastOfItsAnswersHoweverEachIsGiven)
{
    both_->answer(0, "1", "at once");
    EXPECT_FALSE(read(stream()).state.finished);
    auto const second = member(1);
    second->answer("later");
    EXPECT_TRUE(read(stream()).state.finished);
    EXPECT_EQ(log(stream()), (texts{"at once", "later"}));
}

TEST_F(Batch, CancelsTheRequestThatIsMeant)
{
    auto const first = member(0);
    auto const second = member(1);
    both_->cancel(1);
    EXPECT_FALSE(first->is_ended());
    EXPECT_EQ(second->end_reason(), protocol::end_reason::cancelled);
}

TEST_F(Batch, EndsAllThatStillRun)
{
    auto const first = member(0);
    auto const second = member(1);
    first->answer("done");
    both_->end(protocol::end_reason::session_ended);
    EXPECT_EQ(first->end_reason(), std::nullopt);
    EXPECT_EQ(second->end_reason(), protocol::end_reason::session_ended);
    EXPECT_TRUE(read(stream()).state.finished);
}

TEST_F(Batch, ThatLostItsStreamInterruptsAllOfIt)
{
    auto const first = member(0);
    auto const second = member(1);
    int interrupted = 0;
    first->on_interrupt([&] { ++interrupted; });
    second->on_interrupt([&] { ++interrupted; });
    both_->lost(make_error_code(errc::fenced));
    EXPECT_EQ(interrupted, 2);
    EXPECT_EQ(first->end_reason(), protocol::end_reason::owner_lost);
    EXPECT_TRUE(log(stream()).empty());
}

}

}
