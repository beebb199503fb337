// SPDX-License-Identifier: Apache-2.0
// A look at what a name of a directory means.
//
// Thread safety: system calls.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "service/durable_log/name_change.h"

namespace cairn::durable {

struct FileLook {
  NamedFile file;
  struct ::statx status{};

  bool is_regular() const { return S_ISREG(status.stx_mode); }
};

// Returns 0 or errno; ENOENT: the name means nothing. A symbolic link is not followed.
int look_at(int directory, const std::string& name, FileLook* look);

}  // namespace cairn::durable
