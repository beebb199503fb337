// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/kernel_aio.h"

#include <errno.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/check.h"
#include "base/ids.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/lent_descriptors.h"

namespace cairn {
namespace {

// Contexts that may have requests on lent files. Their names are addresses of pages, so the last
// bit is free to mark one that is being destroyed, whose name the kernel may already have given to
// another.
constexpr unsigned kContextsMax = 64;
constexpr aio_context_t kDying = 1;
static_assert((kPageBytes & kDying) == 0, "no address of a page has the bit");
constinit std::atomic<aio_context_t> contexts[kContextsMax] = {};
// One found no room, so the end of the last one cannot be seen any more.
constinit std::atomic<bool> has_overflowed{false};

std::atomic<aio_context_t>* find(aio_context_t context) {
  auto* end = std::end(contexts);
  auto* found = std::find_if(std::begin(contexts), end, [context](const auto& noted) {
    return noted.load(std::memory_order_acquire) == context;
  });
  return found == end ? nullptr : found;
}

void note(aio_context_t context) {
  if (__builtin_expect(find(context) != nullptr, 1)) return;
  LocalGuard guard(process_lock(ProcessLock::kAioContexts));
  if (std::atomic<aio_context_t>* free = find(0); free != nullptr) {
    free->store(context, std::memory_order_release);
  } else {
    has_overflowed.store(true, std::memory_order_relaxed);
  }
}

OpenFile* file_of(const iocb& request) {
  return DescriptorTable::find(static_cast<int>(request.aio_fildes));
}

// The kernel found no file at the number of a request, which it has read just now: is it one of
// ours that it could not know of? Then it can now.
bool lend_file_of(const iocb& request) {
  const auto fd = static_cast<int>(request.aio_fildes);
  OpenFile* file = file_of(request);
  return file != nullptr && is_placeholder(fd) && LentDescriptors::lend(fd, *file) == 0;
}

// At some numbers the kernel finds the file although it is buffered. A bad address ends the search:
// the kernel finds it too, and says so.
int lend_files_in_place(long count, iocb** requests) {
  for (long at = 0; at < count; ++at) {
    iocb* place = nullptr;
    iocb request;
    if (user_copy(&place, requests + at, sizeof(void*)) > 0 ||
        user_copy(&request, place, sizeof request) > 0) {
      return 0;
    }
    OpenFile* file = file_of(request);
    if (file == nullptr || PrivateDescriptors::is_private(file->private_fd())) continue;
    const int error = LentDescriptors::lend(static_cast<int>(request.aio_fildes), *file);
    if (error < 0) return error;
  }
  return 0;
}

}  // namespace

// Asks the kernel first: it looks at the requests with all its care for bad addresses and wrong
// arguments, and tells by EBADF that it has met a placeholder. Once the files are lent, that is
// the only system call.
long KernelAio::submit(aio_context_t context, long count, iocb** requests) {
  if (DescriptorTable::any()) {
    note(context);
    if (PrivateDescriptors::has_files_in_place()) {
      if (const int error = lend_files_in_place(count, requests); error < 0) return error;
    }
  }
  long done = 0;
  for (;;) {
    const long taken = sys::call(SYS_io_submit, static_cast<long>(context), count - done,
                                 sys::word(requests + done));
    if (taken == -EBADF && DescriptorTable::any() && lend_file_of(*requests[done])) continue;
    if (taken <= 0) return done > 0 ? done : taken;
    done += taken;
    CAIRN_DCHECK(done <= count);
    // The next call tells why it took no more.
    if (done == count || !DescriptorTable::any()) return done;
  }
}

long KernelAio::destroy(aio_context_t context) {
  std::atomic<aio_context_t>* noted = find(context);
  if (context == 0 || noted == nullptr)
    return sys::call(SYS_io_destroy, static_cast<long>(context));
  noted->store(context | kDying, std::memory_order_release);
  // Returns when the last request has ended.
  const long result = sys::call(SYS_io_destroy, static_cast<long>(context));
  LocalGuard guard(process_lock(ProcessLock::kAioContexts));
  noted->store(result < 0 ? context : 0, std::memory_order_release);
  const bool is_last = std::all_of(std::begin(contexts), std::end(contexts),
                                   [](const auto& other) { return other.load() == 0; });
  if (is_last && !has_overflowed.load(std::memory_order_relaxed)) LentDescriptors::take_back();
  return result;
}

void KernelAio::begin_process() {
  for (std::atomic<aio_context_t>& context : contexts) context.store(0);
  has_overflowed.store(false);
  LentDescriptors::leave_to_parent();
}

}  // namespace cairn
