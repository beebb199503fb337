// SPDX-License-Identifier: Apache-2.0
// Who an open file is to the durable log.
//
// Thread safety: system calls alone.
#pragma once

#include "service/durable_log/log_record.h"

namespace cairn::node {

// `key` is the file's on this node. What the kernel does not tell stays empty.
durable::FileIdentity identity_of(int fd, const ObjectKey& key, StoreName store);

}  // namespace cairn::node
