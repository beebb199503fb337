// SPDX-License-Identifier: Apache-2.0
// Finds a directory that the log knows, wherever it is by now.
//
// Thread safety: system calls.
#pragma once

#include "service/durable_log/log_record.h"

namespace cairn::durable {

// Opens it where its path has it, or where its handle finds it. Returns the descriptor, or -errno:
// -ESTALE when it is gone for certain, -ENOENT when nobody here can say where it is.
int open_directory(const FileIdentity& identity);

}  // namespace cairn::durable
