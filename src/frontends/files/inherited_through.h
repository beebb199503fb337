// SPDX-License-Identifier: Apache-2.0
// What keeps a file in through mode for a process does so for its forked child as well.
//
// Thread safety: the child's only thread, which has attached.
#pragma once

#include "base/ids.h"

namespace cairn {

// The child's own hold in the place of its parent's, who may have let go since the fork, or be
// gone: what has come into the tiers meanwhile leaves them before the child looks at the file.
HoldIndex inherit_through(ObjectIndex object);

}  // namespace cairn
