#include "store/redis_queue.hpp"

#include <gtest/gtest.h>

namespace belay::store {

namespace {

using kind = redis_queue::answer::kind;
using strings = std::vector<std::string>;

constexpr base::time_point start{};

class RedisQueue : public testing::Test {
protected:
    bool push(std::string bytes, base::time_point give_up = base::time_point::max())
    {
        redis_command command;
        command.bytes = std::move(bytes);
        command.give_up = give_up;
        return queue_.push(command);
    }
    std::string sent(base::time_point now = start)
    {
        std::string bytes;
        queue_.take_unsent(bytes, now);
        return bytes;
    }
    static redis_reply reply(int type, std::string text)
    {
        static std::deque<std::string> texts;
        texts.push_back("-" + text + "\r\n");
        if (type == REDIS_REPLY_STATUS)
            texts.back()[0] = '+';
        auto* const reader = redisReaderCreate();
        redisReaderFeed(reader, texts.back().data(), texts.back().size());
        void* made = nullptr;
        redisReaderGetReply(reader, &made);
        redisReaderFree(reader);
        return redis_reply(static_cast<redisReply*>(made));
    }
    redis_queue::answer ok() { return queue_.on_reply(*reply(REDIS_REPLY_STATUS, "OK")); }
    redis_queue::answer error(std::string text) { return queue_.on_reply(*reply(REDIS_REPLY_ERROR, std::move(text))); }
    static strings bytes_of(std::deque<redis_command> const& commands)
    {
        strings all;
        for (auto const& each : commands)
            all.push_back(each.bytes);
        return all;
    }

    redis_queue queue_{10};
};

TEST_F(RedisQueue, SendsInOrderAndAllAtOnce)
{
    push("a");
    push("b");
    EXPECT_EQ(sent(), "ab");
    EXPECT_EQ(sent(), "");
    EXPECT_EQ(ok().command.bytes, "a");
    EXPECT_EQ(ok().command.bytes, "b");
    EXPECT_TRUE(queue_.is_empty());
    EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(RedisQueue, SendsAgainInOrderWhatHadNoReply)
{
    push("a");
    push("b");
    push("c");
    (void)sent();
    push("d");
    EXPECT_EQ(ok().command.bytes, "a");
    queue_.on_lost();
    EXPECT_EQ(sent(), "bcd");
}

TEST_F(RedisQueue, HoldsWhatCannotBeNowUntilTheRestIsAnswered)
{
    push("a");
    push("b");
    push("c");
    (void)sent();
    EXPECT_EQ(error("LOADING wait").what, kind::hold);
    EXPECT_FALSE(queue_.is_held());
    push("d");
    EXPECT_EQ(sent(), ""); // behind what is held
    EXPECT_EQ(ok().command.bytes, "b");
    EXPECT_EQ(error("LOADING wait").what, kind::hold);
    EXPECT_TRUE(queue_.is_held());
    queue_.release();
    EXPECT_EQ(sent(), "acd");
}

TEST_F(RedisQueue, KeepsTheOrderOfWhatIsHeldWhenTheConnectionGoes)
{
    push("a");
    push("b");
    (void)sent();
    push("c");
    EXPECT_EQ(error("READONLY replica").what, kind::hold);
    queue_.on_lost();
    EXPECT_EQ(sent(), "abc");
}

TEST_F(RedisQueue, GivesDeservedErrorsToWhoeverAsked)
{
    push("a");
    push("b");
    push("c");
    (void)sent();
    auto const first = error("ERR no");
    EXPECT_EQ(first.what, kind::complete);
    EXPECT_EQ(first.verdict, redis_verdict::answer);
    EXPECT_EQ(error("OOM full").verdict, redis_verdict::full);
    auto const third = error("NOPERM no");
    EXPECT_EQ(third.what, kind::complete);
    EXPECT_EQ(third.verdict, redis_verdict::refused);
}

TEST_F(RedisQueue, HoldsWhatBelongsElsewhereWithItsOrder)
{
    push("a");
    push("b");
    (void)sent();
    push("c");
    EXPECT_EQ(error("MOVED 5 host:1").what, kind::hold);
    EXPECT_TRUE(queue_.holds_for(redis_verdict::moved));
    EXPECT_FALSE(queue_.holds_for(redis_verdict::ask));
    EXPECT_FALSE(queue_.is_held());
    EXPECT_EQ(error("ASK 5 other:2").what, kind::hold);
    EXPECT_TRUE(queue_.is_held());
    auto const all = queue_.take_all();
    EXPECT_EQ(bytes_of(all), (strings{"a", "b", "c"}));
    EXPECT_EQ(all[0].held_for, redis_verdict::moved);
    EXPECT_EQ(all[0].belongs_to, "host:1");
    EXPECT_EQ(all[1].held_for, redis_verdict::ask);
    EXPECT_EQ(all[1].belongs_to, "other:2");
    EXPECT_EQ(all[2].belongs_to, "");
    EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(RedisQueue, LetsACommandWaitThatGoesRoundAndRound)
{
    push("a");
    auto verdict = redis_verdict::moved;
    for (int i = 0; i < 100 && verdict == redis_verdict::moved; ++i) {
        (void)sent();
        verdict = error("MOVED 5 host:1").verdict;
        queue_.release();
    }
    EXPECT_EQ(verdict, redis_verdict::wait);
}

TEST_F(RedisQueue, AsksBeforeACommandThatIsSentToItsFutureNode)
{
    redis_command command;
    command.bytes = "a";
    command.give_up = base::time_point::max();
    command.asks = true;
    ASSERT_TRUE(queue_.push(command));
    EXPECT_EQ(sent(), "*1\r\n$6\r\nASKING\r\na");
    EXPECT_EQ(ok().what, kind::swallow);
    EXPECT_EQ(ok().command.bytes, "a");
}

TEST_F(RedisQueue, KnowsAReplyThatNobodyWaitsFor)
{
    EXPECT_EQ(ok().what, kind::none);
}

TEST_F(RedisQueue, BoundsWhatWaits)
{
    EXPECT_TRUE(push("12345678"));
    EXPECT_FALSE(push("12345"));
    EXPECT_TRUE(push("12"));
    (void)sent();
    EXPECT_FALSE(push("1")); // what is on its way may have to be sent again
    (void)ok();
    EXPECT_TRUE(push("1"));
    (void)sent();
    (void)ok();
    (void)ok();
    EXPECT_TRUE(push("one that is larger than all"));
}

TEST_F(RedisQueue, GivesUpWhatIsLateAndNotOnItsWay)
{
    push("a", start + std::chrono::seconds(1));
    (void)sent();
    push("b", start + std::chrono::seconds(1));
    push("c", start + std::chrono::seconds(3));
    EXPECT_EQ(bytes_of(queue_.take_late(start + std::chrono::seconds(2))), strings{"b"});
    queue_.on_lost();
    EXPECT_EQ(bytes_of(queue_.take_late(start + std::chrono::seconds(2))), strings{"a"});
    EXPECT_EQ(sent(), "c");
    EXPECT_EQ(queue_.bytes(), 1u);
}

TEST_F(RedisQueue, KnowsSinceWhenItWaitsForAReply)
{
    EXPECT_EQ(queue_.oldest_sent(), std::nullopt);
    push("a");
    (void)sent(start + std::chrono::seconds(1));
    push("b");
    (void)sent(start + std::chrono::seconds(2));
    EXPECT_EQ(queue_.oldest_sent(), start + std::chrono::seconds(1));
    (void)ok();
    EXPECT_EQ(queue_.oldest_sent(), start + std::chrono::seconds(2));
}

}

}
