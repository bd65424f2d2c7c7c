// How commands, replies and hints fare on a link.
#include "link.hpp"

namespace belay::sim {

/// Watches something in whatever store there is.
class link::watcher final : public listener, public std::enable_shared_from_this<watcher> {
public:
    watcher(link& on, interest interests, watch_function watch, hint_function wake)
        : on_(on), interests_(interests), watch_(std::move(watch)), wake_(std::move(wake))
    {
    }
    void listen_to(store::backend& at) override
    {
        inner_.reset();
        inner_ = watch_(at, [&on = on_, weak = weak_from_this()](interest what) {
            if (auto const self = weak.lock())
                on.hint(self, what);
        });
    }
    void stop() override
    {
        inner_.reset();
        wake_ = nullptr;
    }
    void wake(interest what) override
    {
        if (wake_)
            wake_(what);
    }
    void wake_all() override
    {
        if (interests_ == interest{})
            return wake({});
        for (auto const each : {interest::growth, interest::reader, interest::mail, interest::dismissal})
            if ((interests_ | each) == interests_)
                wake(each);
    }

private:
    link& on_;
    interest interests_; // none: of a session
    watch_function watch_;
    hint_function wake_;
    std::unique_ptr<store::watch_handle> inner_;
};

/// Hears what is said to all. Nothing depends on it, so nobody says it again.
class link::hearer final : public listener, public std::enable_shared_from_this<hearer> {
public:
    hearer(link& on, std::function<void(std::string const&)> hear) : on_(on), hear_(std::move(hear)) {}
    void listen_to(store::backend& at) override
    {
        inner_.reset();
        inner_ = at.listen([weak = weak_from_this()](std::string const& text) {
            auto const self = weak.lock();
            if (!self || !self->hear_)
                return;
            auto& on = self->on_;
            if (on.pace_ == pace::at_once)
                return self->hear_(text);
            if (!on.is_cut_ && !on.happens(on.faults_.loses_hint))
                on.network_->send({[weak, text] {
                    if (auto const alive = weak.lock(); alive && alive->hear_)
                        alive->hear_(text);
                }});
        });
    }
    void stop() override
    {
        inner_.reset();
        hear_ = nullptr;
    }
    void wake(interest) override {}
    void wake_all() override {}

private:
    link& on_;
    std::function<void(std::string const&)> hear_;
    std::unique_ptr<store::watch_handle> inner_;
};

class link::handle final : public store::watch_handle {
public:
    handle(std::weak_ptr<link> on, std::shared_ptr<listener> held) : on_(std::move(on)), held_(std::move(held)) {}
    ~handle() override
    {
        held_->stop();
        if (auto const on = on_.lock())
            std::erase(on->watches_, held_);
    }

private:
    std::weak_ptr<link> on_;
    std::shared_ptr<listener> held_;
};

std::unique_ptr<store::watch_handle> link::watch_with(interest interests, watch_function watch, hint_function wake)
{
    auto const fresh = std::make_shared<watcher>(*this, interests, std::move(watch), std::move(wake));
    if (!is_dead_) {
        watches_.push_back(fresh);
        fresh->listen_to(*store_);
    }
    return std::make_unique<handle>(weak_from_this(), fresh);
}

std::unique_ptr<store::watch_handle> link::listen(std::function<void(std::string const&)> hear)
{
    auto const fresh = std::make_shared<hearer>(*this, std::move(hear));
    if (!is_dead_) {
        watches_.push_back(fresh);
        fresh->listen_to(*store_);
    }
    return std::make_unique<handle>(weak_from_this(), fresh);
}

void link::hint(std::shared_ptr<listener> const& to, interest what)
{
    if (pace_ == pace::at_once)
        return to->wake(what);
    if (is_cut_) // mend() looks at everything
        return;
    auto const told = [weak = std::weak_ptr(to), what] {
        if (auto const alive = weak.lock())
            alive->wake(what);
    };
    if (happens(faults_.loses_hint)) {
        if (!std::exchange(rechecks_, true))
            network_->send({[this] { recheck(); }, nullptr, no_lane, scheduler_.now() + recheck_interval});
        return;
    }
    if (happens(faults_.repeats))
        network_->send({told, nullptr, no_lane, in_seconds(5)});
    network_->send({told, nullptr, no_lane, happens(faults_.slow) ? in_seconds(4) : scheduler_.now()});
}

void link::recheck()
{
    rechecks_ = false;
    if (is_cut_ || is_dead_)
        return;
    for (auto const& each : std::vector(watches_.begin(), watches_.end()))
        each->wake_all();
}

}
