// SPDX-License-Identifier: Apache-2.0
// The kernel's asynchronous I/O (io_submit(2)) on buffered files: it stays the kernel's from the
// request to the event, in the kernel's own ring, so that a thread that waits for the event, by any
// call or eventfd, finds it. The files of the requests are lent to the kernel
// (lent_descriptors.h) until no context is left that has had requests of this process.
//
// All functions return a result or -errno.
//
// Thread safety: any thread.
#pragma once

#include <linux/aio_abi.h>

namespace cairn {

class KernelAio {
 public:
  static long submit(aio_context_t context, long count, iocb** requests);
  static long destroy(aio_context_t context);
  // A forked child has none of its parent's contexts.
  static void begin_process();
};

}  // namespace cairn
