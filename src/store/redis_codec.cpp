#include "store/redis_codec.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <bit>
#include <charconv>
#include <stdexcept>

namespace belay::store {

// --- MessagePack

msgpack& msgpack::begin(std::size_t count, unsigned small, unsigned large)
{
    if (count < 16) {
        out_ += static_cast<char>(small | count);
    } else if (count < 0x10000) {
        out_ += static_cast<char>(large);
        big_endian(count, 2);
    } else {
        out_ += static_cast<char>(large + 1);
        big_endian(count, 4);
    }
    return *this;
}

void msgpack::big_endian(std::uint64_t value, int bytes)
{
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        out_ += static_cast<char>(value >> shift);
}

msgpack& msgpack::text(std::string_view text)
{
    if (text.size() < 32) {
        out_ += static_cast<char>(0xa0 | text.size());
    } else if (text.size() < 0x10000) {
        out_ += '\xda';
        big_endian(text.size(), 2);
    } else {
        out_ += '\xdb';
        big_endian(text.size(), 4);
    }
    out_ += text;
    return *this;
}

msgpack& msgpack::number(std::uint64_t number)
{
    if (number < 128) {
        out_ += static_cast<char>(number);
    } else {
        out_ += '\xcf';
        big_endian(number, 8);
    }
    return *this;
}

msgpack& msgpack::number(double number)
{
    out_ += '\xcb';
    big_endian(std::bit_cast<std::uint64_t>(number), 8);
    return *this;
}

msgpack_map& msgpack_map::text(std::string_view name, std::string_view value)
{
    return packed(name, msgpack().text(value).take());
}

msgpack_map& msgpack_map::number(std::string_view name, std::uint64_t value)
{
    return packed(name, msgpack().number(value).take());
}

msgpack_map& msgpack_map::packed(std::string_view name, std::string_view value)
{
    ++count_;
    parts_ += msgpack().text(name).take();
    parts_ += value;
    return *this;
}

std::string msgpack_map::take() const
{
    return msgpack().map(count_).take() + parts_;
}

// --- texts of our own: numbers in base 128, texts behind their sizes

namespace {

class writer {
public:
    writer& number(std::uint64_t value)
    {
        while (value >= 128) {
            out_ += static_cast<char>(value | 128);
            value >>= 7;
        }
        out_ += static_cast<char>(value);
        return *this;
    }
    writer& text(std::string_view value)
    {
        number(value.size());
        out_ += value;
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

private:
    std::string out_;
};

class reader {
public:
    explicit reader(std::string_view text) : rest_(text) {}

    std::uint64_t number()
    {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (rest_.empty()) {
                is_good_ = false;
                return 0;
            }
            auto const byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= std::uint64_t(byte & 127) << shift;
            if (byte < 128)
                return value;
        }
        is_good_ = false;
        return 0;
    }
    std::string text()
    {
        auto const size = number();
        if (!is_good_ || size > rest_.size()) {
            is_good_ = false;
            return {};
        }
        std::string found(rest_.substr(0, size));
        rest_.remove_prefix(size);
        return found;
    }
    /// How many of something that takes at least a byte each.
    std::size_t count()
    {
        auto const value = number();
        if (value > rest_.size())
            is_good_ = false;
        return is_good_ ? static_cast<std::size_t>(value) : 0;
    }
    [[nodiscard]] bool is_done() const noexcept { return is_good_ && rest_.empty(); }

private:
    std::string_view rest_;
    bool is_good_ = true;
};

}

std::string write_record(session_record const& record)
{
    return writer()
        .number(record.standalone)
        .text(record.version)
        .text(record.client_info)
        .text(record.client_capabilities)
        .number(record.initialized ? 1 : 0)
        .number(static_cast<std::uint32_t>(record.log_level))
        .number(record.told_features)
        .take();
}

std::optional<session_record> read_record(std::string_view text)
{
    reader from(text);
    session_record record;
    record.standalone = from.number();
    record.version = from.text();
    record.client_info = from.text();
    record.client_capabilities = from.text();
    record.initialized = from.number() != 0;
    record.log_level = static_cast<std::int32_t>(from.number());
    record.told_features = static_cast<std::uint32_t>(from.number());
    if (!from.is_done())
        return std::nullopt;
    return record;
}

std::string write_meta(stream_meta const& meta)
{
    writer to;
    to.text(meta.dialect).number(meta.requests.size());
    for (auto const& each : meta.requests)
        to.text(each.id).number(each.answer_bytes);
    to.number(meta.once ? 1 : 0);
    if (meta.once)
        to.text(meta.once->text).number(meta.once->fingerprint);
    to.text(meta.call_notes).text(meta.caller.principal).number(meta.caller.scopes.size());
    for (auto const& each : meta.caller.scopes)
        to.text(each);
    return to.text(meta.caller.claims)
        .number(meta.work)
        .number(meta.held_bytes)
        .number(meta.has_unique_ids ? 1 : 0)
        .take();
}

std::optional<stream_meta> read_meta(std::string_view text)
{
    reader from(text);
    stream_meta meta;
    meta.dialect = from.text();
    for (auto left = from.count(); left > 0; --left) {
        auto id = from.text();
        meta.requests.push_back({std::move(id), static_cast<std::size_t>(from.number())});
    }
    if (from.number() != 0) {
        meta.once.emplace();
        meta.once->text = from.text();
        meta.once->fingerprint = from.number();
    }
    meta.call_notes = from.text();
    meta.caller.principal = from.text();
    for (auto left = from.count(); left > 0; --left)
        meta.caller.scopes.push_back(from.text());
    meta.caller.claims = from.text();
    meta.work = from.number();
    meta.held_bytes = static_cast<std::size_t>(from.number());
    meta.has_unique_ids = from.number() != 0;
    if (!from.is_done())
        return std::nullopt;
    return meta;
}

std::optional<stored_event> read_event(std::string_view text)
{
    constexpr std::size_t header_bytes = 19;
    if (text.size() < header_bytes || static_cast<unsigned char>(text[0]) > 2)
        return std::nullopt;
    auto const number_at = [&](std::size_t at) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < 6; ++i)
            value |= std::uint64_t(static_cast<unsigned char>(text[at + i])) << (8 * i);
        return value;
    };
    stored_event event;
    event.kind = static_cast<event_kind>(text[0]);
    event.sequence = number_at(1);
    event.end_offset = number_at(7);
    event.payload = std::make_shared<std::string const>(text.substr(header_bytes));
    return event;
}

// --- names

namespace {

constexpr std::size_t id_size = 22;
constexpr std::size_t digest_size = 16;

/// 64 bits of SHA-256 in hex: nobody finds another principal with the same.
std::string digest_of(std::string_view principal)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(principal.data(), principal.size(), sum, &size, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("OpenSSL has no SHA-256, which names of sessions in Redis are made with");
    std::string hex;
    for (std::size_t i = 0; i < digest_size / 2; ++i)
        hex += fmt::format("{:02x}", sum[i]);
    return hex;
}

}

std::string tag_of(session_key const& key)
{
    auto tag = base::to_string(key.id);
    if (!key.principal.empty())
        tag += '.' + digest_of(key.principal);
    return tag;
}

std::optional<base::id128> id_in_tag(std::string_view tag) noexcept
{
    return base::parse_id128(tag.substr(0, id_size));
}

std::string name_member(session_key const& key)
{
    return base::log_name(key.id) + '/' + tag_of(key);
}

std::string stream_name(stream_id id)
{
    std::string name;
    base::append_base62(name, id);
    return name;
}

std::string write_subscriber(subscriber const& each)
{
    return fmt::format(
        "{}{}{:016x}{}", base::to_string(each.session.id), digest_of(each.session.principal), each.standalone,
        each.session.principal);
}

std::optional<subscriber> read_subscriber(std::string_view text)
{
    constexpr std::size_t fixed = id_size + digest_size + 16;
    if (text.size() < fixed)
        return std::nullopt;
    auto const id = base::parse_id128(text.substr(0, id_size));
    auto const number = text.substr(id_size + digest_size, 16);
    subscriber each;
    auto const [end, error] = std::from_chars(number.data(), number.data() + number.size(), each.standalone, 16);
    if (!id || error != std::errc() || end != number.data() + number.size())
        return std::nullopt;
    each.session = {std::string(text.substr(fixed)), *id};
    return each;
}

std::string after_subscriber(session_key const& key)
{
    return base::to_string(key.id) + digest_of(key.principal) + '~';
}

}
