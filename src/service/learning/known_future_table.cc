// SPDX-License-Identifier: Apache-2.0
#include "service/learning/known_future_table.h"

#include <fcntl.h>

#include <algorithm>

#include "base/check.h"
#include "memory/backing/posix_backing.h"
#include "service/learning/read_events.h"

namespace cairn::node {
namespace {

// Uses that the window grows by with each read, until it is full: 10 us.
constexpr std::size_t kUsesPerRead = 256;
// An order of which more than one in so many blocks was unexpected is not followed any more, once
// there were kUnexpectedMax too many.
constexpr unsigned kBlocksPerUnexpected = 4;
constexpr unsigned kUnexpectedMax = 32;
// The most blocks that are followed of one call.
constexpr std::uint32_t kBlocksFollowedMax = 4096;
constexpr std::uint32_t kNoBlock = UINT32_MAX;
static_assert((KnownFutureTable::kSkipsMax & (KnownFutureTable::kSkipsMax - 1)) == 0,
              "counts of rings wrap around");
static_assert(KnownFutureTable::kFilesAhead <= KnownFutureTable::kSkipsMax);

std::size_t uses_for(const NodeMemory& memory) {
  std::size_t blocks = 0;
  for (unsigned tier = 0; tier < memory.tiers_for(BufferingMode::kAsync); ++tier)
    blocks += memory.pool(static_cast<TierId>(tier)).slab_count();
  return std::clamp<std::size_t>(3 * blocks, 1, KnownFutureTable::kUsesMax);
}

}  // namespace

KnownFutureTable::KnownFutureTable(const NodeMemory& memory, StreamTable& streams)
    : memory_(memory), uses_max_(uses_for(memory)), streams_(streams) {}

void KnownFutureTable::follow(DeclaredOrders* orders, PathOf path_of) {
  orders_ = orders;
  path_of_ = std::move(path_of);
}

void KnownFutureTable::on_accesses(std::span<const ToldAccess> batch) {
  const bool has_orders = knows_any();
  for (const ToldAccess& told : batch) {
    if (!told.ends.streams.empty()) {
      const std::lock_guard lock(mutex_);
      forget(told.ends);
    }
    if (has_orders && told.event.object != ObjectIndex::kNone) note(told);
  }
  beginnings_.clear();
}

void KnownFutureTable::note(const ToldAccess& told) {
  const bool is_open = told.event.kind == AccessKind::kOpen;
  // Without the lock: replacement must not wait for a slow store.
  const bool may_be_of_files = is_open && follows_files_ && orders_->has_files();
  const auto place = may_be_of_files ? place_of(told) : std::nullopt;
  const std::lock_guard lock(mutex_);
  if (refuted_seen_ != orders_->refuted()) drop_refuted();
  if (place) {
    opened(told, *place);
  } else if (is_open) {
    // A file without an order may have the number of one that had.
    files_.erase(told.event.object);
    if (told.stream != nullptr) stream_of(told).order.note_open();
  } else if (told.stream != nullptr && is_read(told.event.kind)) {
    read(told);
  }
}

void KnownFutureTable::forget(const StreamEnds& ends) {
  for (AccessStream* ended : ends.streams) {
    Stream* stream = streams_.find(*ended);
    if (stream == nullptr) continue;
    end(stream->followed);
    streams_.drop(*ended);
  }
}

KnownFutureTable::Stream& KnownFutureTable::stream_of(const ToldAccess& told) {
  if (Stream* known = streams_.find(*told.stream); known != nullptr) return *known;
  Stream& stream = streams_.make(*told.stream);
  stream.object = told.event.object;
  return stream;
}

void KnownFutureTable::read(const ToldAccess& told) {
  Stream& stream = stream_of(told);
  const BlockRun run = run_of(told.event);
  if (stream.followed == nullptr) begin_found(stream, told);
  if (stream.followed == nullptr) look_for_order(stream, told, run);
  if (stream.followed == nullptr) return;
  go_on(*stream.followed, run);
  if (!is_refuted(*stream.followed)) return;
  if (stream.followed->repeats) {
    found_.erase(stream.object);
    end(stream.followed);
  } else {
    refute(*stream.followed);
  }
}

void KnownFutureTable::go_on(Followed& followed, BlockRun run) {
  pass(followed, run);
  look_ahead(followed);
}

bool KnownFutureTable::is_refuted(const Followed& followed) {
  return followed.doubt >= kUnexpectedMax * kBlocksPerUnexpected;
}

void KnownFutureTable::refute(Followed& followed) {
  orders_->refute(std::string(followed.path));
  drop_refuted();
}

void KnownFutureTable::look_for_order(Stream& stream, const ToldAccess& told, BlockRun run) {
  const bool is_first = !stream.order.is_begun();
  OrderSearch::Found found =
      stream.order.look(*orders_, told, run, OrderReader::kReplacement, path_of_);
  // A declared order goes before one that was found.
  if (found.outcome == OrderSearch::Outcome::kUndeclared && is_first) look_for_found(stream, run);
  if (found.outcome != OrderSearch::Outcome::kFound) return;
  stream.followed = begin(stream.order.path(), std::move(found.order));
  if (stream.followed != nullptr) stream.followed->object = stream.object;
}

// A stream of a known file goes through the order of the streams before it, if it begins like them.
void KnownFutureTable::look_for_found(Stream& stream, BlockRun run) {
  const auto known = found_.find(stream.object);
  if (known == found_.end()) return;
  if (known->second.key != memory_.objects().at(stream.object).key()) {
    found_.erase(known);
    return;
  }
  const std::vector<BlockRun>& runs = *known->second.order;
  const std::size_t count = std::min<std::size_t>(runs.size(), kFirstReads);
  for (std::size_t at = 0; at < count; ++at) {
    if (runs[at].first == run.first) return begin_found(stream, run, known->second.order, at);
  }
}

void KnownFutureTable::found(const ToldAccess& told, RepeatedOrder order) {
  if (!make_room_for_found()) return;
  auto runs = std::make_shared<const std::vector<BlockRun>>(std::move(order.runs));
  found_[told.event.object] = {memory_.objects().at(told.event.object).key(), runs};
  beginnings_.push_back({told.stream, told.event.cycles, runs, order.at});
}

void KnownFutureTable::begin_found(Stream& stream, const ToldAccess& told) {
  for (const Beginning& beginning : beginnings_) {
    if (beginning.stream == told.stream && beginning.cycles == told.event.cycles)
      return begin_found(stream, run_of(told.event), beginning.order, beginning.at);
  }
}

// Those that nobody goes through any more are forgotten first.
bool KnownFutureTable::make_room_for_found() {
  if (found_.size() < kFoundMax) return true;
  std::erase_if(found_, [this](const auto& entry) {
    return std::none_of(followed_.begin(), followed_.end(), [&](const Followed* followed) {
      return followed->repeats && followed->object == entry.first;
    });
  });
  return found_.size() < kFoundMax;
}

// `run` is what the stream reads now, and comes next in the window.
void KnownFutureTable::begin_found(Stream& stream, BlockRun run, const DeclaredOrder& order,
                                   std::size_t at) {
  CAIRN_CHECK(at < order->size());
  auto fresh = std::make_unique<Followed>();
  fresh->object = stream.object;
  fresh->order = order;
  fresh->repeats = true;
  fresh->run = at;
  const BlockRun& stretch = (*order)[at];
  if (run.first > stretch.first && run.first < stretch.end())
    fresh->blocks_of_run = static_cast<std::uint32_t>(run.first - stretch.first);
  fresh->uses_of_lap = 0;
  for (const BlockRun& each : *order) fresh->uses_of_lap += each.count;
  stream.followed = begin(std::move(fresh));
}

std::optional<DeclaredOrders::FilePlace> KnownFutureTable::place_of(const ToldAccess& told) {
  const ObjectKey key = memory_.objects().at(told.event.object).key();
  const auto before = places_.find(key);
  if (before != places_.end() && orders_->is_refuted(before->second.declaration))
    places_.erase(before);
  if (!places_.contains(key)) look_up(key, path_of_(told));
  const auto found = places_.find(key);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

// Asks the store for nothing that the program has not just opened itself, as far as it is read in
// order: a wait for a disk here delays all other events.
void KnownFutureTable::look_up(const ObjectKey& key, const std::string& path) {
  const auto place = orders_->place_of_file(path);
  if (!place && !path.empty()) return;
  if (place) note_file(*place);
  for (auto& [declaration, followed] : orders_of_files_) {
    if (places_.contains(key)) return;
    if (followed != nullptr && !orders_->is_refuted(declaration))
      look_up(key, declaration, *followed);
  }
}

void KnownFutureTable::look_up(const ObjectKey& key, std::size_t declaration, Followed& followed) {
  const auto count = std::min<std::size_t>(kFilesAhead, followed.future.size());
  for (std::uint32_t at = 0; at < count && !places_.contains(key); ++at) {
    const std::uint32_t item = followed.future.block_after(at);
    if (item >= followed.items_seen.size()) followed.items_seen.resize(item + 1);
    if (followed.items_seen[item]) continue;
    followed.items_seen[item] = true;
    note_file({declaration, item});
  }
}

void KnownFutureTable::note_file(const DeclaredOrders::FilePlace& place) {
  CAIRN_CHECK(!orders_->is_refuted(place.declaration));
  StoreStatus status;
  const std::string& path = orders_->file_of(place);
  if (store_status_at(AT_FDCWD, path.c_str(), 0, &status) == 0)
    places_.insert_or_assign(status.key, place);
}

void KnownFutureTable::opened(const ToldAccess& told, const DeclaredOrders::FilePlace& place) {
  const std::uint64_t bytes = memory_.objects().at(told.event.object).size.load();
  files_[told.event.object] = {place, run_of_bytes(0, bytes).count};
  Followed* followed = files_followed(place);
  if (followed == nullptr) return;
  go_on(*followed, BlockRun{place.item, 1});
  if (is_refuted(*followed) && !begin_again(place)) refute(*followed);
}

// Another job goes through the epochs once more. A job that has kept to the order for a
// moment only by chance does not begin again for ever.
bool KnownFutureTable::begin_again(const DeclaredOrders::FilePlace& place) {
  std::unique_ptr<Followed>& followed = orders_of_files_[place.declaration];
  if (followed->passed_count < std::min<std::size_t>(kSkipsMax, followed->order->size()))
    return false;
  DeclaredOrder order = orders_->files_from(place, OrderReader::kReplacement);
  if (order == nullptr) return false;
  end(followed);
  followed = begin(orders_->file_of(place), std::move(order));
  if (followed != nullptr) go_on(*followed, BlockRun{place.item, 1});
  return true;
}

KnownFutureTable::Followed* KnownFutureTable::files_followed(
    const DeclaredOrders::FilePlace& place) {
  if (orders_->is_refuted(place.declaration)) return nullptr;
  std::unique_ptr<Followed>& followed = orders_of_files_[place.declaration];
  // A job that opens more files than the order has goes through it once more.
  if (followed != nullptr && followed->is_at_its_end() && followed->future.size() == 0)
    end(followed);
  if (followed != nullptr) return followed.get();
  DeclaredOrder order = orders_->files_from(place, OrderReader::kReplacement);
  if (order != nullptr) followed = begin(orders_->file_of(place), std::move(order));
  return followed.get();
}

std::unique_ptr<KnownFutureTable::Followed> KnownFutureTable::begin(const std::string& path,
                                                                    DeclaredOrder order) {
  auto fresh = std::make_unique<Followed>();
  fresh->path = path;
  fresh->order = std::move(order);
  return begin(std::move(fresh));
}

// Null when too many are followed already.
std::unique_ptr<KnownFutureTable::Followed> KnownFutureTable::begin(
    std::unique_ptr<Followed> fresh) {
  CAIRN_CHECK(fresh->order != nullptr);
  if (followed_.size() >= kFollowedMax) return nullptr;
  fresh->passed.fill(kNoBlock);
  fresh->skipped.fill(kNoBlock);
  followed_.push_back(fresh.get());
  share_window();
  look_ahead(*fresh);
  return fresh;
}

// A stream over its share of the window stops extending until it is under it.
void KnownFutureTable::share_window() {
  for (Followed* followed : followed_) {
    const std::size_t uses = std::max<std::size_t>(1, uses_max_ / followed_.size());
    followed->future.set_uses_max(std::min(uses, followed->uses_of_lap));
  }
}

void KnownFutureTable::look_ahead(Followed& followed) {
  const std::vector<BlockRun>& order = *followed.order;
  // In a full window the past uses are replaced, however many they are.
  const std::size_t uses = std::max(kUsesPerRead, std::size_t{kSkipsMax} + 1);
  for (std::size_t told = 0; told < uses && !followed.future.is_full(); ++told) {
    while (!followed.is_at_its_end() && followed.blocks_of_run >= order[followed.run].count) {
      ++followed.run;
      followed.blocks_of_run = 0;
      if (followed.repeats && followed.run == order.size()) followed.run = 0;
    }
    if (followed.is_at_its_end()) return;
    CAIRN_DCHECK(followed.blocks_of_run < order[followed.run].count);
    followed.future.expect(
        static_cast<std::uint32_t>(order[followed.run].first + followed.blocks_of_run));
    ++followed.blocks_of_run;
  }
}

// The last of so many uses has come, and the others are past with it.
void KnownFutureTable::move_on(Followed& followed, std::uint32_t uses) {
  CAIRN_CHECK(uses != 0);
  CAIRN_CHECK(uses <= followed.future.size());
  for (std::uint32_t at = 0; at + 1 < uses; ++at)
    followed.skipped[followed.skipped_count++ % kSkipsMax] = followed.future.block_after(at);
  followed.passed[followed.passed_count++ % kSkipsMax] = followed.future.block_after(uses - 1);
  followed.future.pass(uses);
  if (followed.stray_at != KnownFuture::kNever)
    followed.stray_at = followed.stray_at >= uses ? followed.stray_at - uses : KnownFuture::kNever;
}

void KnownFutureTable::pass(Followed& followed, BlockRun run) {
  // The next piece of the same block.
  if (run == followed.last && run.count == 1) return;
  followed.last = run;
  const std::uint32_t count = std::min(run.count, kBlocksFollowedMax);
  for (std::uint32_t at = 0; at < count; ++at)
    pass_block(followed, static_cast<std::uint32_t>(run.first + at));
}

void KnownFutureTable::pass_block(Followed& followed, std::uint32_t block) {
  // One that a later one was heard of before.
  const auto skipped = std::find(followed.skipped.begin(), followed.skipped.end(), block);
  if (skipped != followed.skipped.end()) {
    *skipped = kNoBlock;
    return;
  }
  const std::uint32_t after = followed.future.until_use(block);
  if (after < kSkipsMax) {
    move_on(followed, after + 1);
    followed.doubt -= std::min(followed.doubt, 1U);
    return;
  }
  // Another piece of what was read just now.
  const auto passed = std::find(followed.passed.begin(), followed.passed.end(), block);
  if (passed != followed.passed.end()) return;
  followed.doubt += kBlocksPerUnexpected;
  if (after == KnownFuture::kNever) return;
  // Two that stand near each other further on: much was not heard of.
  const bool is_there = followed.stray_at != KnownFuture::kNever && followed.stray_at < after &&
                        after - followed.stray_at <= kSkipsMax;
  followed.stray_at = after;
  if (!is_there) return;
  move_on(followed, after + 1);
  followed.stray_at = KnownFuture::kNever;
}

void KnownFutureTable::end(std::unique_ptr<Followed>& followed) {
  if (followed == nullptr) return;
  const std::size_t erased = std::erase(followed_, followed.get());
  CAIRN_CHECK(erased == 1);
  followed.reset();
  share_window();
}

void KnownFutureTable::drop_refuted() {
  refuted_seen_ = orders_->refuted();
  streams_.for_each([this](Stream& stream) {
    if (stream.followed == nullptr || stream.followed->repeats ||
        orders_->has_order_of(stream.followed->path)) {
      return;
    }
    end(stream.followed);
    stream.order.give_up();
  });
  for (auto& [declaration, followed] : orders_of_files_) {
    if (orders_->is_refuted(declaration)) end(followed);
  }
}

void KnownFutureTable::on_deaths(const StreamEnds& ends) {
  const std::lock_guard lock(mutex_);
  forget(ends);
}

std::uint32_t KnownFutureTable::until_use_of(const Followed& followed, std::uint32_t block) {
  const std::uint32_t after = followed.future.until_use(block);
  if (after != KnownFuture::kNever) return std::min(after, BlockView::kUseFarAway - 1);
  if (followed.is_at_its_end()) return BlockView::kUseNever;
  // A window that is still growing says nothing of what is not in it; nor does a whole lap say who
  // else wants what the lap leaves out.
  const bool goes_on = followed.future.is_full() && !followed.knows_its_lap();
  return goes_on ? BlockView::kUseFarAway : BlockView::kUseUnknown;
}

// A file is wanted as long as a program has it open, and then as a whole.
std::uint32_t KnownFutureTable::until_use_of_file(ObjectIndex object,
                                                  const OpenedFile& file) const {
  if (memory_.objects().at(object).opens.load(std::memory_order_relaxed) != 0) return 0;
  const auto found = orders_of_files_.find(file.place.declaration);
  if (found == orders_of_files_.end() || found->second == nullptr) return BlockView::kUseUnknown;
  const std::uint64_t until = until_use_of(*found->second, file.place.item);
  if (until >= BlockView::kUseFarAway) return static_cast<std::uint32_t>(until);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(until * file.blocks, BlockView::kUseFarAway - 1));
}

std::uint32_t KnownFutureTable::until_use(const BlockView& view) const {
  const auto file = files_.find(view.object);
  if (file != files_.end()) return until_use_of_file(view.object, file->second);
  std::uint32_t soonest = BlockView::kUseUnknown;
  bool may_be_soon = false;
  for (const Followed* followed : followed_) {
    if (followed->object != view.object) continue;
    const std::uint32_t until = until_use_of(*followed, raw(view.number));
    may_be_soon = may_be_soon || until == BlockView::kUseUnknown;
    soonest = std::min(soonest, until);
  }
  return may_be_soon && soonest >= BlockView::kUseFarAway ? BlockView::kUseUnknown : soonest;
}

void KnownFutureTable::look_up(std::span<BlockView> blocks) const {
  const std::lock_guard lock(mutex_);
  for (BlockView& view : blocks)
    view.until_use = followed_.empty() ? BlockView::kUseUnknown : until_use(view);
}

std::size_t KnownFutureTable::known_ahead() const {
  const std::lock_guard lock(mutex_);
  std::size_t known = 0;
  for (const Followed* followed : followed_) known += followed->future.size();
  return known;
}

}  // namespace cairn::node
