#include "runtime/service.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace belay::runtime {

namespace {

class Perform : public testing::Test {
protected:
    std::vector<std::string> answers_;
    int begun_ = 0;

    void perform(outcome outcome)
    {
        // Only moved, as an answer that owns something is.
        runtime::perform(
            std::move(outcome),
            [this, owned = std::make_unique<int>(1)](std::string response) {
                EXPECT_TRUE(owned);
                answers_.push_back(std::move(response));
            },
            [this](start_call start, auto answer) {
                ++begun_;
                start.run(nullptr);
                answer("begun");
            });
    }
};

TEST_F(Perform, GivesAnInstantAnswerAtOnce)
{
    perform(instant_answer{"now"});
    EXPECT_EQ(answers_, std::vector<std::string>{"now"});
    EXPECT_EQ(begun_, 0);
}

TEST_F(Perform, GivesADeferredAnswerWhenItComes)
{
    std::move_only_function<void(std::string)> later;
    perform(deferred_answer{[&](std::move_only_function<void(std::string)> answer) { later = std::move(answer); }});
    EXPECT_TRUE(answers_.empty());
    later("soon");
    EXPECT_EQ(answers_, std::vector<std::string>{"soon"});
    EXPECT_EQ(begun_, 0);
}

TEST_F(Perform, HandsOverACallWithTheWayToAnswer)
{
    int runs = 0;
    start_call start;
    start.run = [&](std::shared_ptr<call> const&) { ++runs; };
    perform(std::move(start));
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(begun_, 1);
    EXPECT_EQ(answers_, std::vector<std::string>{"begun"}) << "the way to answer";
}

}

}
