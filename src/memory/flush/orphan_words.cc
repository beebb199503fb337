// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/orphan_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"

namespace cairn {
namespace {

constexpr unsigned kPauseMs = 2;
constexpr std::uint32_t kRestMs = 60'000;

// A lock of fcntl(2) is the process's: its threads exclude each other here. A child that was forked
// meanwhile sees its parent's number, which counts for nothing.
constinit std::atomic<std::int32_t> holder{0};
// When this process has waited in vain; 0: never.
constinit std::atomic<std::uint32_t> refused_ms{0};

bool take_turn() {
  const std::int32_t self = sys::getpid();
  std::int32_t seen = holder.load();
  return seen != self && holder.compare_exchange_strong(seen, self);
}

int set_lock(int fd, short type) {
  struct ::flock whole{};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  return sys::fcntl(fd, F_SETLK, sys::word(&whole));
}

// Calls attempt() until it does not say -EAGAIN.
template <typename Attempt>
int wait_for(unsigned patience_ms, Attempt&& attempt) {
  constexpr timespec kPause{0, kPauseMs * 1'000'000};
  for (unsigned waited_ms = 0;; waited_ms += kPauseMs) {
    const int error = attempt();
    const bool is_taken = error == -EAGAIN || error == -EACCES || error == -EINTR;
    if (!is_taken) return error;
    if (waited_ms >= patience_ms) return -EAGAIN;
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
  const std::uint32_t refused = refused_ms.load(std::memory_order_relaxed);
  const bool rests = refused != 0 && monotonic_coarse_ms() - refused < kRestMs;
  const unsigned patience = rests ? 0 : patience_ms;
  error_ = wait_for(patience, [] { return take_turn() ? 0 : -EAGAIN; });
  if (error_ != 0) return;
  const int fd = open(folder);
  error_ = fd < 0 ? fd : wait_for(patience, [fd] { return set_lock(fd, F_WRLCK); });
  if (error_ == 0) {
    fd_ = fd;
    return;
  }
  if (error_ == -EAGAIN) refused_ms.store(monotonic_coarse_ms() | 1, std::memory_order_relaxed);
  if (fd >= 0) (void)sys::close(fd);
  holder.store(0);
}

// -errno, or the descriptor of the words.
int OrphanWords::open(const char* folder) {
  const int at = sys::openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return at;
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = sys::openat(at, kName, kFlags, 0600);
  // The name survives a crash as well.
  int error = fd < 0 ? fd : sys::fsync(at);
  (void)sys::close(at);
  struct ::statx found{};
  if (error == 0) error = sys::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found);
  const bool is_file = S_ISREG(found.stx_mode) && found.stx_size < kWordsMax * sizeof(OrphanWord);
  if (error == 0 && !is_file) error = -EBADF;
  if (error != 0 && fd >= 0) (void)sys::close(fd);
  return error != 0 ? error : fd;
}

// Closing any descriptor of the file gives the process's lock back: there is no other one.
OrphanWords::~OrphanWords() {
  if (fd_ < 0) return;
  (void)sys::close(fd_);
  holder.store(0);
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
