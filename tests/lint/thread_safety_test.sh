#!/usr/bin/env bash
# Proves that clang refuses what base/mutex.hpp says is guarded, where the lock is missing, and only there.
#
#   thread_safety_test.sh COMPILER OPTIONS…
set -euo pipefail

compile() {
    "$@" -Wthread-safety -Werror -fsyntax-only -x c++ - 2>&1 <<CODE
#include "base/mutex.hpp"
class counter {
public:
    void add() { $with_lock add_one(); }
    int now() { $with_lock return count_; }
private:
    void add_one() BELAY_REQUIRES(mutex_) { ++count_; }
    belay::base::mutex mutex_;
    int count_ BELAY_GUARDED_BY(mutex_) = 0;
};
CODE
}

with_lock='belay::base::lock const lock(mutex_);'
compile "$@" || { echo "with the lock it must compile"; exit 1; }
with_lock=
if said=$(compile "$@"); then
    echo "without the lock it must not compile"
    exit 1
fi
for complaint in "calling function 'add_one' requires holding mutex 'mutex_'" "reading variable 'count_' requires holding mutex 'mutex_'"; do
    grep -qF "$complaint" <<<"$said" || { printf 'not said: %s\n%s\n' "$complaint" "$said"; exit 1; }
done
