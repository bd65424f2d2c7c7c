// The library's way to what the types of authors keep to themselves: one, so that each of them has one friend.
#pragma once

#include <belay/server.hpp>

#include <memory>
#include <utility>

namespace belay::inline v0::detail {

struct access {
    /// By a constructor that authors do not have.
    template<class T, class... Args>
    [[nodiscard]] static T make(Args&&... args)
    {
        return T(std::forward<Args>(args)...);
    }
    [[nodiscard]] static std::shared_ptr<server_core> const& core(server const& of) { return of.core(); }
    /// Of belay::flags, which this room does not see.
    template<class Flags>
    [[nodiscard]] static auto const& all(Flags const& of) noexcept
    {
        return of.all_;
    }
    template<class Flags>
    static void call_then(Flags const& of)
    {
        for (auto const& each : of.then_)
            each();
    }
};

}
