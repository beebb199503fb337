// SPDX-License-Identifier: Apache-2.0
//
// The state of one worker process and the functions that carry out one operation in it.
//
// Thread safety: the coordinator lets one actor act at a time (it passes a turn over pipes), so
// the tables of a process need no lock although its threads share them; only `burst` runs freely,
// and that touches nothing of Worker but the directory name.
// Ownership: a Worker owns its descriptors, streams and mappings until the process ends.

#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "operation.h"

namespace cairn::differential {

// What one open file description is, shared by duplicated slots.
struct Description {
  bool direct = false;
  bool append = false;
  bool path_only = false;
  int access = 0;  // O_RDONLY, O_WRONLY or O_RDWR
};

struct Slot {
  int fd = -1;
  std::shared_ptr<Description> description;
};

struct Stream {
  FILE* file = nullptr;
  char last = 0;  // 'r' or 'w': C requires a seek between the directions
  std::unique_ptr<char[]> buffer;
};

struct Mapping {
  char* address = nullptr;
  std::size_t length = 0;
  std::int64_t offset = 0;
  bool shared = false;
  bool writable = false;
  std::size_t slot = 0;
  std::shared_ptr<Description> description;
};

// Memory shared by all processes of the engine, written in turn.
struct Shared {
  struct Seen {
    std::uint64_t inode = 0;
    std::int64_t mtime_ns = 0;
  };
  std::array<pid_t, kProcesses> pids{};
  // Files that were mapped shared and writable: when the kernel stamps their mtime is not
  // determined, so the driver does not compare it.
  std::array<std::uint64_t, 4096> loose_inodes{};
  std::uint32_t loose_count = 0;
  // The latest time "now" seen for an inode: it may never go backwards.
  std::array<Seen, 8192> seen{};
};

struct Worker {
  int process = 0;
  std::string directory;
  int directory_fd = -1;
  Shared* shared = nullptr;
  std::array<Slot, kSlots> slots;
  std::array<Stream, kStreams> streams;
  std::array<Mapping, kMappings> mappings;
  // From here on the numbers of descriptors are not compared: a process that holds POSIX locks
  // loses them by closing any descriptor of the file, so Cairn has to keep some that it would
  // rather close.
  bool locked = false;
};

// Builds the log text of one operation.
class Text {
 public:
  Text& add(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // "=value" or "=-1 ENOENT"; reads errno, so call it right after the operation.
  Text& result(std::int64_t value);
  // The same for a new descriptor, whose number is left out where it is not determined.
  Text& descriptor(const Worker& worker, int fd);
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// F_GETFL, or -1. Without the flags that only matter to the open: a description that Cairn makes
// for processes which it does not serve has none of them (interfaces.ioctl compares them).
int status_flags(int fd);

// Buffers of the calling thread, 4096-aligned, kTransferBytesMax + 8192 bytes each.
char* read_buffer();
char* write_buffer();
void fill_pattern(char* bytes, std::int64_t length, std::uint64_t seed);
std::uint64_t hash_bytes(const void* bytes, std::int64_t length, std::uint64_t start = 0);

// The path of a name in one of several spellings chosen by `seed`.
std::string spell(const Worker& worker, std::int64_t name, std::uint64_t seed);
void add_stat(Worker& worker, Text& text, const struct stat& stat);
// Sometimes (decided by the seed) adds size and offset of the slot after the operation.
void add_afterwards(Worker& worker, Text& text, const Slot& slot, std::uint64_t seed);

// One function per class; each returns the text for the log.
std::string run_operation(Worker& worker, const Operation& op);
void run_io(Worker& worker, const Operation& op, Text& text);
void run_allocation(Worker& worker, const Operation& op, Text& text);
void run_metadata(Worker& worker, const Operation& op, Text& text);
void run_name(Worker& worker, const Operation& op, Text& text);
void run_descriptor(Worker& worker, const Operation& op, Text& text);
void run_copy(Worker& worker, const Operation& op, Text& text);
void run_ioctl(Worker& worker, const Operation& op, Text& text);
void run_lock(Worker& worker, const Operation& op, Text& text);
void run_aio(Worker& worker, const Operation& op, Text& text);
void run_mapping(Worker& worker, const Operation& op, Text& text);
void run_process(Worker& worker, const Operation& op, Text& text);
void run_stdio(Worker& worker, const Operation& op, Text& text);
void run_burst(Worker& worker, const Operation& op, int actor, Text& text);

// What a forked or executed child does with an inherited descriptor.
std::string child_steps(int fd, bool direct, std::uint64_t seed);
int child_main(int argc, char** argv);

void install_bus_handler();

}  // namespace cairn::differential
