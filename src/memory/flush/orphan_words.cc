// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/orphan_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "base/crash_point.h"
#include "base/system_call.h"

namespace cairn {
namespace {

// A descriptor of the words for appending, or -errno.
int open_words(const char* folder) {
  const int at = sys::openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return at;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = sys::openat(at, OrphanWord::kFileName, kFlags, 0600);
  // The name survives a crash as well.
  int error = fd < 0 ? fd : sys::fsync(at);
  (void)sys::close(at);
  struct ::statx found{};
  if (error == 0) error = sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &found);
  if (error == 0 && !S_ISREG(found.stx_mode)) error = -EBADF;
  if (error != 0 && fd >= 0) (void)sys::close(fd);
  return error != 0 ? error : fd;
}

}  // namespace

std::uint64_t OrphanWord::sum_of(const OrphanWord& word) {
  constexpr std::uint64_t kBasis = 0xcbf2'9ce4'8422'2325ULL;
  constexpr std::uint64_t kPrime = 0x100'0000'01b3ULL;
  unsigned char bytes[sizeof word - sizeof word.sum];
  std::memcpy(bytes, &word, sizeof bytes);
  std::uint64_t sum = kBasis;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * kPrime;
  return sum;
}

bool OrphanWord::is_of(const ObjectKey& key) const {
  return store == raw(key.store) && inode == key.id.inode &&
         birth_ns == static_cast<std::uint64_t>(key.id.birth_ns);
}

int say_in(const char* folder, OrphanWord word) {
  word.sum = OrphanWord::sum_of(word);
  const int fd = open_words(folder);
  if (fd < 0) return fd;
  CAIRN_CRASH_POINT("orphan.words-opened");
  // One call: no other program's word comes between its bytes.
  const ssize_t put = sys::write(fd, &word, sizeof word);
  CAIRN_CRASH_POINT("orphan.word-put");
  int error = put < 0 ? static_cast<int>(put) : 0;
  if (error == 0) error = put == static_cast<ssize_t>(sizeof word) ? sys::fsync(fd) : -ENOSPC;
  CAIRN_CRASH_POINT("orphan.word-durable");
  (void)sys::close(fd);
  return error;
}

bool may_be_left_in_log(const NodeMemory& memory, ObjectIndex object) {
  const ServiceBoard& board = memory.service_board();
  if (board.has_log.load() == 0 || memory.is_served()) return false;
  const Object& record = memory.objects().at(object);
  if (record.is_in_log()) return true;
  // A node that has ended in order has emptied its log.
  const bool is_ended = board.detached.load() == ServiceBoard::kEndedInOrder;
  const bool is_of_store = record.durability.load(std::memory_order_relaxed) == Durability::kStore;
  return !is_ended && !is_of_store && !record.is_marked(kMarkOutOfLog);
}

int void_in_log(const NodeMemory& memory, ObjectIndex object) {
  const ServiceBoard& board = memory.service_board();
  Object& record = memory.objects().at(object);
  const ObjectKey key = record.key();
  OrphanWord word;
  word.log = board.log_id.load();
  word.upto = board.log_last.load();
  word.store = raw(key.store);
  word.inode = key.id.inode;
  word.birth_ns = static_cast<std::uint64_t>(key.id.birth_ns);
  if (const int error = say_in(board.log_folder, word); error < 0) return error;
  record.log_position.store(0);
  record.mark(kMarkOutOfLog, true);
  return 0;
}

}  // namespace cairn
