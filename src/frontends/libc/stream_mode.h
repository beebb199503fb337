// SPDX-License-Identifier: Apache-2.0
// fopen's mode string as open's flags.
//
// Thread safety: values.
#pragma once

namespace cairn {

struct StreamMode {
  bool is_valid = false;
  int flags = 0;                // for open(2)
  bool is_append_only = false;  // "a" without "+": libc seeks to the end at once
  // The same mode for a stream over an existing descriptor: without what concerns the opening.
  char for_descriptor[64] = {};
};

// Reads `mode` as glibc does: the first letter, then + x e m c b in any order, up to a comma.
StreamMode parse_stream_mode(const char* mode);

}  // namespace cairn
