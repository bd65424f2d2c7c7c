// Whether what was sent has arrived is known some time after it was sent. Who sends something gets a receipt, and is
// told once, on the loop that it was sent on, that it has arrived; or never, if the connection is lost before.
#pragma once

namespace belay::base {

class receipt {
public:
    virtual ~receipt() = default;
    /// Looks now instead of later, and tells if it has arrived. On the loop that it was sent on.
    virtual void ask() = 0;
};

}
