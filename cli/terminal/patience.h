// SPDX-License-Identifier: Apache-2.0
// Work on files that may not answer, such as those of a home directory behind a network, for which
// nobody shall wait long.
//
// Thread safety: for a process of one thread. Ownership: nothing.
#pragma once

#include <functional>

namespace cairn::cli {

enum class Done { kWell, kBadly, kNotInTime };

// Does the work in a process of its own, which can say nothing. `work` returns whether it went
// well. Where it is not done after two seconds, that process is killed, at any instant.
Done do_in_time(const std::function<bool()>& work);

}  // namespace cairn::cli
