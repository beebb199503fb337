// SPDX-License-Identifier: Apache-2.0
// FICLONE, FICLONERANGE and FIDEDUPERANGE between files of which any may be buffered.
//
// A file system that cannot share extents says so before anything is stored: programs try it on
// every copy that they make.
//
// All return the request's result or -errno. Thread safety: any thread.
#pragma once

#include <linux/fs.h>

namespace cairn {

int clone_file(int to_fd, int from_fd);
int clone_range(int to_fd, const file_clone_range& range);
int deduplicate(int fd, file_dedupe_range* request);

}  // namespace cairn
