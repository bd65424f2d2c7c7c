// What becomes of the store's work when Redis fails, and what nodes hear of each other. On a real Redis of each test's
// own.
#include "base/current_loop.hpp"
#include "contract/redis_fixture.hpp"
#include "store/redis_check.hpp"
#include "store/redis_slot.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

namespace belay::store {

namespace {

using real_clock = std::chrono::steady_clock;
using strings = std::vector<std::string>;
using namespace std::chrono_literals;

/// A node: a loop that runs only while the test lets it, and the store on it.
class test_node {
public:
    explicit test_node(redis_place place, std::function<void(redis_options&)> const& change = {}, limits limits = {})
        : loop_(clock_)
    {
        redis_options options;
        options.place = std::move(place);
        options.timeout = 300ms;
        options.give_up = 20s; // the machine may be slow
        options.log = base::logger(log_level::debug, [this](log_level, std::string_view line) {
            log_ += line;
            log_ += '\n';
        });
        if (change)
            change(options);
        loops_[0] = &loop_;
        store_ = std::make_unique<redis_store>(limits, std::move(options), loops_);
    }

    redis_store& operator*() { return *store_; }
    redis_store* operator->() { return store_.get(); }
    std::string const& log() const { return log_; }
    void run_for(base::duration time)
    {
        auto const end = real_clock::now() + time;
        while (real_clock::now() < end)
            loop_.context().run_one_until(end);
    }
    template<class Condition>
    bool run_until(Condition const& holds, base::duration patience = 30s)
    {
        auto const end = real_clock::now() + patience;
        while (!holds() && real_clock::now() < end)
            loop_.context().run_one_for(20ms);
        return holds();
    }
    /// Whether it has an outcome, and which.
    template<class T>
    struct asked {
        std::shared_ptr<std::optional<result<T>>> outcome = std::make_shared<std::optional<result<T>>>();
        completion<T> done()
        {
            return [outcome = outcome](result<T> given) { outcome->emplace(std::move(given)); };
        }
        [[nodiscard]] bool is_done() const { return outcome->has_value(); }
    };
    template<class T>
    result<T> wait(asked<T> const& question)
    {
        if (!run_until([&] { return question.is_done(); })) {
            ADD_FAILURE() << "the store did not complete";
            return failure(errc::timed_out);
        }
        return **question.outcome;
    }
    template<class T, class Start>
    result<T> await(Start const& start)
    {
        asked<T> question;
        start(question.done());
        return wait(question);
    }

    // --- what tests do with it

    result<record_ptr> create(session_key const& key)
    {
        session_record record;
        record.key = key;
        record.standalone = 9000;
        return await<record_ptr>([&](auto done) { store_->create(record, std::move(done)); });
    }
    result<record_ptr> load(session_key const& key)
    {
        return await<record_ptr>([&](auto done) { store_->load(key, std::move(done)); });
    }
    result<fence> open(stream_key const& key, std::string const& owner = "node/1")
    {
        stream_meta meta;
        meta.requests = {{"1"}};
        auto const opened
            = await<opened_stream>([&](auto done) { store_->open(key, meta, owner, {}, std::move(done)); });
        if (!opened)
            return std::unexpected(opened.error());
        return opened->fence;
    }
    static event_data event(std::string text)
    {
        return {std::make_shared<std::string const>(std::move(text)), event_kind::ordinary, 0};
    }
    asked<stream_top>
    begin_append(stream_key const& key, fence fence, std::uint64_t batch, std::string text, bool is_last = false)
    {
        asked<stream_top> question;
        store_->append(key, fence, batch, 0, {event(std::move(text))}, is_last, question.done());
        return question;
    }
    result<stream_top> append(stream_key const& key, fence fence, std::uint64_t batch, std::string text)
    {
        return wait(begin_append(key, fence, batch, std::move(text)));
    }
    strings texts(stream_key const& key)
    {
        auto const read
            = await<page>([&](auto done) { store_->read_after(key, 0, {100'000, 1u << 30}, {}, std::move(done)); });
        strings all;
        if (!read)
            ADD_FAILURE() << "no page: " << read.error().message();
        else
            for (auto const& each : read->events)
                all.push_back(*each.payload);
        return all;
    }
    template<class T>
    static std::error_code error_of(result<T> const& outcome)
    {
        return outcome ? std::error_code() : outcome.error();
    }

private:
    base::machine_clock clock_;
    base::io_loop loop_;
    base::io_loop* loops_[1];
    std::string log_;
    std::unique_ptr<redis_store> store_; // before the loop goes
};

session_key const session{"alice", {1, 2}};
stream_key const call{session, 1};

/// Waits for something on Redis' side, which nothing tells of.
template<class Condition>
bool comes_true(Condition const& holds)
{
    auto const end = real_clock::now() + 20s;
    while (!holds() && real_clock::now() < end)
        std::this_thread::sleep_for(5ms);
    return holds();
}

std::string key_of_list(std::string const& prefix = "belay:")
{
    return prefix + '{' + tag_of(session) + "}:1";
}

// --- lost connections

TEST(RedisFailures, RepeatsAnAppendWhoseOutcomeIsUnknownWithoutHarm)
{
    redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
    test_node node(redis.place());
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    ASSERT_TRUE(node.append(call, *fence, 1, "a"));
    // It takes effect, and its reply is never read.
    redis.pause();
    auto const second = node.begin_append(call, *fence, 2, "b");
    auto const third = node.begin_append(call, *fence, 3, "c");
    node.run_for(20ms);
    redis.go_on();
    ASSERT_TRUE(comes_true([&] { return redis.ask({"LLEN", key_of_list()}) == "3"; }));
    ASSERT_FALSE(second.is_done());
    redis.kill();
    redis.start();
    auto const outcome = node.wait(second);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(node.wait(third)->sequence, 3u);
    EXPECT_EQ(node.texts(call), (strings{"a", "b", "c"}));
    EXPECT_GE(node->count().reconnects, 1u);
}

TEST(RedisFailures, LosesAndRepeatsNothingWhileItsConnectionsAreKilled)
{
    redis_server redis;
    test_node node(redis.place());
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    strings expected;
    std::vector<test_node::asked<stream_top>> appends;
    for (std::uint64_t batch = 1; batch <= 400; ++batch) {
        expected.push_back(std::to_string(batch));
        appends.push_back(node.begin_append(call, *fence, batch, expected.back()));
        if (batch % 40 == 0) {
            redis.ask({"CLIENT", "KILL", "TYPE", "normal"});
            node.run_for(1ms);
        }
    }
    for (auto const& each : appends)
        EXPECT_TRUE(node.wait(each));
    EXPECT_EQ(node.texts(call), expected);
    EXPECT_GE(node->count().reconnects, 1u);
}

TEST(RedisFailures, LoadsItsScriptsAgain)
{
    redis_server redis;
    test_node node(redis.place());
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    redis.ask({"SCRIPT", "FLUSH"});
    std::vector<test_node::asked<stream_top>> appends;
    for (std::uint64_t batch = 1; batch <= 10; ++batch)
        appends.push_back(node.begin_append(call, *fence, batch, std::to_string(batch)));
    for (auto const& each : appends)
        EXPECT_TRUE(node.wait(each));
    EXPECT_EQ(node.texts(call).size(), 10u);
    EXPECT_EQ(node->count().reconnects, 0u);
}

TEST(RedisFailures, GivesUpWhatHasNoAnswerAndGoesOnWhenRedisDoes)
{
    redis_server redis;
    test_node node(redis.place(), [](redis_options& options) { options.give_up = 700ms; });
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    redis.pause();
    EXPECT_EQ(test_node::error_of(node.append(call, *fence, 1, "a")), errc::unavailable);
    redis.go_on();
    // What was unavailable may have been done: it is the same when it is asked for again.
    result<stream_top> again = failure(errc::unavailable);
    for (int i = 0; i < 20 && !again; ++i)
        again = node.append(call, *fence, 1, "a");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->sequence, 1u);
    EXPECT_EQ(node.texts(call), strings{"a"});
    // What Redis had not read of the connection that was given up could have been done after this.
    EXPECT_NE(redis.ask({"INFO", "commandstats"}).find("client|kill"), std::string::npos);
}

TEST(RedisFailures, IsUnavailableWhileNothingListensAndComesBack)
{
    redis_server redis;
    test_node node(redis.place(), [](redis_options& options) { options.give_up = 300ms; });
    std::vector<bool> health;
    auto const hearing = node->on_health([&](bool is_reached) { health.push_back(is_reached); });
    ASSERT_TRUE(node.create(session));
    redis.kill();
    EXPECT_EQ(test_node::error_of(node.load(session)), errc::unavailable);
    ASSERT_TRUE(node.run_until([&] { return !health.empty(); }));
    redis.start();
    ASSERT_TRUE(node.run_until([&] { return health.back(); }));
    EXPECT_EQ(test_node::error_of(node.load(session)), errc::not_found); // its data was not kept
    EXPECT_EQ(health, (std::vector<bool>{false, true}));
}

TEST(RedisFailures, TellsThatItCannotBeReachedWhileItHangs)
{
    redis_server redis;
    test_node node(redis.place());
    std::vector<bool> health;
    auto hearing = node->on_health([&](bool is_reached) { health.push_back(is_reached); });
    ASSERT_TRUE(node.create(session));
    redis.pause();
    ASSERT_TRUE(node.run_until([&] { return !health.empty(); }));
    redis.go_on();
    ASSERT_TRUE(node.run_until([&] { return health.back(); }));
    EXPECT_EQ(health, (std::vector<bool>{false, true}));
    hearing.reset();
    std::vector<bool> later;
    auto const other = node->on_health([&](bool is_reached) { later.push_back(is_reached); });
    redis.pause();
    ASSERT_TRUE(node.run_until([&] { return !later.empty(); }));
    redis.go_on();
    EXPECT_EQ(health.size(), 2u); // nobody tells whoever has left
}

// A moment is no outage.
TEST(RedisFailures, SaysNothingOfAConnectionThatIsMadeAnewAtOnce)
{
    redis_server redis;
    test_node node(redis.place());
    std::vector<bool> health;
    auto const hearing = node->on_health([&](bool is_reached) { health.push_back(is_reached); });
    ASSERT_TRUE(node.create(session));
    redis.ask({"CLIENT", "KILL", "TYPE", "normal"});
    ASSERT_TRUE(node.run_until([&] { return node->count().reconnects > 0; }));
    ASSERT_TRUE(node.load(session));
    node.run_for(1500ms);
    EXPECT_EQ(health, std::vector<bool>());
}

TEST(RedisFailures, TellsThatThereIsNothingFromTheBeginning)
{
    redis_server redis;
    redis.kill();
    test_node node(redis.place());
    std::vector<bool> health;
    auto const hearing = node->on_health([&](bool is_reached) { health.push_back(is_reached); });
    ASSERT_TRUE(node.run_until([&] { return !health.empty(); }));
    EXPECT_FALSE(health.back());
    redis.start();
    ASSERT_TRUE(node.run_until([&] { return health.back(); }));
}

// Whoever leaves while Redis is away has left when it is back.
TEST(RedisFailures, TellsInTheEndWhatNobodyWaitsFor)
{
    redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
    test_node node(redis.place(), [](redis_options& options) { options.give_up = 200ms; });
    ASSERT_TRUE(node.create(session));
    ASSERT_TRUE(node.open(call));
    attach_request request;
    request.reader.id = {"node/1", 7};
    ASSERT_TRUE(node.await<attached_stream>([&](auto done) { node->attach(call, request, std::move(done)); }));
    redis.kill();
    node.run_for(50ms);
    node->detach(call, request.reader.id, std::nullopt);
    EXPECT_EQ(test_node::error_of(node.load(session)), errc::unavailable);
    redis.start();
    ASSERT_TRUE(node.run_until([&] { return node->is_idle(); }));
    auto const mark = node.await<reader_mark>([&](auto done) { node->reader(call, std::move(done)); });
    ASSERT_TRUE(mark);
    EXPECT_FALSE(mark->attached);
}

TEST(RedisFailures, BoundsWhatWaits)
{
    redis_server redis;
    test_node node(redis.place(), [](redis_options& options) { options.most_waiting_bytes = 64 * 1024; });
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    redis.pause();
    std::vector<test_node::asked<stream_top>> appends;
    for (std::uint64_t batch = 1; batch <= 100; ++batch)
        appends.push_back(node.begin_append(call, *fence, batch, std::string(1024, 'x')));
    node.run_for(50ms);
    auto const refused = [&] {
        return std::ranges::count_if(appends, [](auto const& each) { return each.is_done() && !**each.outcome; });
    };
    EXPECT_GT(refused(), 20);
    EXPECT_LT(refused(), 80);
    redis.go_on();
    EXPECT_TRUE(node.wait(appends.front()));
}

// --- replies that say no

TEST(RedisFailures, TakesTheShortEndOfACallWhenRedisIsFull)
{
    redis_server redis({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
    test_node node(redis.place());
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    std::error_code refused;
    std::uint64_t batch = 0;
    while (!refused && batch < 1000)
        refused = test_node::error_of(node.append(call, *fence, ++batch, std::string(20'000, 'x')));
    EXPECT_EQ(refused, errc::no_space);
    redis.ask({"CONFIG", "SET", "maxmemory", "3mb"}); // what comes and goes with its work makes no difference
    EXPECT_EQ(test_node::error_of(node.create({"", {3, 4}})), errc::no_space);
    EXPECT_EQ(test_node::error_of(node.append(call, *fence, batch, "short")), errc::no_space);
    EXPECT_TRUE(node.wait(node.begin_append(call, *fence, batch, "the end", true)));
    EXPECT_EQ(node.texts(call).back(), "the end");
}

TEST(RedisFailures, WaitsForAMasterThatIsReadOnly)
{
    redis_server redis;
    test_node node(redis.place());
    ASSERT_TRUE(node.create(session));
    redis.ask({"REPLICAOF", "127.0.0.1", "1"});
    auto const waiting = [&] {
        test_node::asked<record_ptr> question;
        node->load(session, question.done());
        return question;
    }();
    node.run_for(200ms);
    EXPECT_FALSE(waiting.is_done());
    redis.ask({"REPLICAOF", "NO", "ONE"});
    EXPECT_TRUE(node.wait(waiting));
}

TEST(RedisFailures, SaysItsPasswordToNobodyElse)
{
    redis_server redis({"--requirepass", "s3cret"});
    auto place = redis.place();
    {
        test_node node(place, [](redis_options& options) { options.give_up = 300ms; });
        EXPECT_EQ(test_node::error_of(node.create(session)), errc::unavailable);
        EXPECT_NE(node.log().find("NOAUTH"), std::string::npos) << node.log();
    }
    place.password = "wr0ng";
    {
        test_node node(place, [](redis_options& options) { options.give_up = 300ms; });
        EXPECT_EQ(test_node::error_of(node.create(session)), errc::unavailable);
        EXPECT_NE(node.log().find("AUTH"), std::string::npos) << node.log();
        EXPECT_EQ(node.log().find("wr0ng"), std::string::npos);
    }
    place.password = "s3cret";
    test_node node(place);
    EXPECT_TRUE(node.create(session));
    place.user = "default";
    test_node other(place);
    EXPECT_TRUE(other.load(session));
}

TEST(RedisFailures, SaysWhichRightIsMissing)
{
    redis_server redis;
    redis.ask({"ACL", "SETUSER", "belay", "on", ">pw", "~*", "&*", "+@all", "-rpush"});
    auto place = redis.place();
    place.user = "belay";
    place.password = "pw";
    test_node node(place);
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    EXPECT_EQ(test_node::error_of(node.append(call, *fence, 1, "a")), errc::unavailable);
    EXPECT_NE(node.log().find("redis refused append"), std::string::npos) << node.log();
}

// --- several Redis

TEST(RedisCluster, GoesWhereASlotHasGone)
{
    auto& cluster = shared_redis_cluster();
    cluster.empty();
    test_node node(cluster.place());
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    ASSERT_TRUE(node.append(call, *fence, 1, "1"));
    auto const slot = redis_slot(key_of_list());
    auto const to = (cluster.owner_of(slot) + 1) % 3;
    cluster.begin_move(slot, to);
    std::vector<test_node::asked<stream_top>> appends;
    for (std::uint64_t batch = 2; batch <= 20; ++batch) {
        appends.push_back(node.begin_append(call, *fence, batch, std::to_string(batch)));
        if (batch == 8) {
            node.run_for(30ms);
            cluster.move_keys(slot, to);
        }
        if (batch == 15) {
            node.run_for(30ms);
            cluster.end_move(slot, to);
        }
    }
    for (auto const& each : appends)
        EXPECT_TRUE(node.wait(each));
    auto const texts = node.texts(call);
    ASSERT_EQ(texts.size(), 20u);
    for (std::size_t i = 0; i < texts.size(); ++i)
        EXPECT_EQ(texts[i], std::to_string(i + 1));
    // One that comes later knows nothing of it.
    test_node other(cluster.place());
    EXPECT_TRUE(other.load(session));
    EXPECT_EQ(other.texts(call).size(), 20u);
}

TEST(RedisCluster, LetsNodesHearOfEachOther)
{
    auto& cluster = shared_redis_cluster();
    cluster.empty();
    test_node one(cluster.place());
    test_node two(cluster.place());
    ASSERT_TRUE(one.create(session));
    auto const fence = one.open(call);
    ASSERT_TRUE(fence);
    std::atomic<int> woken{0};
    auto const growth = two->watch(call, event_store::interest::growth, [&](auto) { ++woken; });
    ASSERT_TRUE(two.load(session));
    two.run_for(300ms);
    ASSERT_TRUE(one.append(call, *fence, 1, "a"));
    EXPECT_TRUE(two.run_until([&] { return woken > 0; }));
    EXPECT_GE(two->count().hints, 1u);
}

TEST(RedisSentinel, GoesToTheNewMasterAfterAFailover)
{
    auto const port = std::to_string(free_port());
    auto const replica_port = std::to_string(free_port());
    auto const sentinel_port = free_port();
    redis_server master({"--bind", "127.0.0.1", "--port", port});
    redis_server replica({"--bind", "127.0.0.1", "--port", replica_port, "--replicaof", "127.0.0.1 " + port});
    ASSERT_TRUE(comes_true([&] { return replica.ask({"INFO"}).find("master_link_status:up") != std::string::npos; }));
    auto const configuration = master.folder() / "sentinel.conf";
    std::ofstream(configuration) << "bind 127.0.0.1\nport " << sentinel_port << "\nsentinel monitor main 127.0.0.1 "
                                 << port << " 1\nsentinel down-after-milliseconds main 500\n"
                                 << "sentinel failover-timeout main 3000\n";
    redis_server const sentinel({configuration.string(), "--sentinel"}, redis_server::role::sentinel);
    ASSERT_TRUE(comes_true([&] { return sentinel.ask({"INFO"}).find("slaves=1") != std::string::npos; }));
    redis_place place;
    place.what = redis_place::kind::sentinel;
    place.addresses = {{"127.0.0.1", 1}, {"127.0.0.1", sentinel_port}}; // the first is not there
    place.service = "main";
    test_node node(place);
    ASSERT_TRUE(node.create(session));
    auto const fence = node.open(call);
    ASSERT_TRUE(fence);
    ASSERT_TRUE(node.append(call, *fence, 1, "a"));
    ASSERT_TRUE(comes_true([&] { return replica.ask({"LLEN", key_of_list()}) == "1"; }));
    master.kill();
    EXPECT_TRUE(node.append(call, *fence, 2, "b"));
    EXPECT_EQ(node.texts(call), (strings{"a", "b"}));
    EXPECT_EQ(replica.ask({"LLEN", key_of_list()}), "2");
}

TEST(RedisTls, NeedsTheRightCertificates)
{
    auto const folder = std::filesystem::temp_directory_path() / ("belay_tls_" + std::to_string(free_port()));
    std::filesystem::create_directories(folder);
    auto const certificate = (folder / "certificate.pem").string();
    auto const key = (folder / "key.pem").string();
    auto const made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=belay "
                      "-addext subjectAltName=DNS:redis.test -keyout "
        + key + " -out " + certificate + " 2>/dev/null";
    ASSERT_EQ(std::system(made.c_str()), 0);
    auto const port = free_port();
    {
        redis_server redis(
            {"--bind", "127.0.0.1", "--tls-port", std::to_string(port), "--tls-cert-file", certificate,
             "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "yes"});
        redis_place place;
        place.addresses = {{"127.0.0.1", port}};
        place.uses_tls = true;
        redis_tls const right{certificate, certificate, key, "redis.test"};
        auto const outcome_with = [&](redis_tls const& tls) {
            test_node node(place, [&](redis_options& options) {
                options.tls = tls;
                options.timeout = 2s;
                options.give_up = 1s;
            });
            return test_node::error_of(node.create(session));
        };
        EXPECT_EQ(outcome_with(right), std::error_code());
        auto wrong = right;
        wrong.server_name = "other.test";
        EXPECT_EQ(outcome_with(wrong), errc::unavailable);
        wrong = right;
        wrong.ca_file.clear(); // what the system trusts
        EXPECT_EQ(outcome_with(wrong), errc::unavailable);
        wrong = right;
        wrong.certificate_file.clear();
        wrong.key_file.clear();
        EXPECT_EQ(outcome_with(wrong), errc::unavailable);
        EXPECT_THROW((void)make_redis_tls({"/no/such/file"}), std::runtime_error);
    }
    std::filesystem::remove_all(folder);
}

// --- before it is used

std::vector<std::string> findings(redis_place place)
{
    base::machine_clock clock;
    base::io_loop loop(clock);
    redis_options options;
    options.place = std::move(place);
    std::optional<std::vector<redis_finding>> found;
    check_redis(loop, options, [&](std::vector<redis_finding> outcome) { found = std::move(outcome); });
    auto const end = real_clock::now() + 20s;
    while (!found && real_clock::now() < end)
        loop.context().run_one_for(20ms);
    strings sentences;
    if (!found)
        ADD_FAILURE() << "the check did not complete";
    else
        for (auto const& each : *found)
            sentences.push_back(each.sentence);
    return sentences;
}

TEST(RedisBeforeUse, FindsNothingWrongWithARedisAsItShouldBe)
{
    redis_server redis({"--appendonly", "yes"});
    EXPECT_EQ(findings(redis.place()), strings{});
    EXPECT_EQ(redis.ask({"DBSIZE"}), "0");
}

TEST(RedisBeforeUse, SaysWhatIsWrong)
{
    redis_server redis({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
    redis.ask({"ACL", "SETUSER", "belay", "on", ">pw", "~*", "&*", "+@all", "-rpush", "-subscribe"});
    auto place = redis.place();
    place.user = "belay";
    place.password = "pw";
    auto const found = findings(place);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_NE(found[0].find("allkeys-lru"), std::string::npos);
    EXPECT_NE(found[1].find("all sessions"), std::string::npos);
    EXPECT_NE(found[2].find("RPUSH, SUBSCRIBE"), std::string::npos) << found[2];
    place.password = "wr0ng";
    auto const refused = findings(place);
    ASSERT_EQ(refused.size(), 1u);
    EXPECT_NE(refused[0].find("AUTH"), std::string::npos) << refused[0];
    EXPECT_EQ(refused[0].find("wr0ng"), std::string::npos);
    redis.kill();
    ASSERT_EQ(findings(place).size(), 1u);
}

// --- what nodes hear of each other

TEST(RedisNodes, HearOfWhatOthersDo)
{
    redis_server redis;
    test_node one(redis.place());
    test_node two(redis.place());
    ASSERT_TRUE(one.create(session));
    auto const fence = one.open(call);
    ASSERT_TRUE(fence);
    ASSERT_TRUE(two.load(session));
    std::atomic<int> woken{0};
    auto const growth = two->watch(call, event_store::interest::growth, [&](auto) { ++woken; });
    two.run_for(100ms); // its ear, and its word that it watches
    ASSERT_TRUE(two.run_until([&] { return two->is_idle(); }));
    ASSERT_TRUE(one.append(call, *fence, 1, "a"));
    EXPECT_TRUE(two.run_until([&] { return woken > 0; }));
    EXPECT_GE(two->count().hints, 1u);
    EXPECT_EQ(one->count().hints, 0u);
    EXPECT_EQ(two.texts(call), strings{"a"});
}

TEST(RedisNodes, FindWhatTheyHaveNotHeardOf)
{
    redis_server redis;
    test_node one(redis.place());
    test_node two(redis.place(), [](redis_options& options) { options.recheck = 500ms; });
    ASSERT_TRUE(one.create(session));
    auto const fence = one.open(call);
    ASSERT_TRUE(fence);
    std::atomic<int> woken{0};
    auto const growth = two->watch(call, event_store::interest::growth, [&](auto) { ++woken; });
    two.run_for(100ms);
    ASSERT_TRUE(two.run_until([&] { return two->is_idle(); }));
    // It is deaf for a moment, in which something happens.
    redis.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    ASSERT_TRUE(one.append(call, *fence, 1, "a"));
    EXPECT_TRUE(two.run_until([&] { return woken > 0; }));
    EXPECT_EQ(two->count().hints, 0u);
    EXPECT_GE(two->count().hints_missed, 1u);
    // And it hears again.
    woken = 0;
    ASSERT_TRUE(one.append(call, *fence, 2, "b"));
    EXPECT_TRUE(two.run_until([&] { return woken > 0; }));
}

TEST(RedisNodes, AreToldNothingTheyDoNotWatchAnyMore)
{
    redis_server redis;
    test_node one(redis.place());
    test_node two(redis.place());
    ASSERT_TRUE(one.create(session));
    auto const fence = one.open(call);
    ASSERT_TRUE(fence);
    auto const watchers_size
        = [&, root = "belay:{" + tag_of(session) + '}'] { return redis.ask({"HGET", root, "W"}).size(); };
    auto const with_one = watchers_size();
    auto growth = two->watch(call, event_store::interest::growth, [](auto) {});
    ASSERT_TRUE(two.run_until([&] { return watchers_size() > with_one; }));
    growth.reset();
    ASSERT_TRUE(two.run_until([&] { return watchers_size() == with_one; }));
    ASSERT_TRUE(one.append(call, *fence, 1, "a"));
    two.run_for(50ms);
    EXPECT_EQ(two->count().hints, 0u);
}

TEST(RedisNodes, HearTheBulletin)
{
    redis_server redis;
    test_node one(redis.place());
    test_node two(redis.place());
    strings heard_by_one;
    strings heard_by_two;
    auto const listening_one = one->listen([&](std::string const& text) { heard_by_one.push_back(text); });
    auto const listening_two = two->listen([&](std::string const& text) { heard_by_two.push_back(text); });
    ASSERT_TRUE(comes_true([&] {
        one.run_for(5ms);
        two.run_for(5ms);
        auto const listeners = redis.ask({"CLIENT", "LIST", "TYPE", "pubsub"});
        return std::ranges::count(listeners, '\n') == 2;
    }));
    one->publish("hello all");
    one.run_for(50ms);
    EXPECT_TRUE(two.run_until([&] { return !heard_by_two.empty(); }));
    EXPECT_EQ(heard_by_two, strings{"hello all"});
    EXPECT_EQ(heard_by_one, strings{"hello all"});
}

TEST(RedisNodes, CountWhatOthersUse)
{
    redis_server redis;
    test_node one(redis.place());
    test_node two(redis.place());
    ASSERT_TRUE(one.create(session));
    ASSERT_TRUE(one.open(call));
    auto const used = one->used();
    EXPECT_EQ(used.sessions, 1u);
    EXPECT_EQ(used.streams, 1u);
    EXPECT_TRUE(comes_true([&] {
        one.run_for(5ms);
        two.run_for(5ms);
        return two->used().bytes == used.bytes && two->used().streams == 1 && two->used().sessions == 1;
    }));
    // And the principal's quota is that of all nodes.
    EXPECT_EQ(redis.ask({"HGET", "belay:{fleet}:totals", "bytes"}), std::to_string(used.bytes));
}

TEST(RedisNodes, LeaveCallsAloneUntilTheirOwnersCouldRenewAfterAnOutage)
{
    redis_server redis({"--appendonly", "yes", "--appendfsync", "always"});
    test_node one(redis.place());
    test_node two(redis.place());
    auto const renew = [](test_node& node, std::string const& owner, base::duration lease) {
        return node.await<void>([&](auto done) { node->renew(owner, lease, std::move(done)); });
    };
    auto const lapsed = [](test_node& node) {
        auto const calls = node.await<std::vector<call_ref>>([&](auto done) { node->lapsed(10, std::move(done)); });
        return calls ? calls->size() : 1000;
    };
    ASSERT_TRUE(renew(one, "one/1", 1s));
    ASSERT_TRUE(renew(two, "two/1", 2s));
    ASSERT_TRUE(one.create(session));
    ASSERT_TRUE(one.open(call, "one/1"));
    redis.kill();
    two.run_for(1500ms); // the lease runs out meanwhile
    redis.start();
    ASSERT_TRUE(renew(two, "two/1", 2s));
    EXPECT_EQ(lapsed(two), 0u);
    EXPECT_TRUE(comes_true([&] {
        two.run_for(5ms);
        return lapsed(two) == 1;
    }));
}

TEST(RedisNodes, CompleteOnTheLoopThatAsked)
{
    redis_server redis;
    base::machine_clock clock;
    std::array<base::io_loop, 2> loops{base::io_loop(clock), base::io_loop(clock)};
    std::array<base::io_loop*, 2> const both{&loops[0], &loops[1]};
    redis_options options;
    options.place = redis.place();
    auto store = std::make_unique<redis_store>(limits{}, std::move(options), both);
    std::array<std::jthread, 2> threads;
    for (std::size_t i = 0; i < 2; ++i)
        threads[i] = std::jthread([&loop = loops[i]] { loop.run(); });
    std::array<std::atomic<int>, 2> right{};
    std::array<std::atomic<int>, 2> done{};
    constexpr int sessions = 200;
    for (std::size_t i = 0; i < 2; ++i)
        loops[i].post([&, i] {
            for (int n = 0; n < sessions; ++n) {
                session_record record;
                record.key = {"alice", {i, static_cast<std::uint64_t>(n)}};
                record.standalone = 9000;
                store->create(record, [&, i, key = record.key](result<record_ptr> const& made) {
                    right[i] += made.has_value() && base::current_loop == &loops[i];
                    store->load(key, [&, i](result<record_ptr> const& loaded) {
                        right[i] += loaded.has_value() && base::current_loop == &loops[i];
                        ++done[i];
                    });
                });
            }
        });
    EXPECT_TRUE(comes_true([&] { return done[0] == sessions && done[1] == sessions; }));
    for (auto& loop : loops)
        loop.stop();
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(right[0], 2 * sessions);
    EXPECT_EQ(right[1], 2 * sessions);
    store.reset();
}

}

}
