// SPDX-License-Identifier: Apache-2.0
// A forked child keeps the files in through mode that its parent keeps there.
//
// Thread safety: the child's only thread, which has attached.
#pragma once

#include "base/ids.h"

namespace cairn {

// The child's own hold in the place of its parent's. The parent may have let go since the fork, or
// be gone: blocks that came into the tiers meanwhile leave them before the child looks at the file.
HoldIndex inherit_through(ObjectIndex object);

}  // namespace cairn
