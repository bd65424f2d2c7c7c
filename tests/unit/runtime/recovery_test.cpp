#include "runtime/recovery.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

using namespace std::chrono_literals;

class Recovery : public NodeFixture {
protected:
    explicit Recovery(settings with = {}) : NodeFixture(std::move(with)) {}

    void pass(base::duration time)
    {
        for (; time > base::duration::zero(); time -= 500ms) {
            world_.advance(500ms);
            world_.run_all();
        }
    }
    std::size_t owned()
    {
        std::size_t count = 0;
        store_.owned(node_.context().owner(), std::nullopt, 10'000, [&](result<std::vector<store::call_ref>> calls) {
            count = calls.value().size();
        });
        return count;
    }
};

class RecoveryOfMany : public Recovery {
protected:
    RecoveryOfMany() : Recovery(with_many_streams()) {}
    static settings with_many_streams()
    {
        settings with;
        with.limits.streams_per_session = 5000;
        return with;
    }
};

TEST_F(RecoveryOfMany, EndsAllCallsThatTheStoreSaysAreOursAndThatWeDoNotRun)
{
    for (store::stream_id stream = 1; stream <= 2500; ++stream) {
        store::stream_meta meta;
        meta.requests = {{std::to_string(stream)}};
        store_.open(
            {use_->session()->key, stream}, std::move(meta), node_.context().owner(), std::nullopt,
            [](result<store::opened_stream> opened) { ASSERT_TRUE(opened); });
    }
    EXPECT_EQ(owned(), 2500u);
    pass(12s); // two looks
    EXPECT_EQ(owned(), 0u);
}

}

}
