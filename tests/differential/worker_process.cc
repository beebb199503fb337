// SPDX-License-Identifier: Apache-2.0
// Children that inherit descriptors: plain fork, exec (also with an empty environment) and
// posix_spawn with file actions. The child works on the shared offset while its parent waits.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "worker.h"

extern char** environ;

namespace cairn::differential {
namespace {

std::string collect(int fd, pid_t child) {
  std::string answer;
  char piece[2048];
  ssize_t got;
  while ((got = read(fd, piece, sizeof piece)) > 0)
    answer.append(piece, static_cast<std::size_t>(got));
  close(fd);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) answer += " CHILD STATUS " + std::to_string(status);
  return answer;
}

void answer_with(int fd, const std::string& answer) {
  (void)!write(fd, answer.data(), answer.size());
}

// Arguments of this program that make it do child_steps and answer on its descriptor 60.
struct ChildArguments {
  std::string fd, direct, seed;
  char* list[6];
  ChildArguments(int number, bool is_direct, std::uint64_t seed_value)
      : fd(std::to_string(number)),
        direct(is_direct ? "1" : "0"),
        seed(std::to_string(seed_value)) {
    static char self[] = "cairn_differential", mode[] = "--child";
    list[0] = self;
    list[1] = mode;
    list[2] = fd.data();
    list[3] = direct.data();
    list[4] = seed.data();
    list[5] = nullptr;
  }
};

constexpr int kAnswerFd = 60;
constexpr int kSpawnFd = 61;

pid_t start_exec(const Operation& op, const Slot& slot, int answer_fd) {
  ChildArguments arguments(slot.fd, slot.description->direct, op.seed);
  const pid_t child = op.d % 3 == 0 ? vfork() : fork();
  if (child != 0) return child;
  char* empty[] = {nullptr};
  dup2(answer_fd, kAnswerFd);
  execve("/proc/self/exe", arguments.list, op.d % 4 == 0 ? empty : environ);
  _exit(99);
}

pid_t start_spawn(const Worker& worker, const Operation& op, const Slot& slot, int answer_fd) {
  ChildArguments arguments(kSpawnFd, slot.description->direct, op.seed);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, answer_fd, kAnswerFd);
  const std::string path = spell(worker, op.b % kSharedNames, op.seed);
  if (op.d % 2 == 0) {
    posix_spawn_file_actions_adddup2(&actions, slot.fd, kSpawnFd);
  } else {
    posix_spawn_file_actions_addopen(&actions, kSpawnFd, path.c_str(), O_RDWR | O_CREAT, 0644);
  }
  pid_t child = -1;
  if (posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.list, environ) != 0)
    child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

}  // namespace

std::string child_steps(int fd, bool direct, std::uint64_t seed) {
  Random random(seed);
  Text text;
  const int steps = 1 + static_cast<int>(random.below(4));
  for (int step = 0; step < steps; ++step) {
    std::int64_t offset = random_offset(random);
    std::int64_t length = random_length(random);
    if (direct) {
      offset &= ~4095LL;
      length = (length + 4095) & ~4095LL;
      lseek(fd, lseek(fd, 0, SEEK_CUR) & ~4095LL, SEEK_SET);
    }
    const auto size = static_cast<std::size_t>(length);
    errno = 0;
    switch (random.below(5)) {
      case 0:
        text.add(" seek").result(lseek(fd, offset, SEEK_SET));
        break;
      case 1: {
        const ssize_t got = read(fd, read_buffer(), size);
        text.add(" read").result(got);
        if (got > 0) text.add(" %016llx", (unsigned long long)hash_bytes(read_buffer(), got));
        break;
      }
      case 2: {
        const ssize_t got = pread(fd, read_buffer(), size, offset);
        text.add(" pread").result(got);
        if (got > 0) text.add(" %016llx", (unsigned long long)hash_bytes(read_buffer(), got));
        break;
      }
      case 3:
        fill_pattern(write_buffer(), length, seed + static_cast<std::uint64_t>(step));
        text.add(" write").result(write(fd, write_buffer(), size));
        break;
      default:
        fill_pattern(write_buffer(), length, seed + static_cast<std::uint64_t>(step));
        text.add(" pwrite").result(pwrite(fd, write_buffer(), size, offset));
    }
  }
  struct stat stat;
  if (fstat(fd, &stat) == 0) text.add(" size=%lld", static_cast<long long>(stat.st_size));
  return text.str();
}

int child_main(int argc, char** argv) {
  if (argc < 5) return 98;
  const std::string answer =
      child_steps(atoi(argv[2]), argv[3][0] == '1', strtoull(argv[4], nullptr, 10));
  answer_with(kAnswerFd, answer);
  return 0;
}

void run_process(Worker& worker, const Operation& op, Text& text) {
  const Slot& slot = worker.slots[static_cast<std::size_t>(op.a)];
  int answer[2];
  if (slot.fd < 0 || lseek(slot.fd, 0, SEEK_CUR) > kFileBytesMax || pipe2(answer, O_CLOEXEC) != 0) {
    text.add(" skip");
    return;
  }
  text.add("(%lld)", static_cast<long long>(op.a));
  pid_t child;
  if (op.kind == Kind::fork) {
    // The buffers have to exist before the fork: a child of a threaded process must not allocate.
    read_buffer();
    write_buffer();
    child = fork();
    if (child == 0) {
      answer_with(answer[1], child_steps(slot.fd, slot.description->direct, op.seed));
      _exit(0);
    }
  } else if (op.kind == Kind::exec) {
    child = start_exec(op, slot, answer[1]);
  } else {
    child = start_spawn(worker, op, slot, answer[1]);
  }
  close(answer[1]);
  if (child < 0) {
    close(answer[0]);
    text.add(" no child");
    return;
  }
  text.add("%s", "");
  const std::string said = collect(answer[0], child);
  for (std::size_t at = 0; at < said.size(); at += 400)
    text.add("%s", said.substr(at, 400).c_str());
  text.add(" parent at").result(lseek(slot.fd, 0, SEEK_CUR));
  add_afterwards(worker, text, slot, op.seed);
}

}  // namespace cairn::differential
