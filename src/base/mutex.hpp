// A mutex whose rules the compiler knows. A member says which mutex guards it (BELAY_GUARDED_BY), a function which one
// its caller holds (BELAY_REQUIRES); clang refuses to compile a use without the lock. To g++ these are no more than
// std::mutex and its lock.
//
// The check goes function by function and takes a lambda for one of its own: wait in a loop, not with a predicate.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define BELAY_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define BELAY_THREAD_SAFETY(attribute)
#endif

#define BELAY_GUARDED_BY(mutex) BELAY_THREAD_SAFETY(guarded_by(mutex))
#define BELAY_REQUIRES(mutex) BELAY_THREAD_SAFETY(requires_capability(mutex))

namespace belay::base {

class BELAY_THREAD_SAFETY(capability("mutex")) mutex {
public:
    mutex() = default;
    mutex(mutex const&) = delete;
    mutex& operator=(mutex const&) = delete;

    void lock() BELAY_THREAD_SAFETY(acquire_capability()) { inner_.lock(); }
    void unlock() BELAY_THREAD_SAFETY(release_capability()) { inner_.unlock(); }

    /// For what the standard library does with one.
    [[nodiscard]] std::mutex& standard() noexcept { return inner_; }

private:
    std::mutex inner_;
};

/// Holds a mutex while it lives, except from unlock() to relock().
class BELAY_THREAD_SAFETY(scoped_lockable) lock {
public:
    explicit lock(mutex& of) BELAY_THREAD_SAFETY(acquire_capability(of)) : inner_(of.standard()) {}
    lock(lock const&) = delete;
    lock& operator=(lock const&) = delete;
    ~lock() BELAY_THREAD_SAFETY(release_capability()) {}

    void unlock() BELAY_THREAD_SAFETY(release_capability()) { inner_.unlock(); }
    void relock() BELAY_THREAD_SAFETY(acquire_capability()) { inner_.lock(); }

    /// Until the condition is notified, or for no reason at all.
    void wait(std::condition_variable& on) { on.wait(inner_); }
    /// False if it took longer than that.
    template<class Clock, class Duration>
    bool wait_until(std::condition_variable& on, std::chrono::time_point<Clock, Duration> const& end)
    {
        return on.wait_until(inner_, end) == std::cv_status::no_timeout;
    }

private:
    std::unique_lock<std::mutex> inner_;
};

}
