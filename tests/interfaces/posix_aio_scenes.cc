// SPDX-License-Identifier: Apache-2.0
// aio_read() and its relatives, which libc makes of threads.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "scene.h"

using namespace scene;

namespace {

aiocb request_of(int fd, void* buffer, std::size_t length, off_t offset) {
  aiocb request{};
  request.aio_fildes = fd;
  request.aio_buf = buffer;
  request.aio_nbytes = length;
  request.aio_offset = offset;
  return request;
}

void wait_for(aiocb* request) {
  const aiocb* list[] = {request};
  const timespec limit{5, 0};
  while (aio_error(request) == EINPROGRESS) aio_suspend(list, 1, &limit);
}

// Waits for the request and says how it ended.
void say_end(const char* what, aiocb* request) {
  wait_for(request);
  say_raw(what, -aio_error(request));
  errno = aio_error(request);
  say("returned", aio_return(request));
}

}  // namespace

SCENE(reads_and_writes) {
  const int fd = make_file("f", "0123456789");
  char bytes[] = "ABCD";
  aiocb request = request_of(fd, bytes, 4, 2);
  say("aio_write", aio_write(&request));
  say_end("write", &request);
  char back[10] = {};
  request = request_of(fd, back, sizeof back, 0);
  say("aio_read", aio_read(&request));
  say_end("read", &request);
  say_bytes("back", back, sizeof back);
  request = request_of(fd, back, sizeof back, 10);
  say("aio_read at the end", aio_read(&request));
  say_end("read", &request);
  request = request_of(fd, nullptr, 0, 0);
  say("aio_fsync", aio_fsync(O_SYNC, &request));
  say_end("sync", &request);
  say("aio_cancel", aio_cancel(fd, nullptr));
}

SCENE(appends) {
  const int fd = make_file("f", "0123", O_WRONLY | O_APPEND);
  char bytes[] = "ABCD";
  aiocb request = request_of(fd, bytes, 4, 0);
  say("aio_write", aio_write(&request));
  say_end("write", &request);
  say_file("f");
}

SCENE(wrong_arguments) {
  const int reader = make_file("f", "0123456789", O_RDONLY);
  const int writer = open_file("f", O_WRONLY);
  char bytes[] = "ABCD";
  aiocb request = request_of(reader, bytes, 4, 0);
  say("write of a reader", aio_write(&request));
  say_end("write", &request);
  request = request_of(writer, bytes, 4, 0);
  say("read of a writer", aio_read(&request));
  say_end("read", &request);
  request = request_of(writer, bytes, 4, -1);
  say("negative offset", aio_write(&request));
  say_end("write", &request);
  request = request_of(writer, bytes, 4, 0);
  request.aio_reqprio = -1;
  say("negative priority", aio_write(&request));
  say_end("write", &request);
  request.aio_reqprio = 0;
  say("sync of no kind", aio_fsync(O_RDWR, &request));
  request = request_of(reader, nullptr, 0, 0);
  say("sync of a reader", aio_fsync(O_SYNC, &request));
  say_end("sync", &request);
}

namespace {
sem_t noticed;
int noticed_value = 0;
void notice(sigval value) {
  noticed_value = value.sival_int;
  sem_post(&noticed);
}
}  // namespace

SCENE(notices) {
  const int fd = make_file("f", "0123456789");
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGUSR1);
  sigprocmask(SIG_BLOCK, &waited, nullptr);
  char back[4] = {};
  aiocb request = request_of(fd, back, sizeof back, 0);
  request.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  request.aio_sigevent.sigev_signo = SIGUSR1;
  request.aio_sigevent.sigev_value.sival_int = 7;
  say("aio_read", aio_read(&request));
  siginfo_t told;
  say("signal", sigwaitinfo(&waited, &told));
  say("code", told.si_code);
  say("value", told.si_value.sival_int);
  say_end("read", &request);
  sem_init(&noticed, 0, 0);
  request = request_of(fd, back, sizeof back, 0);
  request.aio_sigevent.sigev_notify = SIGEV_THREAD;
  request.aio_sigevent.sigev_notify_function = notice;
  request.aio_sigevent.sigev_value.sival_int = 9;
  say("aio_read", aio_read(&request));
  sem_wait(&noticed);
  say("thread told of", noticed_value);
  say_end("read", &request);
}

namespace {
// Large enough that a read of it is not done before the program looks.
constexpr std::size_t kLargeBytes = std::size_t{24} << 20;

std::vector<char> large_content() {
  std::vector<char> cells(kLargeBytes);
  for (std::size_t at = 0; at < kLargeBytes; ++at) cells[at] = static_cast<char>(at * 31 >> 9);
  return cells;
}

int make_large_file(const std::vector<char>& cells) {
  const int fd = make_file("f", "");
  say("write", write(fd, cells.data(), cells.size()));
  return fd;
}
}  // namespace

SCENE(reads_overlap) {
  constexpr std::size_t kBytes = kLargeBytes;
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  std::vector<char> first(kBytes);
  std::vector<char> second(kBytes);
  aiocb one = request_of(fd, first.data(), kBytes, 0);
  aiocb other = request_of(fd, second.data(), kBytes, 4097);
  say("aio_read", aio_read(&one));
  say("aio_read", aio_read(&other));
  const aiocb* list[] = {&one, nullptr, &other};
  const timespec no_time{0, 1};
  say("aio_suspend", aio_suspend(list, 3, nullptr));
  say("one has ended", aio_error(&one) == 0 || aio_error(&other) == 0);
  say_end("one", &one);
  say_end("other", &other);
  say("one is right", first == cells);
  say("other is right", std::equal(cells.begin() + 4097, cells.end(), second.begin()));
  // Another process may take the processor away between the calls, but not always.
  bool is_seen_under_way = false;
  for (int round = 0; round < 50 && !is_seen_under_way; ++round) {
    one = request_of(fd, first.data(), kBytes, 0);
    if (aio_read(&one) != 0) break;
    is_seen_under_way = aio_error(&one) == EINPROGRESS;
    wait_for(&one);
  }
  say("under way while the program goes on", is_seen_under_way);
  // Beside one of libc's own.
  int ends[2];
  if (pipe(ends) != 0) return;
  char letters[4] = {};
  aiocb piped = request_of(ends[0], letters, 4, 0);
  one = request_of(fd, first.data(), kBytes, 0);
  say("aio_read of a pipe", aio_read(&piped));
  say("aio_read", aio_read(&one));
  const aiocb* both[] = {&one, &piped};
  say("aio_suspend", aio_suspend(both, 2, nullptr));
  say_end("one", &one);
  const aiocb* last[] = {&piped};
  say("nothing in the pipe", aio_suspend(last, 1, &no_time));
  say("write", write(ends[1], "ABCD", 4));
  say_end("piped", &piped);
}

// libc's own requests make a child of that moment wait without end: it reads as one does.
SCENE(a_child_of_that_moment) {
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  std::vector<char> first(kLargeBytes);
  aiocb one = request_of(fd, first.data(), kLargeBytes, 0);
  say("aio_read", aio_read(&one));
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char> second(kLargeBytes);
    const bool is_whole = pread(fd, second.data(), kLargeBytes, 0) == ssize_t{kLargeBytes};
    _exit(is_whole && second == cells ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  say_raw("child", status);
  say_end("one", &one);
  say("one is right", first == cells);
  close(fd);
}

SCENE(buffers_that_are_not_there) {
  const int fd = make_large_file(large_content());
  constexpr std::size_t kHalf = std::size_t{1} << 20;
  void* const memory =
      mmap(nullptr, 2 * kHalf, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<char*>(memory) + kHalf, kHalf, PROT_NONE);
  for (void* const buffer : {static_cast<void*>(nullptr), memory,
                             static_cast<void*>(static_cast<char*>(memory) + kHalf)}) {
    aiocb one = request_of(fd, buffer, 2 * kHalf, 0);
    say("aio_read", aio_read(&one));
    say_end("read", &one);
  }
  mprotect(memory, 2 * kHalf, PROT_READ);
  aiocb one = request_of(fd, memory, kHalf, 0);
  say("aio_read", aio_read(&one));
  say_end("read", &one);
}

SCENE(offsets_at_the_end_of_all) {
  const int fd = make_file("f", "0123456789");
  char back[64];
  for (const off_t before : {0, 63, 64, 65}) {
    const off_t offset = std::numeric_limits<off_t>::max() - before;
    say("pread", pread(fd, back, sizeof back, offset));
    const iovec part{back, sizeof back};
    say("preadv", preadv(fd, &part, 1, offset));
    aiocb one = request_of(fd, back, sizeof back, offset);
    say("aio_read", aio_read(&one));
    say_end("read", &one);
  }
}

SCENE(locks_survive_a_read_of_a_closed_number) {
  const int fd = make_large_file(large_content());
  std::vector<char> back(kLargeBytes);
  aiocb one = request_of(fd, back.data(), kLargeBytes, 0);
  say("aio_read", aio_read(&one));
  close(fd);
  const int again = open_file("f", O_RDWR);
  struct flock lock{};
  lock.l_type = F_WRLCK;
  say("lock", fcntl(again, F_SETLK, &lock));
  wait_for(&one);
  // The thread that has read may still be at its end.
  usleep(100'000);
  const pid_t child = fork();
  if (child == 0) {
    fcntl(again, F_GETLK, &lock);
    _exit(lock.l_type == F_WRLCK ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  say_raw("not locked", status);
}

// All threads of the program block a signal that it waits for: the reading one must not get it.
SCENE(signals_of_the_program_are_left_to_it) {
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  std::vector<char> back(cells.size());
  for (const int number : {SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGUSR1}) {
    sigset_t waited;
    sigemptyset(&waited);
    sigaddset(&waited, number);
    sigprocmask(SIG_BLOCK, &waited, nullptr);
    aiocb request = request_of(fd, back.data(), back.size(), 0);
    const int begun = aio_read(&request);
    kill(getpid(), number);
    say("aio_read", begun);
    int got = 0;
    say("sigwait", sigwait(&waited, &got));
    say("got", got == number);
    say_end("read", &request);
  }
}

// A descriptor that another thread closes: whatever the read gets, opens and closes go on.
SCENE(closes_meanwhile) {
  const std::vector<char> cells = large_content();
  close(make_large_file(cells));
  std::atomic<int> shown{-1};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::vector<char> part(std::size_t{2} << 20);
      while (!is_over.load()) {
        const int fd = shown.load();
        if (fd < 0) continue;
        aiocb request = request_of(fd, part.data(), part.size(), 0);
        if (aio_read(&request) != 0) continue;
        wait_for(&request);
        aio_return(&request);
      }
    });
  }
  int failed = 0;
  for (int round = 0; round < 4000; ++round) {
    const int fd = open_file("f", O_RDONLY);
    if (fd < 0) ++failed;
    shown.store(fd);
    if (round % 8 == 0) std::this_thread::yield();
    shown.store(-1);
    if (fd >= 0 && close(fd) != 0) ++failed;
  }
  is_over.store(true);
  for (std::thread& reader : readers) reader.join();
  say("opens and closes that failed", failed);
}

SCENE(many_threads_read_at_once) {
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      constexpr std::size_t kPart = std::size_t{1} << 20;
      std::vector<char> part(kPart);
      for (int round = 0; round < 40; ++round) {
        const std::size_t at = static_cast<std::size_t>(thread * 40 + round) * 71'001 % (22 << 20);
        aiocb one = request_of(fd, part.data(), kPart, static_cast<off_t>(at));
        if (aio_read(&one) != 0) ++wrong;
        wait_for(&one);
        if (aio_return(&one) != static_cast<ssize_t>(kPart)) ++wrong;
        if (memcmp(part.data(), cells.data() + at, kPart) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  say("wrong", wrong.load());
}

// With no number left, a file is read by the program's own number, which is another file's soon.
SCENE(a_full_table) {
  const std::vector<char> cells = large_content();
  close(make_large_file(cells));
  close(make_file("other", "other"));
  const rlimit few{64, 64};
  say("setrlimit", setrlimit(RLIMIT_NOFILE, &few));
  int last = -1;
  for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;
  close(last);
  const int fd = open_file("f", O_RDONLY);
  say("the last number", fd == last);
  std::vector<char> back(cells.size());
  aiocb request = request_of(fd, back.data(), back.size(), 0);
  say("aio_read", aio_read(&request));
  close(fd);
  const int other = open_file("other", O_RDONLY);
  say("taken again", other == fd);
  wait_for(&request);
  aio_return(&request);
  char bytes[8] = {};
  say("read of the other", pread(other, bytes, sizeof bytes, 0));
  say_bytes("other", bytes, 5);
  say("close of the other", close(other));
  const int again = open_file("f", O_RDONLY);
  say("read again", pread(again, back.data(), back.size(), 0));
  say("as before", back == cells);
}

SCENE(cancels_of_another_number) {
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  const int other = open_file("f", O_RDONLY);
  std::vector<char> back(cells.size());
  aiocb request = request_of(fd, back.data(), back.size(), 0);
  say("aio_read", aio_read(&request));
  say("of another", aio_cancel(other, &request));
  say("of none", aio_cancel(1000, &request));
  say("all of none", aio_cancel(-1, nullptr));
  wait_for(&request);
  say("of a read that has ended", aio_cancel(fd, &request));
  aio_return(&request);
}

// A notice runs with no signal blocked, whatever its attributes.
SCENE(notices_block_nothing) {
  static sem_t noticed;
  static int blocked;
  sem_init(&noticed, 0, 0);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const std::vector<char> cells = large_content();
  const int fd = make_large_file(cells);
  std::vector<char> back(cells.size());
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (pthread_attr_t* given : {static_cast<pthread_attr_t*>(nullptr), &attributes}) {
    for (const std::size_t length : {std::size_t{100}, back.size()}) {
      aiocb request = request_of(fd, back.data(), length, 0);
      request.aio_sigevent.sigev_notify = SIGEV_THREAD;
      request.aio_sigevent.sigev_notify_attributes = given;
      request.aio_sigevent.sigev_notify_function = [](sigval) {
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        blocked = 0;
        for (int number = 1; number < 32; ++number) blocked += sigismember(&mask, number) == 1;
        sem_post(&noticed);
      };
      say("aio_read", aio_read(&request));
      while (sem_wait(&noticed) != 0) {
      }
      say("blocked", blocked);
    }
  }
}

SCENE(long_lists) {
  constexpr int kRequests = 1500;
  const int fd = make_file("f", "");
  std::vector<char> bytes(kRequests, 'y');
  std::vector<aiocb> requests;
  std::vector<aiocb*> list;
  requests.reserve(kRequests);
  for (int at = 0; at < kRequests; ++at) {
    requests.push_back(request_of(fd, &bytes[static_cast<std::size_t>(at)], 1, at));
    requests.back().aio_lio_opcode = LIO_WRITE;
    list.push_back(&requests.back());
  }
  say("lio_listio", lio_listio(LIO_WAIT, list.data(), kRequests, nullptr));
  std::vector<char> back(kRequests);
  say("read", pread(fd, back.data(), back.size(), 0));
  say("all written", back == bytes);
}

SCENE(lists) {
  const int fd = make_file("f", "0123456789");
  int ends[2];
  if (pipe(ends) != 0) return;
  char back[4] = {};
  char bytes[] = "ABCD";
  aiocb read_file = request_of(fd, back, sizeof back, 6);
  read_file.aio_lio_opcode = LIO_READ;
  aiocb write_file = request_of(fd, bytes, 4, 0);
  write_file.aio_lio_opcode = LIO_WRITE;
  aiocb write_pipe = request_of(ends[1], bytes, 4, 0);
  write_pipe.aio_lio_opcode = LIO_WRITE;
  aiocb nothing{};
  nothing.aio_lio_opcode = LIO_NOP;
  aiocb* list[] = {&read_file, nullptr, &write_file, &nothing, &write_pipe};
  say("lio_listio", lio_listio(LIO_WAIT, list, 5, nullptr));
  say_end("read", &read_file);
  say_end("write", &write_file);
  say_end("pipe", &write_pipe);
  say_bytes("back", back, sizeof back);
  say_file("f");
  aiocb wrong = request_of(open_file("f", O_RDONLY), bytes, 4, 0);
  wrong.aio_lio_opcode = LIO_WRITE;
  aiocb* failing[] = {&wrong};
  aiocb neither = request_of(fd, bytes, 4, 0);
  neither.aio_lio_opcode = 77;
  aiocb* of_no_kind[] = {&neither};
  say("neither read nor write", lio_listio(LIO_WAIT, of_no_kind, 1, nullptr));
  say("its error", aio_error(&neither));
  say("a list with a failure", lio_listio(LIO_WAIT, failing, 1, nullptr));
  say("no list", lio_listio(7, failing, 1, nullptr));
}
