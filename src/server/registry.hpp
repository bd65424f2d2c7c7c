// Named things in the order of their registration. Changed by publishing a new snapshot, so that requests go
// on with the one they have. Safe from every thread.
#pragma once

#include "base/mutex.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace belay::inline v0::detail {

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

/// What a thing is listed by, and its JSON for each revision.
struct listed {
    std::string key;
    std::vector<std::string> texts;
};

template<class T>
class registry {
public:
    struct entry {
        std::shared_ptr<T const> what;
        listed as;
    };
    struct snapshot {
        std::vector<std::shared_ptr<entry const>> in_order;
        std::unordered_map<std::string, std::shared_ptr<T const>, text_hash, std::equal_to<>> by_key;

        [[nodiscard]] std::shared_ptr<T const> find(std::string_view key) const
        {
            auto const found = by_key.find(key);
            return found == by_key.end() ? nullptr : found->second;
        }
    };

    [[nodiscard]] std::shared_ptr<snapshot const> now() const
    {
        base::lock const lock(mutex_);
        return current_;
    }
    /// False if the key is taken.
    [[nodiscard]] bool add(std::shared_ptr<T const> what, listed as)
    {
        base::lock const lock(mutex_);
        if (current_->by_key.contains(as.key))
            return false;
        auto next = std::make_shared<snapshot>(*current_);
        next->by_key.emplace(as.key, what);
        next->in_order.push_back(std::make_shared<entry const>(entry{std::move(what), std::move(as)}));
        current_ = std::move(next);
        return true;
    }
    /// False if there is none.
    [[nodiscard]] bool remove(std::string_view key)
    {
        base::lock const lock(mutex_);
        if (!current_->find(key))
            return false;
        auto next = std::make_shared<snapshot>(*current_);
        next->by_key.erase(next->by_key.find(key));
        std::erase_if(next->in_order, [&](auto const& each) { return each->as.key == key; });
        current_ = std::move(next);
        return true;
    }

private:
    mutable base::mutex mutex_;
    std::shared_ptr<snapshot const> current_ BELAY_GUARDED_BY(mutex_) = std::make_shared<snapshot const>();
};

}
