// The Redis store's readers: who follows a stream, how far it is, and who has to leave.
#include "store/redis_state.hpp"

#include <algorithm>

namespace belay::store {

namespace {

std::string number(std::uint64_t value)
{
    return std::to_string(std::min(value, largest_number));
}

std::string packed(attach_request const& request, limits const& limits, std::uint64_t watch_number)
{
    auto const& reader = request.reader;
    msgpack_map all;
    all.text("o", reader.id.owner)
        .number("c", reader.id.connection)
        .flag("r", reader.can_return)
        .flag("pg", reader.is_of_page)
        .number("b", std::min<std::uint64_t>(reader.budget, largest_number))
        .number("bp", std::min<std::uint64_t>(reader.budget_of_page, largest_number))
        .flag("sk", request.skips_backlog)
        .flag("cf", request.policy == standalone_policy::conflict)
        .flag("ins", request.insists)
        .flag("qs", request.wants_questions)
        .number("le", std::min<std::uint64_t>(request.limit.events, largest_number))
        .number("lb", std::min<std::uint64_t>(request.limit.bytes, largest_number))
        .number(
            "tw",
            static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(takeover_window).count()))
        .number("tm", takeovers_per_window)
        .number("wn", watch_number);
    if (request.from)
        all.text("fe", std::to_string(request.from->epoch))
            .number("fs", std::min(request.from->sequence, largest_number))
            .number("we", std::min(limits.window_events(), largest_number));
    if (request.broken)
        all.text("bro", request.broken->owner).number("brc", request.broken->connection);
    return all.take();
}

}

// --- coming and going

void redis_store::attach(stream_key const& key, attach_request request, completion<attached_stream> done)
{
    core_->run([core = core_.get(), key, request = std::move(request), done = std::move(done)](redis_lane& on) mutable {
        auto const tag = tag_of(key.session);
        auto const stream = stream_name(key.stream);
        core->eval_with_leases(
            on, redis_script::attach, core->keys_of(tag, stream),
            {core->node, "", "", "", stream, packed(request, core->limits, core->next_watch_number())},
            [core, key, tag, done = std::move(done)](result<reply_view> const& answer) mutable {
                if (!answer)
                    return done(std::unexpected(answer.error()));
                auto const& reply = *answer;
                // One that is refused may have found the dead, and let them go.
                core->note_use(key.session, reply);
                core->hear_reply(tag, reply);
                if (auto const status = reply[0].text(); status != "ok")
                    return done(failure(errc_of(status)));
                auto const part = [&](std::size_t index) { return reply[header_size + index]; };
                attached_stream attached;
                attached.kind = part(0).integer() != 0 ? stream_kind::standalone : stream_kind::request;
                if (auto const meta = read_meta(part(1).text()))
                    attached.dialect = meta->dialect;
                attached.waits = part(2).integer() != 0;
                attached.took_over = part(3).integer() != 0;
                attached.is_other_epoch = part(4).integer() != 0;
                attached.start = part(5).count();
                if (!attached.waits) {
                    auto first = read_page(*core, part(6), part(7), part(8), part(9));
                    if (!first)
                        return done(std::unexpected(first.error()));
                    attached.first = std::move(*first);
                }
                for (std::size_t i = 0; i < part(10).size(); ++i)
                    attached.questions.push_back(std::make_shared<std::string const>(part(10)[i].text()));
                done(std::move(attached));
            });
    });
}

void redis_store::detach(stream_key const& key, reader_id const& reader, std::optional<reader_mark> mark)
{
    core_->run([core = core_.get(), key, reader, mark](redis_lane& on) {
        auto const stream = stream_name(key.stream);
        words args{core->node, stream, reader.owner, number(reader.connection), "", "", "", ""};
        if (mark) {
            args[4] = number(mark->position);
            args[5] = number(mark->offset);
            args[6] = number(mark->sent);
            args[7] = number(mark->delivered);
        }
        core->tell(on, redis_script::detach, key.session, core->keys_of(tag_of(key.session), stream), std::move(args));
    });
}

void redis_store::dismiss(stream_key const& key, dismissed_reader how)
{
    core_->run([core = core_.get(), key, how](redis_lane& on) {
        words args{
            core->node, stream_name(key.stream), std::to_string(static_cast<int>(how.why)),
            std::to_string(how.retry ? how.retry->count() : -1)};
        core->tell(on, redis_script::dismiss, key.session, core->keys_of(tag_of(key.session)), std::move(args));
    });
}

// --- marks

void redis_store::note_reader(stream_key const& key, reader_id const& reader, reader_mark mark)
{
    core_->run([core = core_.get(), key, reader, mark](redis_lane& on) {
        auto const stream = stream_name(key.stream);
        words args{
            core->node,
            stream,
            name_of_reader(reader),
            mark.attached ? "1" : "0",
            number(mark.position),
            number(mark.offset),
            number(mark.sent),
            number(mark.given),
            number(mark.delivered)};
        core->tell(on, redis_script::note, key.session, core->keys_of(tag_of(key.session), stream), std::move(args));
    });
}

void redis_store::note_delivered(stream_key const& key, std::uint64_t sequence)
{
    core_->run([core = core_.get(), key, sequence](redis_lane& on) {
        auto const stream = stream_name(key.stream);
        core->tell(
            on, redis_script::delivered, key.session, core->keys_of(tag_of(key.session), stream),
            {core->node, stream, number(sequence)});
    });
}

void redis_store::reader(stream_key const& key, completion<reader_mark> done)
{
    core_->run([core = core_.get(), key, done = std::move(done)](redis_lane& on) mutable {
        core->ask<reader_mark>(
            on, redis_script::reader, {core->root(tag_of(key.session))}, {core->node, stream_name(key.stream)},
            std::move(done), [core](reply_view const& reply) -> result<reader_mark> {
                return reader_mark{
                    reply[1].integer() != 0 && core->is_living(reply[7].text()),
                    reply[2].count(),
                    reply[3].count(),
                    reply[4].count(),
                    reply[5].count(),
                    reply[6].count()};
            });
    });
}

}
