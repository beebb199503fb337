// SPDX-License-Identifier: Apache-2.0
// POSIX asynchronous I/O: on a buffered file a request is a copy in memory, so it is done when the
// call returns. The result goes where libc keeps it, in the control block, and aio_error(),
// aio_return(), aio_suspend() and aio_cancel() need no hooks.
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <new>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(aiocb*)> aio_read{"aio_read64"};
constinit RealCall<int(aiocb*)> aio_write{"aio_write64"};
constinit RealCall<int(int, aiocb*)> aio_fsync{"aio_fsync64"};
constinit RealCall<int(int, aiocb* const*, int, sigevent*)> lio_listio{"lio_listio64"};
}  // namespace
}  // namespace real

namespace {

struct Notice {
  void (*function)(sigval);
  sigval value;
};

void* run_notice(void* argument) {
  auto* notice = static_cast<Notice*>(argument);
  const Notice copy = *notice;
  delete notice;
  copy.function(copy.value);
  return nullptr;
}

void notify(const sigevent* event) {
  if (event == nullptr) return;
  if (event->sigev_notify == SIGEV_SIGNAL) {
    siginfo_t info{};
    info.si_signo = event->sigev_signo;
    info.si_code = SI_ASYNCIO;
    info.si_pid = sys::getpid();
    info.si_uid = getuid();
    info.si_value = event->sigev_value;
    sys::call(SYS_rt_sigqueueinfo, sys::getpid(), event->sigev_signo, sys::word(&info));
  } else if (event->sigev_notify == SIGEV_THREAD && event->sigev_notify_function != nullptr) {
    auto* notice = new (std::nothrow) Notice{event->sigev_notify_function, event->sigev_value};
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (notice != nullptr && pthread_create(&thread, &attributes, run_notice, notice) != 0)
      delete notice;
    pthread_attr_destroy(&attributes);
  }
}

void finish(aiocb* request, ssize_t result) {
  request->__return_value = result < 0 ? -1 : result;
  request->__error_code = result < 0 ? static_cast<int>(-result) : 0;
}

ssize_t transfer(OpenFile& file, const aiocb* request, bool writes) {
  auto* buffer = const_cast<void*>(request->aio_buf);
  return writes ? file_pwrite(file, buffer, request->aio_nbytes, request->aio_offset)
                : file_pread(file, buffer, request->aio_nbytes, request->aio_offset);
}

// As libc refuses a request: the control block says why, and the call fails.
int refuse(aiocb* request, int error) {
  finish(request, -error);
  return with_errno(-error);
}

int submit(OpenFile& file, aiocb* request, bool writes) {
  // AIO_PRIO_DELTA_MAX of sysconf(3).
  constexpr int kPriorityMax = 20;
  if (request->aio_reqprio < 0 || request->aio_reqprio > kPriorityMax)
    return refuse(request, EINVAL);
  finish(request, transfer(file, request, writes));
  notify(&request->aio_sigevent);
  return 0;
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
    if (list[index]->aio_lio_opcode == LIO_NOP) continue;
    submit(*file, list[index], list[index]->aio_lio_opcode == LIO_WRITE);
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

}  // namespace
}  // namespace cairn

using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(int, aio_read, (aiocb * request)) {
  OpenFile* file = cairn::file_of(request);
  return file == nullptr ? cairn::real::aio_read(request) : cairn::submit(*file, request, false);
}
CAIRN_TWIN(aio_read, aio_read64);

CAIRN_HOOK(int, aio_write, (aiocb * request)) {
  OpenFile* file = cairn::file_of(request);
  return file == nullptr ? cairn::real::aio_write(request) : cairn::submit(*file, request, true);
}
CAIRN_TWIN(aio_write, aio_write64);

CAIRN_HOOK(int, aio_fsync, (int operation, aiocb* request)) {
  OpenFile* file = cairn::file_of(request);
  if (file == nullptr) return cairn::real::aio_fsync(operation, request);
  if (operation != O_SYNC && operation != O_DSYNC) return with_errno(-EINVAL);
  cairn::finish(request, cairn::file_sync(*file, true));
  cairn::notify(&request->aio_sigevent);
  return 0;
}
CAIRN_TWIN(aio_fsync, aio_fsync64);

CAIRN_HOOK(int, lio_listio, (int mode, aiocb* const* list, int count, sigevent* event)) {
  constexpr int kListMax = 1024;
  if (count <= 0 || count > kListMax || (mode != LIO_WAIT && mode != LIO_NOWAIT) ||
      !cairn::has_ours(list, count)) {
    return cairn::real::lio_listio(mode, list, count, event);
  }
  aiocb* others[kListMax];
  int other_count = 0;
  const bool has_failed = cairn::submit_ours(list, count, others, &other_count);
  int result = 0;
  if (other_count > 0) {
    result = cairn::real::lio_listio(mode, others, other_count, event);
  } else if (mode == LIO_NOWAIT) {
    cairn::notify(event);
  }
  if (result == 0 && has_failed && mode == LIO_WAIT) return with_errno(-EIO);
  return result;
}
CAIRN_TWIN(lio_listio, lio_listio64);
