// SPDX-License-Identifier: Apache-2.0
// libaio's functions that name files or end a context. The library is one of raw system calls, so
// its own names are hooked; its other functions work on the kernel's ring, which has everything.
//
// libaio returns -errno and leaves errno alone.
#include "frontends/files/kernel_aio.h"
#include "frontends/libc/hook.h"

CAIRN_HOOK(int, io_submit, (aio_context_t context, long count, iocb** requests)) {
  return static_cast<int>(cairn::KernelAio::submit(context, count, requests));
}

CAIRN_HOOK(int, io_destroy, (aio_context_t context)) {
  return static_cast<int>(cairn::KernelAio::destroy(context));
}

CAIRN_HOOK(int, io_queue_release, (aio_context_t context)) {
  return static_cast<int>(cairn::KernelAio::destroy(context));
}
