// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

namespace cairn::differential {

Text& Text::add(const char* format, ...) {
  char piece[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  text_ += piece;
  return *this;
}

int status_flags(int fd) {
  constexpr int kOfTheOpen = O_NOFOLLOW | O_TMPFILE;  // with O_DIRECTORY
  const int flags = fcntl(fd, F_GETFL);
  return flags < 0 ? flags : flags & ~kOfTheOpen;
}

Text& Text::result(std::int64_t value) {
  const int error = errno;
  if (value >= 0) return add("=%lld", static_cast<long long>(value));
  const char* name = strerrorname_np(error);
  return add("=%lld %s", static_cast<long long>(value), name != nullptr ? name : "?");
}

Text& Text::descriptor(const Worker& worker, int fd) {
  return worker.locked && fd >= 0 ? add("=fd") : result(fd);
}

namespace {
char* aligned_buffer() { return static_cast<char*>(aligned_alloc(4096, kTransferBytesMax + 8192)); }

// mtimes that scripts set lie before this; everything later is "now".
constexpr std::int64_t kExplicitBeforeSeconds = 1500000000;

Shared::Seen* seen_slot(Shared& shared, std::uint64_t inode) {
  for (std::size_t probe = 0; probe < shared.seen.size(); ++probe) {
    auto& entry = shared.seen[(inode * 0x9E3779B97F4A7C15ULL + probe) % shared.seen.size()];
    if (entry.inode == inode) return &entry;
    if (entry.inode == 0) {
      entry.inode = inode;
      return &entry;
    }
  }
  return nullptr;
}
}  // namespace

char* read_buffer() {
  thread_local char* buffer = aligned_buffer();
  return buffer;
}

char* write_buffer() {
  thread_local char* buffer = aligned_buffer();
  return buffer;
}

void fill_pattern(char* bytes, std::int64_t length, std::uint64_t seed) {
  Random random(seed);
  std::int64_t at = 0;
  for (; at + 8 <= length; at += 8) {
    const std::uint64_t word = random.next();
    memcpy(bytes + at, &word, 8);
  }
  const std::uint64_t word = random.next();
  memcpy(bytes + at, &word, static_cast<std::size_t>(length - at));
}

std::uint64_t hash_bytes(const void* bytes, std::int64_t length, std::uint64_t start) {
  const char* at = static_cast<const char*>(bytes);
  std::uint64_t hash = start ^ 0xCBF29CE484222325ULL ^ static_cast<std::uint64_t>(length);
  for (; length >= 8; length -= 8, at += 8) {
    std::uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9FB21C651E98DF25ULL;
    hash ^= hash >> 32;
  }
  for (; length > 0; --length, ++at)
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001B3ULL;
  return hash;
}

std::string spell(const Worker& worker, std::int64_t name, std::uint64_t seed) {
  const std::string plain = name_of(name, worker.process);
  switch (seed >> 40 & 7) {
    case 0:
      return "./" + plain;
    case 1:
      return worker.directory + "/" + plain;
    case 2:
      return worker.directory + "//" + plain;
    case 3:
      return "../" + worker.directory.substr(worker.directory.rfind('/') + 1) + "/" + plain;
    default:
      return plain;
  }
}

void add_stat(Worker& worker, Text& text, const struct stat& stat) {
  text.add(" size=%lld nlink=%u mode=%o", static_cast<long long>(stat.st_size),
           static_cast<unsigned>(stat.st_nlink), stat.st_mode);
  if (!S_ISREG(stat.st_mode)) return;
  Shared& shared = *worker.shared;
  for (std::uint32_t i = 0; i < shared.loose_count; ++i) {
    if (shared.loose_inodes[i] == stat.st_ino) {
      text.add(" m=~");
      return;
    }
  }
  auto* seen = seen_slot(shared, stat.st_ino);
  if (stat.st_mtim.tv_sec < kExplicitBeforeSeconds) {
    if (seen != nullptr) seen->mtime_ns = 0;
    text.add(" m=%lld.%09ld", static_cast<long long>(stat.st_mtim.tv_sec), stat.st_mtim.tv_nsec);
    return;
  }
  const std::int64_t now = stat.st_mtim.tv_sec * 1000000000LL + stat.st_mtim.tv_nsec;
  text.add(" m=now");
  if (seen == nullptr) return;
  if (now < seen->mtime_ns)
    text.add(" BACKWARDS (%lld ns)", static_cast<long long>(seen->mtime_ns - now));
  seen->mtime_ns = now;
}

void add_afterwards(Worker& worker, Text& text, const Slot& slot, std::uint64_t seed) {
  if ((seed >> 20 & 3) != 0 || slot.fd < 0) return;
  struct stat stat;
  if (fstat(slot.fd, &stat) == 0) add_stat(worker, text, stat);
  if ((seed >> 22 & 1) == 0) text.add(" at").result(lseek(slot.fd, 0, SEEK_CUR));
}

std::string run_operation(Worker& worker, const Operation& op) {
  Text text;
  const auto name = kind_name(op.kind);
  text.add("%.*s", static_cast<int>(name.size()), name.data());
  const auto group = kind_class(op.kind);
  errno = 0;
  if (group == "io") {
    run_io(worker, op, text);
  } else if (group == "alloc") {
    run_allocation(worker, op, text);
  } else if (group == "meta" || group == "time") {
    run_metadata(worker, op, text);
  } else if (group == "name") {
    run_name(worker, op, text);
  } else if (group == "dup" || group == "sync") {
    run_descriptor(worker, op, text);
  } else if (group == "copy") {
    run_copy(worker, op, text);
  } else if (group == "ioctl") {
    run_ioctl(worker, op, text);
  } else if (group == "lock") {
    run_lock(worker, op, text);
  } else if (group == "aio") {
    run_aio(worker, op, text);
  } else if (group == "map") {
    run_mapping(worker, op, text);
  } else if (group == "process") {
    run_process(worker, op, text);
  } else if (group == "stdio") {
    run_stdio(worker, op, text);
  }
  return text.str();
}

}  // namespace cairn::differential
