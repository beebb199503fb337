// SPDX-License-Identifier: Apache-2.0
// POSIX asynchronous I/O. A write to a buffered file is a copy in memory, done when the call
// returns, and so is a read of at most a block that the RAM tier has. Other reads have a thread
// (aio_threads.h). The result goes where libc keeps it, in the control block, and aio_error() and
// aio_return() need no hooks.
#include <aio.h>
#include <fcntl.h>

#include <algorithm>
#include <new>

#include "base/signal_gate.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/aio_threads.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(aiocb*)> aio_read{"aio_read64"};
constinit RealCall<int(aiocb*)> aio_write{"aio_write64"};
constinit RealCall<int(int, aiocb*)> aio_fsync{"aio_fsync64"};
constinit RealCall<int(int, aiocb* const*, int, sigevent*)> lio_listio{"lio_listio64"};
constinit RealCall<int(const aiocb* const*, int, const timespec*)> aio_suspend{"aio_suspend64"};
constinit RealCall<int(int, aiocb*)> aio_cancel{"aio_cancel64"};
}  // namespace
}  // namespace real

namespace {

ssize_t transfer(OpenFile& file, const aiocb* request, bool writes) {
  auto* buffer = const_cast<void*>(request->aio_buf);
  return writes ? file_pwrite(file, buffer, request->aio_nbytes, request->aio_offset)
                : file_pread(file, buffer, request->aio_nbytes, request->aio_offset);
}

// As libc refuses a request: the control block says why, and the call fails.
int refuse(aiocb* request, int error) {
  finish_aio(request, -error);
  return with_errno(-error);
}

// AIO_PRIO_DELTA_MAX of sysconf(3).
constexpr int kPriorityMax = 20;

bool has_priority(const aiocb* request) {
  return request->aio_reqprio >= 0 && request->aio_reqprio <= kPriorityMax;
}

int submit(OpenFile& file, aiocb* request, bool writes) {
  if (!has_priority(request)) return refuse(request, EINVAL);
  finish_aio(request, transfer(file, request, writes));
  notify_of_aio(&request->aio_sigevent);
  return 0;
}

// Whether the bytes are copied sooner than a thread begins. The answer may be out of date at once:
// then the read waits as read(2) does.
bool is_short_and_in_memory(const OpenFile& file, const aiocb* request) {
  const Actor* actor = Session::actor_at_hand();
  if (request->aio_nbytes > kBlockBytes || request->aio_offset < 0 || actor == nullptr)
    return request->aio_offset < 0;
  const NodeMemory& memory = *actor->memory;
  const auto begin = static_cast<std::uint64_t>(request->aio_offset);
  const std::uint64_t size = memory.objects().known(file.object).size.load();
  const std::uint64_t end = std::min(begin + request->aio_nbytes, size);
  for (std::uint64_t at = begin; at < end; at = (at / kBlockBytes + 1) * kBlockBytes) {
    const std::uint64_t block = at / kBlockBytes;
    const BucketIndex bucket =
        memory.directory().find(file.object, static_cast<BlockNumber>(block));
    if (bucket == BucketIndex::kNone || memory.bytes_if_in_memory(bucket) == nullptr) return false;
    const std::uint64_t past = std::min(end - block * kBlockBytes, kBlockBytes);
    const std::uint16_t needed = pages_touched(at - block * kBlockBytes, past);
    if ((memory.block(bucket).valid_pages() & needed) != needed) return false;
  }
  return true;
}

int submit_read(OpenFile& file, aiocb* request) {
  if (!has_priority(request)) return refuse(request, EINVAL);
  if (is_short_and_in_memory(file, request)) return submit(file, request, false);
  const SignalGateGuard gate;
  OpenFile* const held = hold_file(request->aio_fildes);
  if (held == nullptr) return real::aio_read(request);  // closed meanwhile, as libc will find
  if (read_in_thread(*held, request)) return 0;
  const int result = submit(*held, request, false);
  release_held(*held);
  return result;
}

OpenFile* file_of(const aiocb* request) {
  return request == nullptr ? nullptr : DescriptorTable::find(request->aio_fildes);
}

// Does ours and leaves the rest in `others`. Returns whether one of ours failed.
bool submit_ours(aiocb* const* list, int count, aiocb** others, int* other_count) {
  bool has_failed = false;
  for (int index = 0; index < count; ++index) {
    OpenFile* file = file_of(list[index]);
    if (file == nullptr) {
      if (list[index] != nullptr) others[(*other_count)++] = list[index];
      continue;
    }
    const int opcode = list[index]->aio_lio_opcode;
    if (opcode == LIO_NOP) continue;
    if (opcode != LIO_READ && opcode != LIO_WRITE)
      finish_aio(list[index], -EINVAL);
    else
      submit(*file, list[index], opcode == LIO_WRITE);
    has_failed = has_failed || list[index]->__error_code != 0;
  }
  return has_failed;
}

bool has_ours(aiocb* const* list, int count) {
  for (int index = 0; index < count; ++index) {
    if (file_of(list[index]) != nullptr) return true;
  }
  return false;
}

bool has_any_under_way(const aiocb* const* list, int count) {
  for (int index = 0; index < count; ++index) {
    if (list[index] != nullptr && is_under_way(list[index])) return true;
  }
  return false;
}

}  // namespace
}  // namespace cairn

using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(int, aio_read, (aiocb * request)) {
  OpenFile* file = cairn::file_of(request);
  return file == nullptr ? cairn::real::aio_read(request) : cairn::submit_read(*file, request);
}
CAIRN_TWIN(aio_read, aio_read64);

CAIRN_HOOK(int, aio_write, (aiocb * request)) {
  OpenFile* file = cairn::file_of(request);
  return file == nullptr ? cairn::real::aio_write(request) : cairn::submit(*file, request, true);
}
CAIRN_TWIN(aio_write, aio_write64);

CAIRN_HOOK(int, aio_suspend, (const aiocb* const* list, int count, const timespec* limit)) {
  if (!cairn::are_any_under_way() || !cairn::has_any_under_way(list, count))
    return cairn::real::aio_suspend(list, count, limit);
  return with_errno(cairn::wait_for_aio(list, count, limit));
}
CAIRN_TWIN(aio_suspend, aio_suspend64);

CAIRN_HOOK(int, aio_cancel, (int fd, aiocb* request)) {
  // A number that is not open, or not the request's, is libc's to refuse.
  const bool is_here =
      cairn::are_any_under_way() && cairn::sys::fcntl(fd, F_GETFD) >= 0 &&
      (request != nullptr ? request->aio_fildes == fd && cairn::is_under_way(request)
                          : cairn::is_under_way(fd));
  return is_here ? AIO_NOTCANCELED : cairn::real::aio_cancel(fd, request);
}
CAIRN_TWIN(aio_cancel, aio_cancel64);

CAIRN_HOOK(int, aio_fsync, (int operation, aiocb* request)) {
  OpenFile* file = cairn::file_of(request);
  if (file == nullptr) return cairn::real::aio_fsync(operation, request);
  if (operation != O_SYNC && operation != O_DSYNC) return with_errno(-EINVAL);
  cairn::finish_aio(request, cairn::file_sync(*file, true));
  cairn::notify_of_aio(&request->aio_sigevent);
  return 0;
}
CAIRN_TWIN(aio_fsync, aio_fsync64);

CAIRN_HOOK(int, lio_listio, (int mode, aiocb* const* list, int count, sigevent* event)) {
  if (count <= 0 || (mode != LIO_WAIT && mode != LIO_NOWAIT) || !cairn::has_ours(list, count))
    return cairn::real::lio_listio(mode, list, count, event);
  constexpr int kFewMax = 1024;
  aiocb* few[kFewMax];
  aiocb** const many = count > kFewMax ? new (std::nothrow) aiocb*[count] : nullptr;
  if (count > kFewMax && many == nullptr) return with_errno(-EAGAIN);
  aiocb** const others = many != nullptr ? many : few;
  int other_count = 0;
  const bool has_failed = cairn::submit_ours(list, count, others, &other_count);
  int result = 0;
  if (other_count > 0) {
    result = cairn::real::lio_listio(mode, others, other_count, event);
  } else if (mode == LIO_NOWAIT) {
    cairn::notify_of_aio(event);
  }
  delete[] many;
  if (result == 0 && has_failed && mode == LIO_WAIT) return with_errno(-EIO);
  return result;
}
CAIRN_TWIN(lio_listio, lio_listio64);
