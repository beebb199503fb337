// SPDX-License-Identifier: Apache-2.0
// libaio's io_submit() and io_getevents(): a library of raw system calls, so its own names are
// hooked.
//
// A request on a buffered file is carried out at its submission (it is a copy in memory, or waits
// for the store as the caller's read would) and its event is kept until it is asked for. Others go
// on to the kernel.
#include <errno.h>
#include <linux/aio_abi.h>
#include <sys/uio.h>
#include <time.h>

#include "client/local_lock.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/file_io.h"
#include "frontends/common/hook.h"
#include "frontends/common/real_calls.h"

namespace cairn::real {
namespace {
constinit RealCall<int(void*, long, iocb**)> io_submit{"io_submit"};
constinit RealCall<int(void*, long, long, io_event*, timespec*)> io_getevents{"io_getevents"};
}  // namespace
}  // namespace cairn::real

namespace cairn {
namespace {

constexpr unsigned kEventsMax = 4096;

struct Finished {
  void* context;  // null = free
  io_event event;
};
// Events of all contexts that wait to be asked for. A full table sends the submitter away with
// EAGAIN.
constinit Finished finished[kEventsMax] = {};
constinit LocalLock finished_lock;
constinit std::atomic<unsigned> finished_count{0};

ssize_t carry_out(OpenFile& file, const iocb& request) {
  auto* buffer = reinterpret_cast<void*>(request.aio_buf);
  const auto offset = static_cast<off_t>(request.aio_offset);
  const auto count = static_cast<int>(request.aio_nbytes);
  switch (request.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
      return file_pread(file, buffer, request.aio_nbytes, offset);
    case IOCB_CMD_PWRITE:
      return file_pwrite(file, buffer, request.aio_nbytes, offset);
    case IOCB_CMD_PREADV:
      return file_readv(file, static_cast<const iovec*>(buffer), count, offset, 0);
    case IOCB_CMD_PWRITEV:
      return file_writev(file, static_cast<const iovec*>(buffer), count, offset, 0);
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC:
      return file_sync(file, true);
    default:
      return -EINVAL;
  }
}

bool keep_event(void* context, const iocb* request, ssize_t result) {
  LocalGuard guard(finished_lock);
  for (Finished& slot : finished) {
    if (slot.context != nullptr) continue;
    slot.context = context;
    slot.event = io_event{request->aio_data, reinterpret_cast<std::uint64_t>(request), result, 0};
    finished_count.fetch_add(1);
    return true;
  }
  return false;
}

long take_events(void* context, long wanted, io_event* events) {
  if (finished_count.load() == 0) return 0;
  LocalGuard guard(finished_lock);
  long taken = 0;
  for (Finished& slot : finished) {
    if (taken == wanted) break;
    if (slot.context != context) continue;
    events[taken++] = slot.event;
    slot.context = nullptr;
    finished_count.fetch_sub(1);
  }
  return taken;
}

}  // namespace
}  // namespace cairn

// libaio returns -errno and leaves errno alone.
CAIRN_HOOK(int, io_submit, (void* context, long count, iocb** requests)) {
  for (long at = 0; at < count; ++at) {
    iocb* request = requests[at];
    cairn::OpenFile* file = cairn::DescriptorTable::find(static_cast<int>(request->aio_fildes));
    if (file == nullptr) {
      const int submitted = cairn::real::io_submit(context, 1, &request);
      if (submitted < 1) return at > 0 ? static_cast<int>(at) : submitted;
      continue;
    }
    const bool has_room = cairn::finished_count.load() < cairn::kEventsMax / 2;
    if (!has_room) return at > 0 ? static_cast<int>(at) : -EAGAIN;
    cairn::keep_event(context, request, cairn::carry_out(*file, *request));
  }
  return static_cast<int>(count);
}

CAIRN_HOOK(int, io_getevents,
           (void* context, long least, long most, io_event* events, timespec* timeout)) {
  const long taken = cairn::take_events(context, most, events);
  if (taken >= least && taken > 0) return static_cast<int>(taken);
  const int more =
      cairn::real::io_getevents(context, least - taken, most - taken, events + taken, timeout);
  return more < 0 && taken > 0 ? static_cast<int>(taken) : more + static_cast<int>(taken);
}
