// SPDX-License-Identifier: Apache-2.0
// Writes, appends, cuts, stores and reads a few files, and says in a log beside them what it is
// about to do and what has been acknowledged, so that a death at any instant leaves it known what
// the files must hold (tests/faults/crash_points.py replays the logs).
//
//   cairn_crash_worker LOG-DIRECTORY SEED PROCESSES STEPS [--durable]    in the working directory
//   cairn_crash_worker --map FILE SIZE                        fills a file through a mapping
//
// A log has lines: `b OPERATION AT LENGTH VALUE` before, `e` after each step, and `d` when all of
// it has been made durable, which is often with --durable.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kFileBytes = std::size_t{1} << 20;

[[noreturn]] void fail(const char* what, long at) {
  ::fprintf(stderr, "crash worker: %s at %ld: %s\n", what, at, ::strerror(errno));
  ::exit(1);
}

class Log {
 public:
  explicit Log(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {}
  void begin(char operation, std::size_t at, std::size_t length, unsigned value) const {
    char line[96];
    const int bytes =
        ::snprintf(line, sizeof line, "b %c %zu %zu %u\n", operation, at, length, value);
    put(line, static_cast<std::size_t>(bytes));
  }
  void end() const { put("e\n", 2); }
  void durable() const { put("d\n", 2); }

 private:
  void put(const char* line, std::size_t bytes) const {
    if (::write(fd_, line, bytes) != static_cast<ssize_t>(bytes)) fail("the log", 0);
  }
  int fd_;
};

class Worker {
 public:
  Worker(const std::string& logs, unsigned seed, unsigned number, bool is_durable)
      : name_("file-" + std::to_string(number)),
        log_(logs + "/" + name_),
        draw_(seed + number),
        is_durable_(is_durable) {
    open();
  }

  void run(unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      const unsigned what = draw_() % 100;
      if (what < 45) {
        write(draw_() % kFileBytes);
      } else if (what < 60) {
        write(model_.size());
      } else if (what < 80) {
        read();
      } else if (what < 85) {
        cut();
      } else if (what < 92) {
        store(step);
      } else if (what < 94) {
        use_deleted();
      } else {
        if (::close(fd_) != 0) fail("close", static_cast<long>(step));
        open();
      }
      if (is_durable_ && draw_() % 2 == 0) store(step);
    }
    if (stores_ == 0) store(steps);
    if (::close(fd_) != 0) fail("the last close", 0);
  }

 private:
  void open() {
    fd_ = ::open(name_.c_str(), O_RDWR | O_CREAT, 0644);
    if (fd_ < 0) fail("open", 0);
  }
  void write(std::size_t at) {
    constexpr std::size_t kLengths[] = {1, 100, 4096, 9000, 70000};
    const std::size_t length = kLengths[draw_() % 5];
    const unsigned value = 1 + draw_() % 255;
    const std::vector<char> bytes(length, static_cast<char>(value));
    log_.begin('w', at, length, value);
    if (::pwrite(fd_, bytes.data(), length, static_cast<off_t>(at)) != static_cast<ssize_t>(length))
      fail("pwrite", static_cast<long>(at));
    log_.end();
    if (model_.size() < at + length) model_.resize(at + length, 0);
    ::memset(model_.data() + at, static_cast<int>(value), length);
  }
  // A descriptor that may only read has to ask the service: that is the first way, whatever the
  // seed, because the driver wants each point visited.
  void store(unsigned step) {
    const bool by_reader = stores_++ % 2 == 0;
    const int fd = by_reader ? ::open(name_.c_str(), O_RDONLY) : fd_;
    if (fd < 0 || ::fsync(fd) != 0) fail("fsync", static_cast<long>(step));
    log_.durable();
    if (by_reader) ::close(fd);
  }
  void use_deleted() const {
    const std::string gone = name_ + ".gone";
    const int fd = ::open(gone.c_str(), O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ::unlink(gone.c_str()) != 0 || ::write(fd, "gone", 4) != 4 || ::close(fd) != 0)
      fail("a deleted file", 0);
  }
  void cut() {
    const std::size_t at = draw_() % kFileBytes;
    log_.begin('t', at, 0, 0);
    if (::ftruncate(fd_, static_cast<off_t>(at)) != 0) fail("ftruncate", static_cast<long>(at));
    log_.end();
    model_.resize(at, 0);
  }
  void read() {
    const std::size_t at = draw_() % kFileBytes;
    std::vector<char> bytes(30000);
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    const std::size_t there = at < model_.size() ? std::min(bytes.size(), model_.size() - at) : 0;
    if (got != static_cast<ssize_t>(there) ||
        ::memcmp(bytes.data(), model_.data() + at, there) != 0)
      fail("other bytes are read", static_cast<long>(at));
  }

  std::string name_;
  Log log_;
  std::mt19937 draw_;
  const bool is_durable_;
  int fd_ = -1;
  unsigned stores_ = 0;
  std::vector<char> model_;
};

int fill_by_mapping(const char* name, std::size_t bytes) {
  const int fd = ::open(name, O_RDWR | O_CREAT, 0644);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail("a file to map", 0);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) fail("mmap", 0);
  for (std::size_t at = 0; at < bytes; ++at)
    static_cast<char*>(mapped)[at] = static_cast<char>(at % 251);
  if (::msync(mapped, bytes, MS_SYNC) != 0) fail("msync", 0);
  ::munmap(mapped, bytes);
  return ::close(fd);
}

}  // namespace

int main(int count, char** words) {
  if (count == 4 && ::strcmp(words[1], "--map") == 0)
    return fill_by_mapping(words[2], ::strtoul(words[3], nullptr, 10));
  const bool is_durable = count == 6 && ::strcmp(words[5], "--durable") == 0;
  if (count != 5 && !is_durable) return 2;
  const auto seed = static_cast<unsigned>(::strtoul(words[2], nullptr, 10));
  const auto processes = static_cast<unsigned>(::strtoul(words[3], nullptr, 10));
  const auto steps = static_cast<unsigned>(::strtoul(words[4], nullptr, 10));
  for (unsigned number = 0; number < processes; ++number) {
    if (::fork() != 0) continue;
    Worker(words[1], seed, number, is_durable).run(steps);
    ::_exit(0);
  }
  int result = 0;
  int status = 0;
  // One that the driver has killed is no failure of the others.
  while (::wait(&status) > 0)
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0) result = 1;
  return result;
}
