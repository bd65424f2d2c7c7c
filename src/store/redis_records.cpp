// The Redis store's small records.
#include "store/redis_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

words keys_of_records(redis_core const& core)
{
    return {core.of_fleet("records"), core.of_fleet("record_ends"), core.of_fleet("totals")};
}

}

void redis_store::put_record(
    std::string_view name, std::uint64_t seen, std::string value, base::duration lifetime,
    completion<std::uint64_t> done)
{
    core_->run([core = core_.get(), name = std::string(name), seen, value = std::move(value), lifetime,
                done = std::move(done)](redis_lane& on) mutable {
        auto const others = core->other_bytes_than_records();
        auto const room = core->limits.bytes_total - std::min(core->limits.bytes_total, others);
        words args{
            std::move(name),
            std::to_string(seen),
            std::move(value),
            milliseconds(lifetime),
            std::to_string(core->limits.small_records),
            std::to_string(room)};
        on.eval(
            redis_script::put_record, keys_of_records(*core), std::move(args),
            [core, done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                core->note_records((*reply)[1].count());
                if (auto const status = (*reply)[0].text(); status != "ok")
                    return done(failure(errc_of(status)));
                done((*reply)[2].count());
            });
    });
}

void redis_store::get_record(std::string_view name, completion<small_record> done)
{
    core_->run([core = core_.get(), name = std::string(name), done = std::move(done)](redis_lane& on) mutable {
        auto keys = keys_of_records(*core);
        keys.pop_back();
        core->ask<small_record>(
            on, redis_script::get_record, keys, {std::move(name)}, std::move(done),
            [](reply_view const& reply) -> result<small_record> {
                return small_record{reply[2].string(), reply[1].count()};
            });
    });
}

void redis_store::take_record(std::string_view name, std::uint64_t seen, std::string taker, completion<void> done)
{
    core_->run([core = core_.get(), name = std::string(name), seen, taker = std::move(taker),
                done = std::move(done)](redis_lane& on) mutable {
        words args{
            std::move(name), std::to_string(seen), std::move(taker),
            std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(late_command_limit).count())};
        on.eval(
            redis_script::take_record, keys_of_records(*core), std::move(args),
            [core, done = std::move(done)](result<reply_view> const& reply) mutable {
                if (!reply)
                    return done(std::unexpected(reply.error()));
                core->note_records((*reply)[1].count());
                if (auto const status = (*reply)[0].text(); status != "ok")
                    return done(failure(errc_of(status)));
                done({});
            });
    });
}

}
