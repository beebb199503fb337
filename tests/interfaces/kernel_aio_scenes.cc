// SPDX-License-Identifier: Apache-2.0
// io_submit() and its relatives: as system calls and as libaio's functions, in all the ways in
// which a program hears of the end of a request.
#include <dlfcn.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "scene.h"

using namespace scene;

namespace {

constexpr std::size_t kPage = 4096;
constexpr int kRounds = 200;

iocb request_of(int operation, int fd, const void* buffer, std::size_t length,
                std::int64_t offset) {
  iocb request{};
  request.aio_lio_opcode = static_cast<std::uint16_t>(operation);
  request.aio_fildes = static_cast<std::uint32_t>(fd);
  request.aio_buf = reinterpret_cast<std::uintptr_t>(buffer);
  request.aio_nbytes = length;
  request.aio_offset = offset;
  request.aio_data = 77;
  return request;
}

// The system calls, as MariaDB makes some of them.
class Context {
 public:
  explicit Context(unsigned room = 16) { say("io_setup", syscall(SYS_io_setup, room, &name_)); }
  aio_context_t name() const { return name_; }
  long submit(iocb* request) const { return submit(1, &request); }
  long submit(long count, iocb** requests) const {
    return syscall(SYS_io_submit, name_, count, requests);
  }
  long events(long least, long most, io_event* out) const {
    timespec limit{5, 0};
    return syscall(SYS_io_getevents, name_, least, most, out, &limit);
  }
  void destroy() const { say("io_destroy", syscall(SYS_io_destroy, name_)); }

  // Submits, waits and tells.
  void carry_out(const char* what, iocb request) const {
    say(what, submit(&request));
    io_event event{};
    if (events(1, 1, &event) != 1) return say_text(what, "no event");
    say_raw("result", static_cast<long>(event.res));
    say("data", static_cast<long>(event.data));
    say("of this request", event.obj == reinterpret_cast<std::uintptr_t>(&request));
    say("descriptor as it was", request.aio_fildes < 100);
  }

 private:
  aio_context_t name_ = 0;
};

// libaio's functions, wherever they are found: in front of the library under Cairn.
struct Libaio {
  int (*setup)(int, aio_context_t*);
  int (*submit)(aio_context_t, long, iocb**);
  int (*getevents)(aio_context_t, long, long, io_event*, timespec*);
  int (*release)(aio_context_t);

  Libaio() {
    if (dlopen("libaio.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      say_text("libaio.so.1", "not found");
      exit(3);
    }
    find(&setup, "io_setup");
    find(&submit, "io_submit");
    find(&getevents, "io_getevents");
    find(&release, "io_queue_release");
  }

 private:
  template <typename Function>
  static void find(Function** function, const char* name) {
    *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  }
};

void* page_of(char filler) {
  void* page = aligned_alloc(kPage, kPage);
  memset(page, filler, kPage);
  return page;
}

}  // namespace

SCENE(each_operation) {
  const int fd = make_file("f", "0123456789");
  const Context context;
  char back[32] = {};
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 2));
  say_bytes("back", back, 10);
  context.carry_out("write", request_of(IOCB_CMD_PWRITE, fd, "ABC", 3, 4));
  say_file("f");
  iovec parts[] = {{back, 2}, {back + 2, 3}};
  context.carry_out("readv", request_of(IOCB_CMD_PREADV, fd, parts, 2, 3));
  say_bytes("back", back, 5);
  context.carry_out("writev", request_of(IOCB_CMD_PWRITEV, fd, parts, 2, 10));
  context.carry_out("sync", request_of(IOCB_CMD_FSYNC, fd, nullptr, 0, 0));
  context.carry_out("data sync", request_of(IOCB_CMD_FDSYNC, fd, nullptr, 0, 0));
  context.carry_out("nothing", request_of(IOCB_CMD_NOOP, fd, nullptr, 0, 0));
  context.carry_out("behind the end", request_of(IOCB_CMD_PREAD, fd, back, 4, 100));
  context.destroy();
  say_file("f");
}

SCENE(functions_of_libaio) {
  const Libaio libaio;
  const int fd = make_file("f", "0123456789");
  aio_context_t context = 0;
  say_raw("io_setup", libaio.setup(8, &context));
  char back[10] = {};
  iocb request = request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0);
  iocb* list[] = {&request};
  say_raw("io_submit", libaio.submit(context, 1, list));
  io_event event{};
  say_raw("io_getevents", libaio.getevents(context, 1, 1, &event, nullptr));
  say_raw("result", static_cast<long>(event.res));
  say_bytes("back", back, sizeof back);
  // MariaDB's mixture: what a function has submitted, a system call waits for.
  request = request_of(IOCB_CMD_PWRITE, fd, "WRITTEN", 7, 1);
  say_raw("io_submit", libaio.submit(context, 1, list));
  say("io_getevents", syscall(SYS_io_getevents, context, 1L, 1L, &event, nullptr));
  say_raw("result", static_cast<long>(event.res));
  request.aio_fildes = 999;
  errno = 0;
  say_raw("wrong number", libaio.submit(context, 1, list));
  say("errno is left alone", errno == 0);
  say_raw("io_queue_release", libaio.release(context));
  say_raw("of a released context", libaio.submit(context, 1, list));
  say_file("f");
}

SCENE(who_waits_is_woken) {
  const int fd = make_file("f", "0123456789");
  const Context context;
  std::atomic<bool> has_begun{false};
  std::thread reaper([&] {
    io_event event{};
    has_begun = true;
    say("woken", syscall(SYS_io_getevents, context.name(), 1L, 1L, &event, nullptr));
    say("result", static_cast<long>(event.res));
  });
  while (!has_begun) std::this_thread::yield();
  usleep(20'000);  // it is most likely in the kernel by now, and has to be woken anyway
  char back[10];
  iocb request = request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0);
  const long submitted = context.submit(&request);
  reaper.join();
  say("submitted", submitted);
}

SCENE(eventfd_and_masked_wait) {
  const int fd = make_file("f", "0123456789");
  const Context context;
  const int bell = eventfd(0, 0);
  char back[10];
  iocb request = request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0);
  request.aio_flags = IOCB_FLAG_RESFD;
  request.aio_resfd = static_cast<std::uint32_t>(bell);
  say("submit", context.submit(&request));
  pollfd ringing{bell, POLLIN, 0};
  say("poll", poll(&ringing, 1, 5000));
  std::uint64_t rings = 0;
  say("read", read(bell, &rings, sizeof rings));
  say("rings", static_cast<long>(rings));
  io_event event{};
  timespec limit{5, 0};
  say("io_pgetevents", syscall(SYS_io_pgetevents, context.name(), 1L, 1L, &event, &limit, nullptr));
  say("result", static_cast<long>(event.res));
  request.aio_resfd = static_cast<std::uint32_t>(fd);
  say("no eventfd", context.submit(&request));
}

SCENE(wrong_arguments) {
  const int fd = make_file("f", "0123456789");
  const int reader = open_file("f", O_RDONLY);
  const int writer = open_file("f", O_WRONLY);
  const Context context(4);
  char back[10];
  iocb request = request_of(IOCB_CMD_PWRITE, reader, back, 4, 0);
  say("write of a reader", context.submit(&request));
  request = request_of(IOCB_CMD_PREAD, writer, back, 4, 0);
  say("read of a writer", context.submit(&request));
  request = request_of(77, fd, back, 4, 0);
  say("no operation", context.submit(&request));
  request = request_of(IOCB_CMD_PREAD, fd, back, 4, -1);
  say("negative offset", context.submit(&request));
  request = request_of(IOCB_CMD_POLL, fd, reinterpret_cast<void*>(POLLIN), 0, 0);
  say("poll of a file", context.submit(&request));
  request = request_of(IOCB_CMD_PREAD, fd, back, 4, 0);
  request.aio_reserved2 = 1;
  say("reserved", context.submit(&request));
  request.aio_reserved2 = 0;
  iocb* list[] = {&request};
  say("no context", syscall(SYS_io_submit, -1L, 1L, list));
  say("negative count", context.submit(-1, list));
  say("none", context.submit(0, list));
  iocb* bad[] = {reinterpret_cast<iocb*>(8)};
  say("a bad request", context.submit(1, bad));
  say("a bad list", context.submit(1, reinterpret_cast<iocb**>(8)));
  say("a bad buffer", (request.aio_buf = 8, context.submit(&request)));
  io_event event{};
  say("its event", context.events(1, 1, &event));
  say_raw("its result", static_cast<long>(event.res));
  request.aio_buf = reinterpret_cast<std::uintptr_t>(back);
  say("io_cancel", syscall(SYS_io_cancel, context.name(), &request, &event));
  say("io_destroy of none", syscall(SYS_io_destroy, -1L));
}

// Numbers of both kinds in one list, the wrong one in the middle.
SCENE(lists) {
  const int first = make_file("a", "aaaaaaaaaa");
  const int second = make_file("b", "bbbbbbbbbb");
  const Context context;
  char back[3][4] = {};
  iocb requests[] = {request_of(IOCB_CMD_PREAD, first, back[0], 4, 0),
                     request_of(IOCB_CMD_PREAD, second, back[1], 4, 0),
                     request_of(IOCB_CMD_PREAD, 999, back[2], 4, 0),
                     request_of(IOCB_CMD_PREAD, first, back[2], 4, 4)};
  iocb* list[] = {&requests[0], &requests[1], &requests[2], &requests[3]};
  say("submit", context.submit(4, list));
  io_event events[4];
  say("events", context.events(2, 4, events));
  say("submit the rest", context.submit(2, list + 2));
  list[2] = list[3];
  say("submit the last", context.submit(1, list + 2));
  say("events", context.events(1, 4, events));
  for (char(&part)[4] : back) say_bytes("back", part, sizeof part);
}

SCENE(nothing_is_left_after_destroy) {
  const int fd = make_file("f", "0123456789");
  const Context context;
  char back[10];
  iocb request = request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0);
  say("submit", context.submit(&request));
  context.destroy();
  const Context next;
  io_event event;
  timespec soon{0, 1000};
  say("events", syscall(SYS_io_getevents, next.name(), 0L, 1L, &event, &soon));
  say("of the old one", syscall(SYS_io_getevents, context.name(), 0L, 1L, &event, &soon));
  say("pwrite", pwrite(fd, "xyz", 3, 0));
  next.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0));
  say_bytes("back", back, sizeof back);
}

// Bytes written in one way are read in all others, before and after, by this process and another.
SCENE(one_truth) {
  const int fd = open_file("f");
  char block[kPage];
  memset(block, '.', sizeof block);
  for (int page = 0; page < 40; ++page) (void)!write(fd, block, sizeof block);
  const Context context;
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t offset = (round * 7919) % (40 * 4096 - 8);
    char mark[8];
    memset(mark, 'a' + round % 26, sizeof mark);
    const bool by_kernel = round % 2 == 0;
    iocb request = request_of(by_kernel ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD, fd, mark, 8, offset);
    char back[8] = {};
    io_event event;
    if (!by_kernel) {
      wrong += pwrite(fd, mark, sizeof mark, offset) != 8;
      request.aio_buf = reinterpret_cast<std::uintptr_t>(back);
    }
    wrong += context.submit(&request) != 1 || context.events(1, 1, &event) != 1;
    if (by_kernel) wrong += pread(fd, back, sizeof back, offset) != 8;
    wrong += memcmp(mark, back, sizeof back) != 0;
    if (round % 50 == 49) {
      const pid_t child = fork();
      if (child == 0) {
        const int again = open("f", O_RDWR);
        char seen[8] = {};
        const bool is_right = pread(again, seen, 8, offset) == 8 && memcmp(seen, mark, 8) == 0 &&
                              pwrite(again, "child", 5, round) == 5;
        _exit(is_right ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      wrong += status != 0;
      request = request_of(IOCB_CMD_PREAD, fd, back, 5, round);
      wrong += context.submit(&request) != 1 || context.events(1, 1, &event) != 1;
      wrong += memcmp(back, "child", 5) != 0;
    }
  }
  say("wrong", wrong);
  context.destroy();
  say("pwrite after all", pwrite(fd, "the end", 7, 40 * 4096));
}

SCENE(appending) {
  const int fd = make_file("f", "0123", O_RDWR | O_APPEND);
  const Context context;
  context.carry_out("write", request_of(IOCB_CMD_PWRITE, fd, "ABCD", 4, 0));
  say("write(2)", write(fd, "efgh", 4));
  context.carry_out("write", request_of(IOCB_CMD_PWRITE, fd, "IJ", 2, 0));
  say_file("f");
  say("F_SETFL", fcntl(fd, F_SETFL, 0));
  context.carry_out("write", request_of(IOCB_CMD_PWRITE, fd, "00", 2, 0));
  say("F_SETFL", fcntl(fd, F_SETFL, O_APPEND));
  context.carry_out("write", request_of(IOCB_CMD_PWRITE, fd, "zz", 2, 0));
  say("flags", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
  context.destroy();
  say("write(2)", write(fd, "!", 1));
  say_file("f");
}

SCENE(direct) {
  const int fd = open_file("f", O_RDWR | O_CREAT | O_DIRECT);
  void* page = page_of('p');
  const Context context;
  say("write", write(fd, page, kPage));
  context.carry_out("aligned", request_of(IOCB_CMD_PWRITE, fd, page, kPage, kPage));
  context.carry_out("not aligned", request_of(IOCB_CMD_PWRITE, fd, page, 100, 3));
  void* back = page_of(0);
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, kPage, kPage));
  say("as written", memcmp(page, back, kPage) == 0);
  context.destroy();
}

SCENE(duplicates_and_closing) {
  const int fd = make_file("f", "0123456789");
  const int twin = dup(fd);
  const Context context;
  char back[10] = {};
  context.carry_out("by the twin", request_of(IOCB_CMD_PREAD, twin, back, sizeof back, 0));
  say("read", read(fd, back, 3));
  say("close", close(twin));
  context.carry_out("closed", request_of(IOCB_CMD_PREAD, fd, back, 3, 0));
  say("position", lseek(fd, 0, SEEK_CUR));
  iocb request = request_of(IOCB_CMD_PWRITE, fd, "LATE", 4, 0);
  say("submit", context.submit(&request));
  say("close", close(fd));
  io_event event;
  say("events", context.events(1, 1, &event));
  say("result", static_cast<long>(event.res));
  say("of a closed one", context.submit(&request));
  say_file("f");
  const int other = make_file("other", "other");
  say("the number is another's", other == fd);
  context.carry_out("other", request_of(IOCB_CMD_PREAD, other, back, 5, 0));
  say_bytes("back", back, 5);
}

// Locks that the program has are not lost on the way, nor does it keep one too many.
SCENE(locks) {
  const int fd = make_file("f", "0123456789");
  struct flock whole{};
  whole.l_type = F_WRLCK;
  say("F_SETLK", fcntl(fd, F_SETLK, &whole));
  const Context context;
  char back[4];
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, sizeof back, 0));
  context.destroy();
  const auto is_locked = [&] {
    const pid_t child = fork();
    if (child == 0) {
      struct flock asked{};
      asked.l_type = F_WRLCK;
      fcntl(open("f", O_RDWR), F_GETLK, &asked);
      _exit(asked.l_type == F_UNLCK ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return static_cast<long>(WEXITSTATUS(status));
  };
  say("locked", is_locked());
  close(fd);
  say("locked after the close", is_locked());
}

SCENE(fork_with_a_context) {
  const int fd = make_file("f", "0123456789");
  const Context context;
  char back[10] = {};
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, 4, 0));
  say("lseek", lseek(fd, 3, SEEK_SET));
  const pid_t child = fork();
  if (child == 0) {
    iocb request = request_of(IOCB_CMD_PREAD, fd, back, 4, 0);
    say("the parent's context", context.submit(&request));
    say("read", read(fd, back, 2));
    say("pwrite", pwrite(fd, "CHILD", 5, 5));
    const Context own;
    own.carry_out("own context", request_of(IOCB_CMD_PREAD, fd, back, 10, 0));
    say_bytes("back", back, 10);
    exit(0);
  }
  waitpid(child, nullptr, 0);
  say("position", lseek(fd, 0, SEEK_CUR));
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, 10, 0));
  say_bytes("back", back, 10);
}

SCENE(exec_with_a_context) {
  const int fd = make_file("f", "0123456789\n");
  const Context context;
  char back[10] = {};
  context.carry_out("read", request_of(IOCB_CMD_PREAD, fd, back, 4, 0));
  say("lseek", lseek(fd, 4, SEEK_SET));
  dup2(fd, 9);
  (void)!system("read -r line <&9; echo system: $line; printf appended >>f");
  context.carry_out("after a command", request_of(IOCB_CMD_PREAD, 9, back, 10, 9));
  say_bytes("back", back, 10);
  lseek(fd, 2, SEEK_SET);
  const char* const command = "read -r line <&9; echo exec: $line; printf more >&9; cat f";
  execl("/bin/sh", "sh", "-c", command, nullptr);
}
