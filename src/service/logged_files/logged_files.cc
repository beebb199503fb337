// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/logged_files.h"

#include <errno.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "memory/catalog/flush_lookup.h"
#include "service/logged_files/file_identity.h"
#include "service/logged_files/page_digest.h"

namespace cairn::node {
namespace {

using durable::Lsn;
using Outcome = LogAttempt::Outcome;

// How long a pass waits for a cut of the file to end, and how often it looks.
constexpr int kShapeLooksMax = 200;
constexpr auto kShapePause = std::chrono::microseconds(50);
// A sparse file has few dirty blocks in a long range of numbers.
constexpr std::uint32_t kNumbersToTry = 256;
constexpr int kMapLooksMax = 4;
// The log counts as failed when its device has not answered for so long.
constexpr auto kCommitMax = std::chrono::seconds(30);
// A file that was made durable so short a time ago will be again: what is stored of it is logged
// first, so that its next fsync need not wait for the store. Not where that is much.
constexpr std::int64_t kFollowedNs = 2 * kNanosPerSecond;
constexpr std::uint64_t kFollowedBytesMax = 4 << 20;

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
    seed = static_cast<std::uint64_t>(monotonic_ns());
  return seed;
}

durable::FileState state_of(const Object& object) {
  return {object.size.load(std::memory_order_acquire),
          object.mtime_ns.load(std::memory_order_acquire)};
}

durable::FileState store_state_of(const Object& object) {
  return {object.store_size.load(std::memory_order_acquire),
          object.store_mtime_ns.load(std::memory_order_acquire)};
}

Outcome outcome_of(const Status& status) {
  return status.code() == StatusCode::kExhausted ? Outcome::kFull : Outcome::kFailed;
}

}  // namespace

// One pass over the dirty blocks of a file. Requires: the file's lock.
class LoggedFiles::Pass {
 public:
  Pass(const LoggedFiles& files, ObjectIndex index, LoggedFile& file)
      : files_(files), index_(index), file_(file), object_(files.memory_.objects().at(index)) {}

  Status run() {
    for (const std::uint32_t number : dirty_numbers()) {
      if (Status status = log_block(number); !status) return status;
    }
    return log_state();
  }

  Lsn last() const { return last_; }
  // The file was cut under the pass for too long.
  bool was_disturbed() const { return was_disturbed_; }

 private:
  std::vector<std::uint32_t> dirty_numbers() const {
    std::vector<std::uint32_t> numbers;
    const std::uint32_t low = object_.dirty_low.load(std::memory_order_acquire);
    const std::uint32_t high = object_.dirty_high.load(std::memory_order_acquire);
    if (object_.dirty_blocks.load(std::memory_order_acquire) == 0 || low >= high) return numbers;
    if (high - low <= kNumbersToTry) {
      for (std::uint32_t number = low; number < high; ++number) numbers.push_back(number);
      return numbers;
    }
    // A block that moves may slip from a part of the map that is still to be looked at to one that
    // has been.
    for (int look = 0; look < kMapLooksMax; ++look) {
      const std::uint32_t wanted = object_.dirty_blocks.load(std::memory_order_seq_cst);
      numbers.clear();
      files_.memory_.for_each_maybe_dirty([&](BucketIndex bucket) {
        const BlockDescriptor& block = files_.memory_.block(bucket);
        if (block.object_index() == index_) numbers.push_back(raw(block.block_number()));
      });
      if (numbers.size() >= wanted) break;
      if (look + 1 == kMapLooksMax) {
        files_.memory_.directory().for_each_block([&](ObjectIndex of, BlockNumber number) {
          if (of == index_) numbers.push_back(raw(number));
        });
      }
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  // Without the lock: nobody has written to the block since it was logged.
  bool is_unchanged(BlockNumber number) const {
    const auto known = file_.blocks.find(raw(number));
    if (known == file_.blocks.end()) return false;
    const BlockDescriptor& block = files_.memory_.block(known->second.bucket);
    const std::uint64_t word = block.word(std::memory_order_acquire);
    return !BlockDescriptor::is_locked(word) &&
           BlockDescriptor::sequence_in(word) == known->second.sequence &&
           block.holds(index_, number);
  }

  struct Copy {
    std::uint16_t pages = 0;
    std::size_t inside = 0;  // bytes of the block that are inside the file
    BucketIndex bucket{};
    std::uint32_t sequence = 0;
  };

  // Takes the dirty pages of the block, as they are at one moment. 0 or -errno.
  int copy_block(BlockNumber number, Copy* copy) {
    const BlockWorker worker{&files_.memory_.catalog(), files_.self_};
    LockedBlock block = lock_unless_clean(worker, index_, number);
    if (!block) return 0;
    const std::uint64_t size = object_.size.load(std::memory_order_acquire);
    const std::uint64_t start = offset_of(number);
    copy->inside = size <= start ? 0 : std::min<std::uint64_t>(size - start, kBlockBytes);
    if (copy->inside == 0) return 0;
    copy->pages = static_cast<std::uint16_t>(block.descriptor().dirty_pages() &
                                             pages_touched(0, copy->inside));
    copy->bucket = block.bucket();
    copy->sequence = block.descriptor().sequence();
    if (copy->pages == 0) return 0;
    const TierPlace place = files_.memory_.place_of(block.bucket());
    const std::byte* bytes = place.address();
    if (bytes == nullptr) return place.read(bytes_.data());
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      if ((copy->pages >> page & 1) != 0)
        std::copy_n(bytes + page * kPageBytes, kPageBytes, bytes_.data() + page * kPageBytes);
    }
    return 0;
  }

  // The copy is of one shape of the file: a cut is logged after this, or was before. False when the
  // file is being cut for too long.
  bool copy_in_peace(BlockNumber number, Copy* copy, int* error) {
    for (int look = 0; look < kShapeLooksMax; ++look) {
      const std::uint32_t shape = object_.shape_sequence.load(std::memory_order_seq_cst);
      if (!Object::is_odd(shape)) {
        *copy = Copy();
        *error = copy_block(number, copy);
        if (object_.shape_sequence.load(std::memory_order_seq_cst) == shape) return true;
        continue;
      }
      std::this_thread::sleep_for(kShapePause);
    }
    return false;
  }

  Status log_block(std::uint32_t raw_number) {
    const auto number = static_cast<BlockNumber>(raw_number);
    if (is_unchanged(number)) return Status::ok();
    Copy copy;
    int error = 0;
    if (!copy_in_peace(number, &copy, &error)) {
      was_disturbed_ = true;
      return Status::ok();
    }
    if (error < 0) return Status::from_errno(-error, "cannot read a block for the log");
    if (copy.pages == 0) return Status::ok();
    LoggedBlock& known = file_.blocks[raw_number];
    std::uint16_t changed = 0;
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      const auto bit = static_cast<std::uint16_t>(1U << page);
      if ((copy.pages & bit) == 0) continue;
      const std::uint64_t digest =
          page_digest(bytes_.data() + page * kPageBytes, bytes_of_page(copy, page), files_.seed_);
      if ((known.pages & bit) != 0 && known.digests[page] == digest) continue;
      known.digests[page] = digest;
      changed |= bit;
    }
    // Until they are in the log, nothing is known of them.
    known.pages = static_cast<std::uint16_t>(known.pages & ~changed);
    known.sequence = copy.sequence - 1;
    if (Status status = append_pages(number, copy, changed); !status) return status;
    known.pages |= changed;
    known.bucket = copy.bucket;
    known.sequence = copy.sequence;
    return Status::ok();
  }

  static std::size_t bytes_of_page(const Copy& copy, unsigned page) {
    return std::min<std::size_t>(kPageBytes, copy.inside - page * kPageBytes);
  }

  Status append_pages(BlockNumber number, const Copy& copy, std::uint16_t changed) {
    for (unsigned page = 0; page < kPagesPerBlock;) {
      if ((changed >> page & 1) == 0) {
        ++page;
        continue;
      }
      unsigned past = page;
      while (past < kPagesPerBlock && (changed >> past & 1) != 0) ++past;
      const std::size_t end = std::min<std::size_t>(past * kPageBytes, copy.inside);
      const std::span<const std::byte> bytes(bytes_.data() + page * kPageBytes,
                                             end - page * kPageBytes);
      const durable::FileState state = state_of(object_);
      const auto lsn = files_.log_.append_data(
          file_.number, {offset_of(number) + page * kPageBytes, bytes}, state);
      if (!lsn) return lsn.status();
      note(*lsn, state);
      page = past;
    }
    return Status::ok();
  }

  // Size and time, where no data says them.
  Status log_state() {
    const durable::FileState state = state_of(object_);
    if (state == file_.state) return Status::ok();
    const auto lsn = files_.log_.append_size(file_.number, state);
    if (!lsn) return lsn.status();
    note(*lsn, state);
    return Status::ok();
  }

  void note(Lsn lsn, const durable::FileState& state) {
    last_ = lsn;
    file_.state = state;
    files_.note_appended(index_, file_, lsn);
  }

  const LoggedFiles& files_;
  const ObjectIndex index_;
  LoggedFile& file_;
  const Object& object_;
  Lsn last_ = Lsn::kNone;
  bool was_disturbed_ = false;
  alignas(kPageBytes) std::array<std::byte, kBlockBytes> bytes_;
};

LoggedFiles::LoggedFiles(const NodeMemory& memory, Owner self, durable::DurableLog& log)
    : memory_(memory), self_(self), log_(log), seed_(random_seed()) {}

LoggedFiles::LoggedFilePtr LoggedFiles::find(ObjectIndex object) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  return found == files_.end() ? nullptr : found->second;
}

LoggedFiles::LoggedFilePtr LoggedFiles::find_or_make(ObjectIndex object) {
  const std::lock_guard lock(mutex_);
  LoggedFilePtr& file = files_[raw(object)];
  if (file == nullptr) file = std::make_shared<LoggedFile>();
  return file;
}

void LoggedFiles::forget(ObjectIndex object, const LoggedFilePtr& file) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(raw(object));
  if (found != files_.end() && found->second == file) files_.erase(found);
}

void LoggedFiles::note_appended(ObjectIndex object, LoggedFile& file, Lsn lsn) const {
  CAIRN_CHECK(lsn > file.upto);
  file.upto = lsn;
  // The first record brings the log's word that the file is being stored with it.
  if (file.window == Lsn::kNone) file.window = lsn;
  file.logged_ns = monotonic_ns();
  memory_.objects().at(object).log_position.store(durable::raw(lsn), std::memory_order_seq_cst);
}

// The log gets to know the file. False when it cannot.
bool LoggedFiles::introduce(ObjectIndex object, LoggedFile& file, int fd) {
  if (file.number != durable::LogObject::kNone) return true;
  if (fd < 0) return false;
  Object& record = memory_.objects().at(object);
  const StoreName store = store_names_.name_of(record.store(), fd);
  const auto number = log_.add_object(identity_of(fd, record.key(), store), store_state_of(record));
  if (!number) return false;
  file.number = *number;
  file.state = durable::FileState{};
  record.mark(kMarkKnownElsewhere, true);
  return true;
}

// From here until its last record is retired, the file is being stored (invariant 1).
Status LoggedFiles::open_window(LoggedFile& file) const {
  if (file.is_storing) return Status::ok();
  const auto window = log_.begin_storing(file.number);
  if (!window) return window.status();
  file.is_storing = true;
  file.window = *window;
  return Status::ok();
}

LogAttempt LoggedFiles::log_changes(ObjectIndex index, int fd, Why why) {
  Object& object = memory_.objects().at(index);
  if (object.through.load() != 0 || object.has(kObjectUnlinked)) return {};
  if (object.is_marked(kMarkStoreOwed)) return {};
  for (;;) {
    const LoggedFilePtr file = find_or_make(index);
    const std::lock_guard lock(file->mutex);
    if (file->is_gone) continue;
    if (!introduce(index, *file, fd)) {
      const Status health = log_.health();
      if (file->number == durable::LogObject::kNone) {
        file->is_gone = true;
        forget(index, file);
      }
      return {health ? (fd < 0 ? Outcome::kNeedsStore : Outcome::kFull) : Outcome::kFailed,
              Lsn::kNone};
    }
    Pass pass(*this, index, *file);
    Status status = open_window(*file);
    if (status) status = pass.run();
    if (!status) return {outcome_of(status), Lsn::kNone};
    // What has turned clean before the pass came to it has marked the object by now.
    if (pass.was_disturbed() || object.is_marked(kMarkStoreOwed) || object.through.load() != 0)
      return {};
    if (why == Why::kAsked) file->asked_ns = monotonic_ns();
    return {Outcome::kLogged, file->upto};
  }
}

bool LoggedFiles::prepare_store(ObjectIndex index, int fd) {
  const Object& object = memory_.objects().at(index);
  const bool is_first_logged =
      logs_first_.load() && log_changes(index, fd, Why::kUnasked).outcome == Outcome::kLogged;
  if (!object.is_in_log()) return is_first_logged;
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return is_first_logged;
  bool is_followed = false;
  Lsn window = Lsn::kNone;
  {
    const std::lock_guard lock(file->mutex);
    is_followed = !file->is_gone && monotonic_ns() - file->asked_ns < kFollowedNs;
    window = file->window;
  }
  const std::uint64_t dirty = std::uint64_t{object.dirty_blocks.load()} * kBlockBytes;
  if (is_followed && !is_first_logged && dirty <= kFollowedBytesMax)
    (void)log_changes(index, fd, Why::kUnasked);
  if (window != Lsn::kNone) (void)log_.commit_within(window, kCommitMax);
  return is_first_logged;
}

LogAttempt LoggedFiles::log_cut(ObjectIndex index, std::uint64_t size) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {Outcome::kLogged, Lsn::kNone};
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone)
    return {Outcome::kLogged, Lsn::kNone};
  const durable::FileState state{size, wall_clock_ns()};
  if (const Status status = open_window(*file); !status) return {outcome_of(status), Lsn::kNone};
  const auto lsn = log_.append_size(file->number, state);
  if (!lsn) return {outcome_of(lsn.status()), Lsn::kNone};
  file->state = state;
  // The same bytes may be written again.
  file->blocks.clear();
  note_appended(index, *file, *lsn);
  return {Outcome::kLogged, *lsn};
}

void LoggedFiles::log_renamed(ObjectIndex index, const std::string& path) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr || path.empty()) return;
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone) return;
  // Without this the file is still found by its identity.
  if (const auto lsn = log_.append_renamed(file->number, path)) note_appended(index, *file, *lsn);
}

LogAttempt LoggedFiles::log_removed(ObjectIndex index) {
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return {Outcome::kLogged, Lsn::kNone};
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->number == durable::LogObject::kNone)
    return {Outcome::kLogged, Lsn::kNone};
  const auto lsn = log_.append_removed(file->number);
  if (!lsn) return {outcome_of(lsn.status()), Lsn::kNone};
  end(index, *file);
  forget(index, file);
  return {Outcome::kLogged, *lsn};
}

// Requires: the file's lock.
void LoggedFiles::end(ObjectIndex object, LoggedFile& file) {
  log_.forget(file.number);
  file.is_gone = true;
  file.blocks.clear();
  memory_.objects().at(object).log_position.store(0, std::memory_order_seq_cst);
}

LogMark LoggedFiles::begin_storing(ObjectIndex index) {
  Object& object = memory_.objects().at(index);
  LogMark mark;
  Lsn window = Lsn::kNone;
  if (const LoggedFilePtr file = find(index); file != nullptr) {
    const std::lock_guard lock(file->mutex);
    if (!file->is_gone && file->number != durable::LogObject::kNone) {
      mark.upto = file->upto;
      window = file->window;
    }
  }
  if (window != Lsn::kNone) (void)log_.commit_within(window, kCommitMax);
  mark.was_owed = object.mark(kMarkStoreOwed, false);
  return mark;
}

void LoggedFiles::give_up_storing(ObjectIndex index, const LogMark& mark) {
  if (mark.was_owed) memory_.objects().at(index).mark(kMarkStoreOwed, true);
}

// Others may log the file while the word that it is stored is on its way to the device.
int LoggedFiles::end_storing(ObjectIndex index, const LogMark& mark) {
  if (mark.upto == Lsn::kNone) return 0;
  const LoggedFilePtr file = find(index);
  if (file == nullptr) return 0;
  Status done = Status::ok();
  Lsn retired = Lsn::kNone;
  {
    const std::lock_guard lock(file->mutex);
    if (file->is_gone || file->number == durable::LogObject::kNone) return 0;
    const bool goes_on = file->upto != mark.upto;
    file->is_storing = false;
    if (goes_on) done = open_window(*file);
    if (done) {
      const durable::FileState store = store_state_of(memory_.objects().at(index));
      done = log_.retire(file->number, mark.upto, store);
    }
    // Those records are void: the next pass logs a page although they had it.
    file->blocks.clear();
    retired = log_.appended();
  }
  if (done) done = log_.commit_within(retired, kCommitMax);
  if (!done) return done.error_number() != 0 ? -done.error_number() : -EIO;
  const std::lock_guard lock(file->mutex);
  if (file->is_gone || file->upto != mark.upto) return 0;
  end(index, *file);
  forget(index, file);
  return 0;
}

// The records of before count as one; the next pass logs all dirty pages again.
void LoggedFiles::inherit(ObjectIndex index) {
  Object& object = memory_.objects().at(index);
  if (!object.is_in_log()) return;
  const durable::LogObject number = log_.find(object.key());
  if (number == durable::LogObject::kNone) {
    object.log_position.store(0, std::memory_order_seq_cst);
    return;
  }
  const LoggedFilePtr file = find_or_make(index);
  const std::lock_guard lock(file->mutex);
  file->number = number;
  file->upto = log_.appended();
  // Without room for its window, it waits for that in open_window().
  (void)open_window(*file);
}

bool LoggedFiles::is_logged(ObjectIndex object, BlockNumber number, BucketIndex bucket,
                            std::uint32_t sequence) {
  const LoggedFilePtr file = find(object);
  if (file == nullptr) return false;
  const std::lock_guard lock(file->mutex);
  const auto known = file->blocks.find(raw(number));
  return !file->is_gone && known != file->blocks.end() && known->second.bucket == bucket &&
         known->second.sequence == sequence;
}

std::vector<LoggedFiles::InLog> LoggedFiles::all() const {
  std::vector<std::pair<ObjectIndex, LoggedFilePtr>> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, file] : files_)
      files.emplace_back(static_cast<ObjectIndex>(index), file);
  }
  std::vector<InLog> list;
  for (const auto& [index, file] : files) {
    const std::lock_guard lock(file->mutex);
    if (!file->is_gone && file->number != durable::LogObject::kNone)
      list.push_back({index, file->number, file->logged_ns});
  }
  return list;
}

}  // namespace cairn::node
