// Content blocks, and what older clients get in the place of blocks they do not know.
#include "server/content.hpp"

#include "json/serialize.hpp"

#include <algorithm>
#include <array>

namespace belay::inline v0::content {

namespace {

std::string base64(std::string_view bytes)
{
    std::string out;
    out.reserve(detail::base64_bytes(bytes.size()));
    detail::append_base64(out, bytes);
    return out;
}

json::object media(std::string_view type, blob const& data, std::string_view mime)
{
    json::object block;
    block["type"] = type;
    block["data"] = base64(data.bytes);
    block["mimeType"] = mime;
    return block;
}

json::object embed(json::object resource)
{
    json::object block;
    block["type"] = "resource";
    block["resource"] = std::move(resource);
    return block;
}

}

json::object text(std::string_view text)
{
    json::object block;
    block["type"] = "text";
    block["text"] = text;
    return block;
}

json::object image(blob const& data, std::string_view mime)
{
    return media("image", data, mime);
}

json::object audio(blob const& data, std::string_view mime)
{
    return media("audio", data, mime);
}

json::object embedded(std::string_view uri, std::string_view mime, std::string_view text)
{
    return embed(
        detail::contents_part(uri, {{}, std::string(mime), std::string(text), {}}, {}, protocol::newest_revision));
}

json::object embedded(std::string_view uri, std::string_view mime, blob const& data)
{
    return embed(detail::contents_part(uri, {{}, std::string(mime), {}, data}, {}, protocol::newest_revision));
}

json::object link(std::string_view uri, std::string_view name, std::string_view mime, std::string_view description)
{
    json::object block;
    block["type"] = "resource_link";
    block["uri"] = uri;
    block["name"] = name;
    if (!description.empty())
        block["description"] = description;
    if (!mime.empty())
        block["mimeType"] = mime;
    return block;
}

json::object annotated(json::object block, annotations const& notes)
{
    block["annotations"] = detail::annotations_object(notes);
    return block;
}

}

namespace belay::inline v0::detail {

void append_base64(std::string& out, std::string_view bytes)
{
    static constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        auto const left = bytes.size() - i;
        auto const at = [&](std::size_t place) -> unsigned {
            return place < left ? static_cast<unsigned char>(bytes[i + place]) : 0;
        };
        auto const group = at(0) << 16 | at(1) << 8 | at(2);
        out += alphabet[group >> 18];
        out += alphabet[group >> 12 & 63];
        out += left > 1 ? alphabet[group >> 6 & 63] : '=';
        out += left > 2 ? alphabet[group & 63] : '=';
    }
}

json::object annotations_object(belay::annotations const& notes)
{
    json::object object;
    if (notes.for_user || notes.for_assistant) {
        auto& audience = object["audience"].emplace_array();
        if (notes.for_user)
            audience.emplace_back("user");
        if (notes.for_assistant)
            audience.emplace_back("assistant");
    }
    if (notes.priority)
        object["priority"] = *notes.priority;
    if (!notes.last_modified.empty())
        object["lastModified"] = notes.last_modified;
    return object;
}

json::object contents_part(
    std::string_view uri, resource_part const& part, std::string_view default_mime, protocol::revision revision)
{
    json::object object;
    object["uri"] = part.uri.empty() ? uri : std::string_view(part.uri);
    if (auto const mime = part.mime.empty() ? default_mime : std::string_view(part.mime); !mime.empty())
        object["mimeType"] = mime;
    if (part.data)
        object["blob"] = content::base64(part.data->bytes);
    else
        object["text"] = part.text;
    if (!part.meta.empty() && protocol::facts_of(revision).has_meta)
        object["_meta"] = part.meta;
    return object;
}

void append_contents_part(
    std::string& out, std::string_view uri, resource_part const& part, std::string_view default_mime,
    protocol::revision revision)
{
    resource_part without{part.uri, part.mime, {}, {}, part.meta};
    auto const rest = contents_part(uri, without, default_mime, revision);
    out += '{';
    for (auto const& each : rest) {
        if (out.back() != '{')
            out += ',';
        bool const is_payload = each.key() == "text";
        json_text::append_json_string(out, is_payload && part.data ? "blob" : std::string_view(each.key()));
        out += ':';
        if (!is_payload) {
            json_text::append_json(out, each.value());
        } else if (part.data) {
            out += '"';
            append_base64(out, part.data->bytes);
            out += '"';
        } else {
            json_text::append_json_string(out, part.text);
        }
    }
    out += '}';
}

resource_contents json_contents(json::value const& value)
{
    return {{{{}, "application/json", json_text::to_json(value), {}}}};
}

std::expected<std::vector<json::object>, std::string>
sampling_blocks(json::value const& content, protocol::revision revision)
{
    using facts = protocol::revision_facts;
    struct kind {
        std::string_view type;
        bool facts::* fact; ///< that clients must have; null: all know it
    };
    static constexpr kind kinds[]
        = {{"text", nullptr},
           {"image", nullptr},
           {"audio", &facts::has_audio},
           {"tool_use", &facts::has_sampling_tools},
           {"tool_result", &facts::has_sampling_tools}};
    auto const& speaks = protocol::facts_of(revision);
    std::vector<json::object> blocks;
    auto const add = [&](json::value const& one) -> std::string {
        auto const* block = one.if_object();
        auto const* type = block ? block->if_contains("type") : nullptr;
        if (!type || !type->is_string())
            return "The content of a sampling message must be a block such as content::text makes, or an array of "
                   "them.";
        std::string const name(type->get_string());
        auto const* const known = std::ranges::find(kinds, name, &kind::type);
        if (known == std::end(kinds))
            return "A sampling message cannot hold a block of type " + name + ".";
        if (known->fact && !(speaks.*known->fact))
            return "This tool wants to show the client's model a block of type " + name
                + ", which clients have since MCP "
                + std::string(protocol::to_string(*protocol::first_with(known->fact))) + "; this one speaks "
                + std::string(protocol::to_string(revision)) + ".";
        blocks.push_back(block_for(*block, revision));
        return {};
    };
    auto const* const several = content.if_array();
    if (several && several->empty())
        return std::unexpected("A sampling message needs content.");
    if (!several) {
        if (auto why = add(content); !why.empty())
            return std::unexpected(std::move(why));
        return blocks;
    }
    for (auto const& each : *several)
        if (auto why = add(each); !why.empty())
            return std::unexpected(std::move(why));
    return blocks;
}

json::object block_for(json::object block, protocol::revision revision)
{
    auto const& speaks = protocol::facts_of(revision);
    auto const* type = block.if_contains("type");
    if (!type || !type->is_string())
        return block;
    auto const text_of = [&](std::string_view name) -> std::string {
        auto const* value = block.if_contains(name);
        return value && value->is_string() ? std::string(value->get_string()) : std::string();
    };
    if (type->get_string() == "audio" && !speaks.has_audio)
        return content::text("[audio, " + text_of("mimeType") + "]");
    if (type->get_string() == "resource_link" && !speaks.has_resource_links)
        return content::text(text_of("name") + ": " + text_of("uri"));
    if (!speaks.has_icons)
        block.erase("icons");
    if (!speaks.has_modification_times)
        if (auto* notes = block.if_contains("annotations"); notes && notes->is_object())
            notes->get_object().erase("lastModified");
    if (!speaks.has_meta) {
        block.erase("_meta");
        if (auto* resource = block.if_contains("resource"); resource && resource->is_object())
            resource->get_object().erase("_meta");
    }
    return block;
}

}
