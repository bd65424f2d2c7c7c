#include "store/redis_scripts.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>

namespace belay::store {

namespace {

struct entry {
    redis_script which;
    std::string_view name;
    std::string_view file{}; // of another name
    std::string_view first_line{}; // in place of the file's
};

// The last append of a call may use what Redis keeps back: a full store can end its calls.
constexpr entry entries[] = {
    {redis_script::admit, "admit"},
    {redis_script::age, "age"},
    {redis_script::announce, "announce"},
    {redis_script::append, "append"},
    {redis_script::append_last, "append_last", "append", "#!lua flags=allow-oom\n"},
    {redis_script::append_standalone, "append_standalone"},
    {redis_script::attach, "attach"},
    {redis_script::blank, "blank"},
    {redis_script::claim, "claim"},
    {redis_script::close, "close"},
    {redis_script::collect, "collect"},
    {redis_script::create, "create"},
    {redis_script::delivered, "delivered"},
    {redis_script::detach, "detach"},
    {redis_script::dismiss, "dismiss"},
    {redis_script::due, "due"},
    {redis_script::find, "find"},
    {redis_script::forget, "forget"},
    {redis_script::get_record, "get_record"},
    {redis_script::index_uri, "index_uri"},
    {redis_script::leases, "leases"},
    {redis_script::load, "load"},
    {redis_script::look, "look"},
    {redis_script::mail, "mail"},
    {redis_script::note, "note"},
    {redis_script::old_records, "old_records"},
    {redis_script::open, "open"},
    {redis_script::overview, "overview"},
    {redis_script::post, "post"},
    {redis_script::pulse, "pulse"},
    {redis_script::put_record, "put_record"},
    {redis_script::quiet, "quiet"},
    {redis_script::read, "read"},
    {redis_script::reader, "reader"},
    {redis_script::release, "release"},
    {redis_script::remove, "remove"},
    {redis_script::renew, "renew"},
    {redis_script::report, "report"},
    {redis_script::retire, "retire"},
    {redis_script::running, "running"},
    {redis_script::subscribe, "subscribe"},
    {redis_script::take_record, "take_record"},
    {redis_script::touch, "touch"},
    {redis_script::unindex_uri, "unindex_uri"},
    {redis_script::unsubscribe, "unsubscribe"},
    {redis_script::update, "update"},
    {redis_script::watch, "watch"},
};
static_assert(std::size(entries) == redis_script_count);

std::string_view file(std::string_view name)
{
    for (auto const* each = script_files; !each->name.empty(); ++each)
        if (each->name == name)
            return each->text;
    throw std::logic_error(fmt::format("there is no script {}", name));
}

std::string sha1(std::string_view text)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), sum, &size, EVP_sha1(), nullptr) != 1)
        throw std::runtime_error("OpenSSL has no SHA-1, by which Redis names scripts");
    std::string hex;
    for (unsigned i = 0; i < size; ++i)
        hex += fmt::format("{:02x}", sum[i]);
    return hex;
}

}

redis_scripts::redis_scripts(time time)
{
    constexpr std::string_view use = "-- use:";
    for (auto const& each : entries) {
        auto& made = scripts_[static_cast<std::size_t>(each.which)];
        made.name = each.name;
        auto body = file(each.file.empty() ? each.name : each.file);
        auto const first_line = body.substr(0, body.find('\n') + 1);
        body.remove_prefix(first_line.size());
        made.text = each.first_line.empty() ? first_line : each.first_line;
        made.writes = first_line.find("no-writes") == std::string_view::npos;
        if (body.starts_with(use)) {
            auto parts = body.substr(use.size(), body.find('\n') - use.size());
            while (!parts.empty()) {
                auto const begin = std::min(parts.find_first_not_of(' '), parts.size());
                auto const end = std::min(parts.find(' ', begin), parts.size());
                auto const part = parts.substr(begin, end - begin);
                parts.remove_prefix(end);
                if (part.empty())
                    break;
                bool const is_of_time = part == "time" || part == "arguments";
                if (is_of_time && time == time::moved) {
                    made.is_moved = true;
                    made.text += file(std::string(part) + "_moved");
                } else {
                    made.text += file(part);
                }
            }
        }
        made.text += body;
        made.sha = sha1(made.text);
    }
}

}
