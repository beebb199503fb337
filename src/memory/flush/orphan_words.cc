// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/orphan_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {
namespace {

constexpr unsigned kPauseMs = 2;

int lock(int fd, unsigned patience_ms) {
  constexpr timespec kPause{0, kPauseMs * 1'000'000};
  for (unsigned waited_ms = 0;; waited_ms += kPauseMs) {
    const long error = sys::call(SYS_flock, fd, LOCK_EX | LOCK_NB);
    const bool is_taken = error == -EAGAIN || error == -EINTR;
    if (!is_taken || waited_ms >= patience_ms) return static_cast<int>(error);
    (void)sys::call(SYS_nanosleep, sys::word(&kPause), 0);
  }
}

}  // namespace

// FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv) with 64 bits, over bytes.
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

OrphanWords::OrphanWords(const char* folder, unsigned patience_ms) {
  const int at = sys::openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  error_ = at < 0 ? at : 0;
  if (at < 0) return;
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = sys::openat(at, kName, kFlags, 0600);
  // The name survives a crash as well.
  error_ = fd < 0 ? fd : sys::fsync(at);
  (void)sys::close(at);
  if (error_ == 0) error_ = lock(fd, patience_ms);
  if (error_ == 0) {
    fd_ = fd;
  } else if (fd >= 0) {
    (void)sys::close(fd);
  }
}

// A child of this process may have the description, too: closing alone would leave it locked.
OrphanWords::~OrphanWords() {
  if (fd_ < 0) return;
  (void)sys::call(SYS_flock, fd_, LOCK_UN);
  (void)sys::close(fd_);
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

// Behind a torn one it begins at a multiple of its size again.
int OrphanWords::say(OrphanWord word) const {
  CAIRN_DCHECK(is_locked());
  word.sum = OrphanWord::sum_of(word);
  const off_t end = sys::lseek(fd_, 0, SEEK_END);
  if (end < 0) return static_cast<int>(end);
  constexpr auto kBytes = static_cast<off_t>(sizeof word);
  if (const int error = sys::ftruncate(fd_, end / kBytes * kBytes); error < 0) return error;
  const ssize_t put = sys::write(fd_, &word, sizeof word);
  if (put != static_cast<ssize_t>(sizeof word)) return put < 0 ? static_cast<int>(put) : -EIO;
  return sys::fsync(fd_);
}

bool OrphanWords::read(std::uint64_t number, OrphanWord* word) const {
  CAIRN_DCHECK(is_locked());
  const auto at = static_cast<off_t>(number * sizeof *word);
  return sys::pread(fd_, word, sizeof *word, at) == static_cast<ssize_t>(sizeof *word);
}

int OrphanWords::clear() const {
  CAIRN_DCHECK(is_locked());
  const int error = sys::ftruncate(fd_, 0);
  return error < 0 ? error : sys::fsync(fd_);
}

int void_in_log(const NodeMemory& memory, const OrphanWords& words, ObjectIndex object) {
  if (!words.is_locked()) return -EIO;
  const ServiceBoard& board = memory.service_board();
  Object& record = memory.objects().at(object);
  const ObjectKey key = record.key();
  OrphanWord word;
  word.log = board.log_id.load();
  word.upto = board.log_last.load();
  word.store = raw(key.store);
  word.inode = key.id.inode;
  word.birth_ns = static_cast<std::uint64_t>(key.id.birth_ns);
  if (const int error = words.say(word); error < 0) return error;
  record.log_position.store(0);
  record.mark(kMarkOutOfLog, true);
  return 0;
}

}  // namespace cairn
