// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/aio_threads.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/system_call.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/cancellation.h"

namespace cairn {
namespace {

// As many as libc has threads by default (aio_init(3)).
constexpr int kReadsMax = 20;
constexpr std::size_t kStackBytes = std::size_t{1} << 20;

// A read that is under way. The file stays open until it is done, whatever the program closes.
struct AioRead {
  std::atomic<aiocb*> request;
  std::atomic<int> fd;
  std::atomic<OpenFile*> file;
};
constinit AioRead reads[kReadsMax] = {};
constinit std::atomic<int> read_count{0};
// How many have ended: what waits for one sleeps on it.
constinit std::atomic<std::uint32_t> ended{0};

struct Notice {
  void (*function)(sigval);
  sigval value;
};

// As libc's notices: with no signal blocked, whatever the thread that has made this one blocks.
void* run_notice(void* argument) {
  auto* notice = static_cast<Notice*>(argument);
  const Notice copy = *notice;
  delete notice;
  const std::uint64_t none = 0;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, sys::word(&none), 0, sizeof none);
  copy.function(copy.value);
  return nullptr;
}

// With the attributes that the program gives, or detached.
bool start_notice(Notice* notice, const pthread_attr_t* wished) {
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error =
      pthread_create(&thread, wished != nullptr ? wished : &detached, run_notice, notice);
  pthread_attr_destroy(&detached);
  return error == 0;
}

// Runs none of the program's code, and handles no signals of the program's.
bool start_reader(void* (*run)(void*), AioRead* read) {
  sigset_t blocked;
  sigfillset(&blocked);
  // What a buffer that is not there raises, and the guard of copies handles. Any other one the
  // program may be waiting for, with all of its threads blocking it.
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&blocked, fault);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setsigmask_np(&attributes, &blocked);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, run, read);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

// The place takes the caller's count of the file.
AioRead* take_place(OpenFile& file, aiocb* request) {
  for (AioRead& read : reads) {
    aiocb* none = nullptr;
    if (!read.request.compare_exchange_strong(none, request)) continue;
    read.fd.store(request->aio_fildes);
    read.file.store(&file);
    read_count.fetch_add(1);
    return &read;
  }
  return nullptr;
}

void give_back_file(AioRead& read) {
  // A child that is made from here on has not got it in the table.
  release_held(*read.file.exchange(nullptr));
}

void leave_place(AioRead& read) {
  read.fd.store(-1);
  read.request.store(nullptr);
  read_count.fetch_sub(1);
}

void* run_read(void* argument) {
  AioRead& read = *static_cast<AioRead*>(argument);
  aiocb* const request = read.request.load();
  CAIRN_CHECK(request != nullptr);
  const sigevent event = request->aio_sigevent;
  auto* buffer = const_cast<void*>(request->aio_buf);
  OpenFile& file = *read.file.load();
  const ssize_t result = file_pread(file, buffer, request->aio_nbytes, request->aio_offset);
  // First: a program that closes the file after the read hears what its close has to tell.
  give_back_file(read);
  finish_aio(request, result);
  leave_place(read);
  ended.fetch_add(1);
  futex_wake(ended);
  notify_of_aio(&event);
  return nullptr;
}

bool has_ended(const aiocb* request) {
  return __atomic_load_n(&request->__error_code, __ATOMIC_ACQUIRE) != EINPROGRESS;
}

}  // namespace

void finish_aio(aiocb* request, ssize_t result) {
  request->__return_value = result < 0 ? -1 : result;
  const int error = result < 0 ? static_cast<int>(-result) : 0;
  __atomic_store_n(&request->__error_code, error, __ATOMIC_RELEASE);
}

void notify_of_aio(const sigevent* event) {
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
    if (notice != nullptr && !start_notice(notice, event->sigev_notify_attributes)) delete notice;
  }
}

bool read_in_thread(OpenFile& file, aiocb* request) {
  // The program's own number may be another file's before the read has ended.
  if (!PrivateDescriptors::is_private(file.private_fd())) return false;
  AioRead* const read = take_place(file, request);
  if (read == nullptr) return false;
  __atomic_store_n(&request->__error_code, EINPROGRESS, __ATOMIC_RELAXED);
  if (start_reader(run_read, read)) return true;
  read->file.store(nullptr);
  leave_place(*read);
  return false;
}

void begin_child_without_aio() {
  for (AioRead& read : reads) {
    read.file.store(nullptr);
    read.request.store(nullptr);
  }
  read_count.store(0);
}

bool are_any_under_way() { return read_count.load() != 0; }

bool is_under_way(const aiocb* request) {
  return std::any_of(std::begin(reads), std::end(reads),
                     [=](const AioRead& read) { return read.request.load() == request; });
}

bool is_under_way(int fd) {
  return std::any_of(std::begin(reads), std::end(reads), [=](const AioRead& read) {
    return read.request.load() != nullptr && read.fd.load() == fd;
  });
}

int wait_for_aio(const aiocb* const* list, int count, const timespec* limit) {
  // Nobody wakes this thread for one of libc's requests.
  constexpr int kLookMs = 1;
  constexpr int kLongMs = 1000;
  // Longer than a clock of nanoseconds counts.
  constexpr std::int64_t kForeverSeconds = INT64_MAX / 4'000'000'000;
  const bool is_forever = limit == nullptr || limit->tv_sec > kForeverSeconds;
  const std::int64_t until_ns = is_forever ? INT64_MAX : monotonic_ns() + to_nanos(*limit);
  for (;;) {
    cancellation_point();
    const std::uint32_t before = ended.load();
    bool are_all_here = true;
    for (int index = 0; index < count; ++index) {
      if (list[index] == nullptr) continue;
      if (has_ended(list[index])) return 0;
      are_all_here = are_all_here && is_under_way(list[index]);
    }
    const std::int64_t left_ns = until_ns - monotonic_ns();
    if (left_ns <= 0) return -EAGAIN;
    const auto left_ms = static_cast<int>(std::min<std::int64_t>(left_ns / 1'000'000 + 1, kLongMs));
    const timespec pause =
        to_timespec(std::int64_t{are_all_here ? left_ms : std::min(left_ms, kLookMs)} * 1'000'000);
    const long result = sys::call(SYS_futex, sys::word(&ended), FUTEX_WAIT,
                                  static_cast<long>(before), sys::word(&pause));
    if (result == -EINTR) return -EINTR;
  }
}

}  // namespace cairn
