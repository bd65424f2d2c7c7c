// The Redis store's streams and events: opening, appending, taking out, reading.
#include "store/redis_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

std::size_t charge_of(stream_meta const& meta) noexcept
{
    std::size_t charge = stream_overhead + meta.dialect.size() + meta.call_notes.size() + meta.caller.size();
    for (auto const& each : meta.requests)
        charge += request_overhead + each.id.size();
    return charge;
}

std::string packed(stream_meta const& meta, std::uint64_t watch_number)
{
    msgpack labels;
    msgpack reserves;
    labels.array(meta.requests.size());
    reserves.array(meta.requests.size());
    for (auto const& each : meta.requests) {
        labels.text(each.id);
        reserves.number(static_cast<std::uint64_t>(event_overhead + each.answer_bytes));
    }
    msgpack_map all;
    all.number("w", charge_of(meta))
        .number("h", meta.held_bytes)
        .packed("q", labels.take())
        .packed("rr", reserves.take())
        .flag("u", meta.has_unique_ids)
        .text("m", write_meta(meta))
        .number("wn", watch_number);
    if (meta.once)
        all.text("kt", meta.once->text).text("kf", std::to_string(meta.once->fingerprint));
    if (meta.work != 0)
        all.text("wk", std::to_string(meta.work));
    return all.take();
}

std::string packed(std::optional<reader_request> const& reader)
{
    if (!reader)
        return {};
    return msgpack_map()
        .text("o", reader->id.owner)
        .number("c", reader->id.connection)
        .flag("r", reader->can_return)
        .flag("pg", reader->is_of_page)
        .number("b", std::min<std::uint64_t>(reader->budget, largest_number))
        .number("bp", std::min<std::uint64_t>(reader->budget_of_page, largest_number))
        .take();
}

/// What an event has beside its payload; empty for most.
std::string special_of(event_data const& event)
{
    if (event.kind == event_kind::ordinary && !event.progress)
        return {};
    msgpack all;
    all.array(4).number(static_cast<std::uint64_t>(event.kind)).number(static_cast<std::uint64_t>(event.number));
    if (event.key)
        all.text(*event.key);
    else
        all.nil();
    if (event.progress)
        all.number(*event.progress);
    else
        all.nil();
    return all.take();
}

void add(words& args, std::vector<event_data> const& events)
{
    for (auto const& each : events) {
        args.push_back(*each.payload);
        args.push_back(special_of(each));
    }
}

stream_top top_of(reply_view const& reply)
{
    return {reply[header_size].count(), reply[header_size + 1].count(), reply[header_size + 2].count()};
}

}

// --- opening

void redis_store::open(
    stream_key const& key, stream_meta meta, std::string const& owner, std::optional<reader_request> reader,
    completion<opened_stream> done)
{
    core_->run([core = core_.get(), key, meta = std::move(meta), owner, reader = std::move(reader),
                done = std::move(done)](redis_lane& on) mutable {
        core->know_principal(on, key.session.principal);
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        auto const of_owner = core->of_fleet("calls:" + owner);
        // It is found by its owner from before it is there; one that is not opened after all is found not to be there.
        core->announce(
            on, owner, tag + '/' + stream,
            [core, &on, key, meta = std::move(meta), owner, reader = std::move(reader), tag, stream, of_owner,
             done = std::move(done)](result<void> const& there) mutable {
                if (!there)
                    return done(std::unexpected(there.error()));
                words args{core->node,
                           core->limits_for(key.session.principal),
                           "",
                           "",
                           stream,
                           owner,
                           packed(meta, core->next_watch_number()),
                           packed(reader)};
                core->eval_with_leases(
                    on, redis_script::open, core->keys_of(tag, stream), std::move(args),
                    [core, &on, key, tag, stream, of_owner,
                     done = std::move(done)](result<reply_view> const& reply) mutable {
                        if (!reply)
                            return done(std::unexpected(reply.error()));
                        if (auto const status = (*reply)[0].text(); status != "ok") {
                            if (status != "conflict") // then it is there, perhaps with this owner
                                on.command({"ZREM", of_owner, tag + '/' + stream}, of_owner, [](auto const&) {});
                            return done(failure(errc_of(status)));
                        }
                        core->note_use(key.session, *reply);
                        core->hear_reply(tag, *reply);
                        core->collect(on, tag, (*reply)[header_size + 3].text());
                        opened_stream opened;
                        opened.fence = (*reply)[header_size].count();
                        opened.epoch = (*reply)[header_size + 1].count();
                        opened.repeats = base::parse_base62((*reply)[header_size + 2].text());
                        done(opened);
                    });
            });
    });
}

// --- appending

void redis_store::append(
    stream_key const& key, fence fence, std::uint64_t batch, std::uint64_t after, std::vector<event_data> events,
    bool finish, completion<stream_top> done)
{
    core_->run([core = core_.get(), key, fence, batch, after, events = std::move(events), finish,
                done = std::move(done)](redis_lane& on) mutable {
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        words args{
            core->node,
            core->limits_for(key.session.principal),
            stream,
            std::to_string(fence),
            std::to_string(batch),
            finish ? "1" : "0",
            std::to_string(std::min(after, largest_number))};
        std::size_t size = 0;
        for (auto const& each : events)
            size += each.payload->size();
        add(args, events);
        // A full Redis takes the short end of a call.
        auto const which = finish && size <= default_answer_bytes ? redis_script::append_last : redis_script::append;
        core->change<stream_top>(
            on, which, key.session, core->keys_of(tag, stream), std::move(args), std::move(done),
            [core, &on, tag, stream](reply_view const& reply) -> result<stream_top> {
                if (auto const aging = reply[header_size + 3].integer(); aging > 0)
                    core->schedule_aging(on, tag, aging);
                if (auto const owner = reply[header_size + 4].text(); !owner.empty()) {
                    auto const of_owner = core->of_fleet("calls:" + std::string(owner));
                    on.command({"ZREM", of_owner, tag + '/' + stream}, of_owner, [](auto const&) {});
                }
                return top_of(reply);
            });
    });
}

void redis_store::append_standalone(
    stream_key const& key, std::string const& owner, std::uint64_t batch, std::vector<event_data> events,
    completion<stream_top> done)
{
    core_->run([core = core_.get(), key, owner, batch, events = std::move(events),
                done = std::move(done)](redis_lane& on) mutable {
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        words args{core->node, core->limits_for(key.session.principal), stream, owner, std::to_string(batch)};
        add(args, events);
        core->change<stream_top>(
            on, redis_script::append_standalone, key.session, core->keys_of(tag, stream), std::move(args),
            std::move(done), [core, &on, tag](reply_view const& reply) -> result<stream_top> {
                if (auto const aging = reply[header_size + 3].integer(); aging > 0)
                    core->schedule_aging(on, tag, aging);
                return top_of(reply);
            });
    });
}

void redis_store::blank(stream_key const& key, fence fence, std::uint64_t sequence, completion<void> done)
{
    core_->run([core = core_.get(), key, fence, sequence, done = std::move(done)](redis_lane& on) mutable {
        auto const stream = stream_name(key.stream);
        words args{core->node, stream, std::to_string(fence), std::to_string(std::min(sequence, largest_number))};
        core->change<void>(
            on, redis_script::blank, key.session, core->keys_of(tag_of(key.session), stream), std::move(args),
            std::move(done), [](reply_view const&) -> result<void> { return {}; });
    });
}

// --- reading

void redis_store::read_after(
    stream_key const& key, std::uint64_t after, read_limit limit, std::optional<reader_id> reader,
    completion<page> done)
{
    core_->run([core = core_.get(), key, after, limit, reader = std::move(reader),
                done = std::move(done)](redis_lane& on) mutable {
        auto const stream = stream_name(key.stream);
        words args{
            core->node,
            stream,
            std::to_string(std::min(after, largest_number)),
            std::to_string(limit.events),
            std::to_string(limit.bytes),
            reader ? name_of_reader(*reader) : ""};
        core->ask<page>(
            on, redis_script::read, core->keys_of(tag_of(key.session), stream), std::move(args), std::move(done),
            [core](reply_view const& reply) { return read_page(*core, reply[1], reply[2], reply[3], reply[4]); });
    });
}

result<page> read_page(
    redis_core const& core, reply_view const& events, reply_view const& state, reply_view const& why,
    reply_view const& retry)
{
    page read;
    read.events.reserve(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        auto event = read_event(events[i].text());
        if (!event)
            return failure(errc::unavailable);
        read.events.push_back(std::move(*event));
    }
    read.state.top = {state[0].count(), state[1].count(), state[2].count()};
    read.state.first_kept = state[3].count();
    read.state.finished = state[4].integer() != 0;
    read.state.session_closed = state[5].integer() != 0;
    read.state.reader
        = {state[6].integer() != 0 && core.is_living(state[12].text()),
           state[7].count(),
           state[8].count(),
           state[9].count(),
           state[10].count(),
           state[11].count()};
    if (why.integer() >= 0) {
        read.dismissed.emplace();
        read.dismissed->why = static_cast<dismissal>(why.integer());
        if (retry.integer() >= 0)
            read.dismissed->retry = std::chrono::milliseconds(retry.integer());
    }
    return read;
}

std::string name_of_reader(reader_id const& reader)
{
    return reader.owner + '#' + std::to_string(reader.connection);
}

}
