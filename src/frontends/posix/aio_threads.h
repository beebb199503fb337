// SPDX-License-Identifier: Apache-2.0
// Reads of POSIX's asynchronous I/O that a program need not wait for: each has a thread of its own
// (aio(7): libc's have, too), which fetches and copies while the program computes.
//
// Such a request is unknown to libc. Its result goes where libc keeps it, in the control block, so
// aio_error() and aio_return() need no hooks; what waits for a request or ends it does.
//
// Thread safety: any thread; are_any_under_way(), is_under_way() and wait_for_aio() in a signal
// handler, too.
#pragma once

#include <aio.h>
#include <time.h>

#include "frontends/descriptors/open_file.h"

namespace cairn {

// The result of a request, -errno for a failure. The program may use the control block for another
// request from then on.
void finish_aio(aiocb* request, ssize_t result);
// As the request has asked for.
void notify_of_aio(const sigevent* event);

// Begins a read of a buffered file on which the caller has counted (hold_file()); the count is the
// read's then. False where no thread is to be had, or the file has no number of its
// own to be read by: then nothing has begun.
bool read_in_thread(OpenFile& file, aiocb* request);

// In the child of a fork, which has none of its parent's threads.
void begin_child_without_aio();

bool are_any_under_way();
bool is_under_way(const aiocb* request);
// Any request of that descriptor.
bool is_under_way(int fd);

// aio_suspend(3) for a list with requests that are under way here, and maybe some of libc's.
// Returns: 0, or -errno.
int wait_for_aio(const aiocb* const* list, int count, const timespec* limit);

}  // namespace cairn
