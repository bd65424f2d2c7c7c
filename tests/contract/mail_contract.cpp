// Letters to whoever runs a call: kept until what they lead to is in the store.
#include "contract/store_contract.hpp"

namespace belay::store {

namespace {

TEST_P(StoreContract, KeepsLettersInTheirOrder)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"a", "b"});
    ASSERT_TRUE(append(key, fence, {question("q", 4)}));
    ASSERT_TRUE(post(key, cancel_of(1)));
    ASSERT_TRUE(post(key, answer_to(4, "yes")));
    EXPECT_EQ(mail(key, fence), (strings{"cancel 1 reason", "answer 4 yes"}));
    auto const letters = read_mail(key, fence);
    ASSERT_TRUE(letters);
    ASSERT_EQ(letters->size(), 2u);
    EXPECT_EQ((*letters)[0].order, 1u);
    EXPECT_EQ((*letters)[1].order, 2u);
    EXPECT_EQ(mail(key, fence, 1), strings{"answer 4 yes"});
    EXPECT_EQ(mail(key, fence, 2), strings{});
    EXPECT_EQ(mail(key, fence).size(), 2u); // reading takes nothing away
}

TEST_P(StoreContract, WakesTheOwnerAfterALetter)
{
    auto const session = made();
    stream_key const key{session, 1};
    opened(key);
    opened({session, 2});
    auto const arrives = watch(key, event_store::interest::mail);
    auto const other = watch({session, 2}, event_store::interest::mail);
    ASSERT_TRUE(post(key, cancel_of(0)));
    EXPECT_TRUE(is_woken(arrives));
    EXPECT_EQ(*other.count, 0);
}

TEST_P(StoreContract, KeepsLettersForWhoeverRunsTheCallNext)
{
    stream_key const key{made(), 1};
    auto const old = opened(key, {"1"}, "stranger/1");
    ASSERT_TRUE(append(key, old, {question("q", 1)}));
    ASSERT_TRUE(post(key, answer_to(1)));
    auto const claimed = claim(key, old, node_1);
    ASSERT_TRUE(claimed);
    ASSERT_TRUE(post(key, cancel_of(0)));
    EXPECT_EQ(mail(key, claimed->fence), (strings{"answer 1 yes", "cancel 0 reason"}));
    ASSERT_TRUE(release(key, claimed->fence));
    auto const again = claim(key, lapsed_calls().at(0).fence, node_2);
    ASSERT_TRUE(again);
    EXPECT_EQ(mail(key, again->fence), (strings{"answer 1 yes", "cancel 0 reason"}));
}

TEST_P(StoreContract, KeepsLettersForACallThatNobodyRuns)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"1"}, "stranger/1");
    ASSERT_TRUE(release(key, fence));
    ASSERT_TRUE(post(key, cancel_of(0)));
    auto const claimed = claim(key, lapsed_calls().at(0).fence, node_1);
    ASSERT_TRUE(claimed);
    EXPECT_EQ(mail(key, claimed->fence), strings{"cancel 0 reason"});
}

TEST_P(StoreContract, DropsAnAnswerWithTheBlankItLeadsTo)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1), question("r", 2)}));
    ASSERT_TRUE(post(key, answer_to(1, "to q")));
    ASSERT_TRUE(post(key, answer_to(2, "to r")));
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_EQ(mail(key, fence), strings{"answer 2 to r"});
    EXPECT_EQ(read_mail(key, fence)->at(0).order, 2u);
}

TEST_P(StoreContract, DropsACancelWithTheAnswerItLeadsTo)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"a", "b"});
    ASSERT_TRUE(post(key, cancel_of(0)));
    ASSERT_TRUE(post(key, cancel_of(1)));
    ASSERT_TRUE(append(key, fence, {event("still working")}));
    ASSERT_EQ(mail(key, fence).size(), 2u);
    ASSERT_TRUE(append(key, fence, {response("cancelled", 1)}));
    EXPECT_EQ(mail(key, fence), strings{"cancel 0 reason"});
}

TEST_P(StoreContract, DropsAllLettersWithTheFinish)
{
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    auto const before = bytes();
    ASSERT_TRUE(append(key, fence, {question("q", 1)}));
    ASSERT_TRUE(post(key, answer_to(1, std::string(10'000, 'x'))));
    ASSERT_TRUE(post(key, cancel_of(0)));
    ASSERT_TRUE(close(session));
    ASSERT_EQ(mail(key, fence).size(), 3u);
    finish(key, fence);
    EXPECT_TRUE(uses_bytes_between(0, before + 1000));
    auto const left = read_mail(key, fence);
    EXPECT_TRUE(!left || left->empty());
}

TEST_P(StoreContract, DropsAnAnswerThatNobodyWaitsFor)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {event("no question", event_kind::ordinary, 5), question("q", 1)}));
    auto const before = bytes();
    EXPECT_TRUE(post(key, answer_to(5, "to what was not asked")));
    EXPECT_TRUE(post(key, answer_to(0)));
    EXPECT_EQ(mail(key, fence), strings{});
    ASSERT_TRUE(post(key, answer_to(1, "first")));
    EXPECT_TRUE(post(key, answer_to(1, "second")));
    EXPECT_EQ(mail(key, fence), strings{"answer 1 first"});
    ASSERT_TRUE(blank(key, fence, 2));
    EXPECT_TRUE(post(key, answer_to(1, "after all")));
    EXPECT_EQ(mail(key, fence), strings{});
    EXPECT_TRUE(uses_bytes_between(0, before));
}

// What its caller's machine has taken may not have reached the caller, who would then never be asked.
TEST_P(StoreContract, KeepsADeliveredQuestionUntilItIsBlank)
{
    limit_.events_per_stream = 1;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1)}));
    deliver(key);
    ASSERT_TRUE(append(key, fence, {event("a"), event("b")}));
    ASSERT_EQ(texts(read(key)), (strings{"q", "b"}));
    ASSERT_TRUE(post(key, answer_to(1)));
    EXPECT_EQ(mail(key, fence), strings{"answer 1 yes"});
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_EQ(mail(key, fence), strings{});
    ASSERT_TRUE(append(key, fence, {event("c")}));
    EXPECT_EQ(texts(read(key)), strings{"c"});
    EXPECT_TRUE(claim(key, fence, node_2)->questions.empty());
}

TEST_P(StoreContract, DropsACancelThatNobodyWaitsFor)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key, {"a", "b"});
    ASSERT_TRUE(append(key, fence, {response("done", 0)}));
    EXPECT_TRUE(post(key, cancel_of(0))); // answered
    EXPECT_TRUE(post(key, cancel_of(9))); // never asked
    EXPECT_EQ(mail(key, fence), strings{});
    ASSERT_TRUE(post(key, cancel_of(1)));
    EXPECT_TRUE(post(key, {letter::kind::cancel, 1, "another reason"}));
    EXPECT_EQ(mail(key, fence), strings{"cancel 1 reason"});
}

TEST_P(StoreContract, DropsALetterToAStreamThatIsFinishedOrGone)
{
    auto const session = made();
    stream_key const key{session, 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1)}));
    finish(key, fence);
    auto const before = bytes();
    EXPECT_TRUE(post(key, answer_to(1)));
    EXPECT_TRUE(post(key, cancel_of(0)));
    EXPECT_TRUE(post({session, 55}, cancel_of(0)));
    EXPECT_TRUE(uses_bytes(before));
    EXPECT_FALSE(exists({session, 55}));
    EXPECT_EQ(error_of(post({key_of(2), 1}, cancel_of(0))), errc::not_found);
}

TEST_P(StoreContract, ChargesASessionForItsLetters)
{
    limit_.bytes_per_session = 64 * 1024;
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    ASSERT_TRUE(append(key, fence, {question("q", 1), question("r", 2)}));
    auto const before = bytes();
    EXPECT_EQ(error_of(post(key, answer_to(1, std::string(80 * 1024, 'x')))), errc::no_space);
    EXPECT_TRUE(uses_bytes(before));
    EXPECT_EQ(mail(key, fence), strings{});
    ASSERT_TRUE(post(key, answer_to(1, std::string(40 * 1024, 'x')))); // the refused one does not count as the first
    EXPECT_TRUE(uses_bytes_between(before + 40 * 1024, before + 42 * 1024));
    EXPECT_EQ(error_of(post(key, answer_to(2, std::string(40 * 1024, 'x')))), errc::no_space);
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_TRUE(uses_bytes_between(0, before + 1024));
    EXPECT_TRUE(post(key, answer_to(2, std::string(40 * 1024, 'x'))));
}

TEST_P(StoreContract, KeepsLettersOfCallsApart)
{
    auto const session = made();
    auto const one = opened({session, 1});
    auto const two = opened({session, 2}, {"2"});
    ASSERT_TRUE(post({session, 1}, cancel_of(0)));
    EXPECT_EQ(mail({session, 2}, two), strings{});
    EXPECT_EQ(mail({session, 1}, one), strings{"cancel 0 reason"});
    EXPECT_EQ(error_of(read_mail({session, 1}, two)), errc::fenced);
}

TEST_P(StoreContract, KeepsAnAnswerUnderAKeyUntilTheCallIsFinished)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const empty = bytes();
    auto asked = question("q", 1);
    asked.key = std::make_shared<std::string const>("name");
    ASSERT_TRUE(append(key, fence, {asked, question("r", 2)}));
    ASSERT_TRUE(post(key, answer_to(1)));
    ASSERT_TRUE(post(key, answer_to(2)));
    for (int i = 0; i < 2; ++i) { // a repetition takes no more away
        ASSERT_TRUE(blank(key, fence, 1));
        ASSERT_TRUE(blank(key, fence, 2));
    }
    EXPECT_TRUE(post(key, answer_to(1, "another"))); // the question is not open any more
    auto const claimed = claim(key, fence, node_2);
    ASSERT_TRUE(claimed);
    auto const letters = read_mail(key, claimed->fence);
    ASSERT_TRUE(letters);
    ASSERT_EQ(letters->size(), 1u);
    EXPECT_EQ(letters->front().number, 1u);
    EXPECT_EQ(letters->front().key, "name");
    finish(key, claimed->fence);
    EXPECT_TRUE(uses_bytes_between(0, empty + 1024));
}

TEST_P(StoreContract, ChargesASessionForTheKeysOfItsQuestions)
{
    stream_key const key{made(), 1};
    auto const fence = opened(key);
    auto const before = bytes();
    auto asked = question("q", 1);
    asked.key = std::make_shared<std::string const>(std::string(10'000, 'k'));
    ASSERT_TRUE(append(key, fence, {asked}));
    EXPECT_TRUE(uses_bytes_between(before + 10'000, before + 12'000));
    ASSERT_TRUE(blank(key, fence, 1));
    EXPECT_TRUE(uses_bytes_between(before, before + 2'000));
}

}

}
