// Hints of the store come from any thread and only post; those of one kind that are under way to the loop become one.
#pragma once

#include "base/loop.hpp"
#include "store/ports.hpp"

#include <atomic>
#include <functional>
#include <memory>

namespace belay::runtime {

template<class T, class F>
[[nodiscard]] std::function<void(store::event_store::interest)>
hints_to(base::loop& loop, std::weak_ptr<T> of, F handle)
{
    return [&loop, pending = std::make_shared<std::atomic<std::uint8_t>>(std::uint8_t(0)), of = std::move(of),
            handle](store::event_store::interest what) {
        auto const bit = static_cast<std::uint8_t>(what);
        if (pending->fetch_or(bit) & bit)
            return;
        loop.post([pending, of, handle, what, bit] {
            pending->fetch_and(static_cast<std::uint8_t>(~bit));
            if (auto const self = of.lock())
                handle(*self, what);
        });
    };
}

}
