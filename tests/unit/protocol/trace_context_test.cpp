#include "protocol/trace_context.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <string>

namespace belay::protocol {

namespace {

constexpr auto good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr auto other = "00-11111111111111111111111111111111-2222222222222222-00";

std::string state_of(std::string const& tracestate)
{
    return parse_trace_context(good, tracestate)->tracestate;
}

std::string members(int count)
{
    std::string text;
    for (int i = 0; i < count; ++i)
        text += (i ? ",k" : "k") + std::to_string(i) + "=v";
    return text;
}

std::optional<trace_context> of_message(
    std::string const& params, std::optional<std::string_view> traceparent = {},
    std::optional<std::string_view> tracestate = {})
{
    auto const value = json::parse(params);
    auto const* meta = value.get_object().if_contains("_meta");
    return trace_context_of(meta ? meta->if_object() : nullptr, traceparent, tracestate);
}

}

TEST(TraceContext, IsReadInItsParts)
{
    auto const context = parse_trace_context(good, "congo=t61rcWkgMzE,rojo=1");
    ASSERT_TRUE(context);
    EXPECT_EQ(context->trace_id, "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(context->parent_id, "b7ad6b7169203331");
    EXPECT_EQ(context->flags, 1);
    EXPECT_TRUE(context->is_sampled());
    EXPECT_EQ(context->tracestate, "congo=t61rcWkgMzE,rojo=1");
    EXPECT_EQ(context->traceparent(), good);
    EXPECT_FALSE(parse_trace_context(other)->is_sampled());
}

TEST(TraceContext, KeepsFlagsItDoesNotKnow)
{
    auto const context = parse_trace_context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe");
    ASSERT_TRUE(context);
    EXPECT_EQ(context->flags, 0xfe);
    EXPECT_FALSE(context->is_sampled());
}

TEST(TraceContext, IsNoneIfItIsNotExactlyOne)
{
    for (std::string const text :
         {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
          "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01",
          "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
          "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
        EXPECT_FALSE(parse_trace_context(text)) << text;
}

TEST(TraceContext, OfALaterVersionMaySayMore)
{
    std::string const later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    EXPECT_TRUE(parse_trace_context(later));
    EXPECT_TRUE(parse_trace_context(later + "-what-comes"));
    EXPECT_FALSE(parse_trace_context(later + ".what-comes"));
    EXPECT_EQ(parse_trace_context(later)->traceparent(), good);
}

TEST(TraceContext, LeavesABadTracestateOut)
{
    for (std::string const text : {"a=1", "a=1,b=2", " a=1 ,\tb=2 ", "a=1,,b=2", "0t@sys=1", "a_-*/9=! ~"})
        EXPECT_EQ(state_of(text), text);
    EXPECT_EQ(state_of(members(32)), members(32));
    for (std::string const& text :
         {std::string("a"), std::string("=1"), std::string("a="), std::string("A=1"), std::string("9a=1"),
          std::string("a=1,a=2"), std::string("a=b=c"), std::string("a=\x01"), std::string("a=\x7f"),
          std::string("a@=1"), std::string("@a=1"), std::string("a@b@c=1"), std::string(","),
          "a=" + std::string(257, 'x'), std::string(257, 'a') + "=1", "a@" + std::string(15, 'a') + "=1", members(33)})
        EXPECT_EQ(state_of(text), "") << text;
}

TEST(TraceContext, OfTheMessageWins)
{
    auto const meta = R"({"_meta":{"traceparent":")" + std::string(good) + R"(","tracestate":"a=1"}})";
    auto const found = of_message(meta, other, "b=2");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->traceparent(), good);
    EXPECT_EQ(found->tracestate, "a=1");
}

TEST(TraceContext, OfTheRequestServesWhereTheMessageHasNone)
{
    for (auto const* const params :
         {"{}", R"({"_meta":{}})", R"({"_meta":7})", R"({"_meta":{"traceparent":7}})",
          R"({"_meta":{"traceparent":"00-bad","tracestate":"a=1"}})"}) {
        auto const found = of_message(params, other, "b=2");
        ASSERT_TRUE(found) << params;
        EXPECT_EQ(found->traceparent(), other);
        EXPECT_EQ(found->tracestate, "b=2");
        EXPECT_FALSE(of_message(params));
    }
    EXPECT_TRUE(trace_context_of(nullptr, good, {}));
    EXPECT_FALSE(trace_context_of(nullptr, {}, "a=1"));
}

}
