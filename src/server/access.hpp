// The library's way to what the types of authors keep to themselves: one, so that each of them has one friend.
#pragma once

#include <belay/server.hpp>

#include <memory>
#include <utility>

namespace belay::detail {

struct access {
    /// By a constructor that authors do not have.
    template<class T, class... Args>
    [[nodiscard]] static T make(Args&&... args)
    {
        return T(std::forward<Args>(args)...);
    }
    [[nodiscard]] static std::shared_ptr<server_core> const& core(server const& of) noexcept { return of.core_; }
};

}
