#include "runtime/sessions.hpp"

#include "node_fixture.hpp"

namespace belay::runtime {

namespace {

using namespace std::chrono_literals;
using question = troubled_store::question;
using effect = troubled_store::effect;

class Sessions : public NodeFixture {
protected:
    void pass(base::duration time)
    {
        for (; time > base::duration::zero(); time -= 500ms) {
            world_.advance(500ms);
            world_.run_all();
        }
    }
    std::shared_ptr<call> hold()
    {
        call_request request;
        request.ids = {"1"};
        return node_.calls().begin_held(use_->session(), loop_, std::move(request), [](std::string) {}).value();
    }
    void end()
    {
        node_.sessions().end(use_->session()->key, loop_, [this](result<void> outcome) {
            ++told_;
            outcome_ = outcome;
        });
        world_.run_all();
    }
    int told_ = 0;
    result<void> outcome_{};
};

TEST_F(Sessions, AnEndThatMayHaveTakenEffectIsBroughtToItsEnd)
{
    auto const held = hold();
    between_.fail(question::close, 2, effect::taken);
    end();
    EXPECT_EQ(told_, 1);
    EXPECT_EQ(outcome_.error(), make_error_code(errc::unavailable));
    EXPECT_FALSE(held->is_ended()); // nobody knows yet
    pass(3s);
    EXPECT_EQ(held->end_reason(), protocol::end_reason::session_ended);
    EXPECT_EQ(told_, 1);
    EXPECT_EQ(store_.used().sessions, 0u);
}

TEST_F(Sessions, AnEndThatAnotherHasFinishedMeanwhileIsOne)
{
    auto const held = hold();
    between_.fail(question::close, 1, effect::taken);
    end();
    store_.remove(use_->session()->key, [](result<void> removed) { EXPECT_TRUE(removed); });
    pass(3s);
    EXPECT_EQ(held->end_reason(), protocol::end_reason::session_ended);
}

TEST_F(Sessions, OnesThatAreNotThereAreSaidToBeNotThere)
{
    store_.remove(use_->session()->key, [](result<void> removed) { EXPECT_TRUE(removed); });
    end();
    EXPECT_EQ(outcome_.error(), make_error_code(errc::not_found));
}

TEST_F(Sessions, StayUntilCallsThatHearOfTheEndLateHaveTheirAnswers)
{
    // Of another node, to which the hint does not come.
    auto const key = use_->session()->key;
    store::fence fence = 0;
    store_.renew("another", 1h, [](result<void>) {});
    store::stream_meta meta;
    meta.requests = {{"7"}};
    store_.open({key, 5}, std::move(meta), "another", std::nullopt, [&](result<store::opened_stream> opened) {
        fence = opened.value().fence;
    });
    end();
    EXPECT_EQ(told_, 0);
    pass(2s);
    EXPECT_EQ(told_, 1); // nobody serves it any more: whoever has asked need not wait
    EXPECT_TRUE(outcome_);
    pass(14s);
    bool is_kept = false;
    store_.append(
        {key, 5}, fence, 1, 0, {{std::make_shared<std::string const>("ended"), store::event_kind::response}}, true,
        [&](result<store::stream_top> top) { is_kept = top.has_value(); });
    EXPECT_TRUE(is_kept);
    pass(2s);
    EXPECT_EQ(store_.used().sessions, 0u);
}

TEST_F(Sessions, CountsWhatTheStoreHasAndWhatIsInUseHere)
{
    session().reset();
    session().reset();
    auto const before = node_.metrics_text(0);
    EXPECT_NE(before.find("\nbelay_sessions 3\n"), std::string::npos); // with the fixture's
    for (int i = 0; i < 2; ++i) {
        world_.advance(activity_write_interval);
        world_.run_all();
    }
    auto const after = node_.metrics_text(0);
    EXPECT_NE(after.find("\nbelay_sessions 3\n"), std::string::npos);
    EXPECT_NE(after.find("\nbelay_sessions_served 1\n"), std::string::npos); // the others are used by nobody
}

TEST_F(Sessions, GoInTheEndWhateverHoldsThem)
{
    auto const key = use_->session()->key;
    store_.renew("another", 1h, [](result<void>) {});
    store::stream_meta meta;
    meta.requests = {{"7"}};
    store_.open({key, 5}, std::move(meta), "another", std::nullopt, [](result<store::opened_stream>) {});
    end();
    pass(store::closed_session_limit + 1s);
    EXPECT_EQ(store_.used().sessions, 0u);
}

class SessionRecords : public NodeFixture {
protected:
    [[nodiscard]] store::session_key const& key() const { return use_->session()->key; }
    std::error_code use(std::string_view principal, std::string_view id)
    {
        std::error_code why;
        node_.sessions().use(principal, id, [&](result<session_use> used) {
            if (!used)
                why = used.error();
        });
        return why;
    }
    std::error_code use() { return use(key().principal, base::to_string(key().id)); }
    std::error_code change(std::function<void(store::session_record&)> edit)
    {
        std::error_code why = make_error_code(errc::unavailable);
        node_.sessions().change(use_->session(), std::move(edit), [&](result<void> changed) {
            why = changed ? std::error_code() : changed.error();
        });
        world_.run_all();
        return why;
    }
    /// Another node changes the record; this one has not heard of it.
    void change_elsewhere(int log_level)
    {
        auto record = *use_->session()->current_record();
        record.log_level = log_level;
        store_.update(std::move(record), [](result<store::record_ptr> stored) { ASSERT_TRUE(stored); });
    }
};

TEST_F(SessionRecords, AreUsedByTheirOwnerOnly)
{
    auto const id = base::to_string(key().id);
    EXPECT_FALSE(use(key().principal, id));
    EXPECT_EQ(use("another", id), errc::not_found);
    EXPECT_EQ(use(key().principal, "no id"), errc::not_found);
}

TEST_F(SessionRecords, AChangeIsMadeOnWhatIsThere)
{
    change_elsewhere(3);
    EXPECT_FALSE(change([](store::session_record& record) { record.initialized = true; }));
    auto const record = use_->session()->current_record();
    EXPECT_TRUE(record->initialized);
    EXPECT_EQ(record->log_level, 3);
}

TEST_F(SessionRecords, AChangeThatChangesNothingAsksNobody)
{
    auto const before = use_->session()->current_record()->revision;
    EXPECT_FALSE(change([](store::session_record&) {}));
    EXPECT_EQ(use_->session()->current_record()->revision, before);
}

TEST_F(SessionRecords, ANewHelloHoldsForLaterRequests)
{
    client_hello hello;
    hello.revision = protocol::revision::r2025_03_26;
    hello.capabilities = R"({"roots":{}})";
    std::optional<result<void>> reopened;
    node_.sessions().reopen(*use_, std::move(hello), [&](result<void> outcome) { reopened = outcome; });
    world_.run_all();
    ASSERT_TRUE(reopened && *reopened);
    EXPECT_EQ(use_->session()->current_revision(), protocol::revision::r2025_03_26);
    EXPECT_EQ(use_->revision(), protocol::newest_revision);
    EXPECT_EQ(use_->session()->current_record()->client_capabilities, R"({"roots":{}})");
}

TEST_F(SessionRecords, AnEndGivesEachCallItsAnswerAndThenNothingIsLeft)
{
    auto const begun = begin_with("1");
    auto const reader = read_from(begun.following);
    std::optional<result<void>> ended;
    node_.sessions().end(key(), loop_, [&](result<void> outcome) { ended = outcome; });
    EXPECT_EQ(use(), errc::not_found); // from the moment on in which it was asked for
    auto const seen = reader->read();
    ASSERT_FALSE(seen.empty());
    EXPECT_NE(seen.back().find("session_ended"), std::string::npos);
    world_.run_all();
    ASSERT_TRUE(ended);
    EXPECT_TRUE(*ended);
    EXPECT_EQ(store_.used().sessions, 0u);
    EXPECT_EQ(node_.departures().connections(), 0u);
}

TEST_F(SessionRecords, AreNotOpenedWhileTheNodeDrains)
{
    node_.departures().drain();
    std::error_code why;
    node_.sessions().open({}, [&](result<session_use> use) { why = use ? std::error_code() : use.error(); });
    EXPECT_EQ(why, errc::unavailable);
}

}

}
