// The scripts of the Redis store: one file for each operation in store/redis/, put together from the parts that it
// names in its line `-- use: …`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

/// A file of store/redis/. The list ends with one without a name.
struct script_file {
    std::string_view name;
    std::string_view text;
};
extern script_file const script_files[];

enum class redis_script : std::uint8_t {
    admit,
    age,
    announce,
    append,
    append_last,
    append_standalone,
    attach,
    blank,
    claim,
    close,
    collect,
    create,
    delivered,
    detach,
    dismiss,
    due,
    find,
    forget,
    get_record,
    index_uri,
    leases,
    load,
    look,
    mail,
    note,
    old_records,
    open,
    overview,
    post,
    pulse,
    put_record,
    quiet,
    read,
    reader,
    release,
    remove,
    renew,
    report,
    retire,
    running,
    subscribe,
    take_record,
    touch,
    unindex_uri,
    unsubscribe,
    update,
    watch,
};
constexpr std::size_t redis_script_count = static_cast<std::size_t>(redis_script::watch) + 1;

class redis_scripts {
public:
    /// Whose time it is that scripts see: Redis' own, or that moved by an argument (µs) behind all others, for tests.
    enum class time { own, moved };
    explicit redis_scripts(time time);

    struct script {
        std::string name;
        std::string text;
        std::string sha; ///< of the text, in hex: EVALSHA's
        bool is_moved = false; ///< takes the argument that moves time
        bool writes = true;
    };
    [[nodiscard]] script const& operator[](redis_script which) const noexcept
    {
        return scripts_[static_cast<std::size_t>(which)];
    }
    [[nodiscard]] std::array<script, redis_script_count> const& all() const noexcept { return scripts_; }

private:
    std::array<script, redis_script_count> scripts_;
};

}
