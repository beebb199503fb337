// SPDX-License-Identifier: Apache-2.0
// Voids what a log has of files that were stored without it, and are newer there: recovery would
// put old bytes over them.
//
// Thread safety: as a recovery (service/replay/recovery.h). Ownership: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "service/durable_log/log_record.h"

namespace cairn::durable {

using IsStored = std::function<bool(const FileIdentity&)>;

// Names go as well, unless an earlier start of the machine has left them, or they mean files that
// were not stored. Returns: the number of files and directories that still have records in the log,
// of any node. Errors: as recover().
Result<std::uint64_t> forget_stored(const std::string& tier_directory, const IsStored& is_stored);

}  // namespace cairn::durable
