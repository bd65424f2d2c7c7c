// Which loop a thread runs.
#pragma once

namespace belay::base {

class loop;

/// The loop that this thread runs, if it does: where the completion of something that it starts belongs.
inline thread_local loop* current_loop = nullptr;

}
