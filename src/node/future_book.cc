// SPDX-License-Identifier: Apache-2.0
#include "node/future_book.h"

#include <algorithm>

namespace cairn::node {
namespace {

// Of a stream, that are compared with the beginnings of declared orders: as for fetching ahead
// (node/read_streams.h).
constexpr unsigned kFirstReads = 4;
// Uses that the window grows by with each read, until it is full: 10 us.
constexpr std::size_t kUsesPerRead = 256;
// An order of which more than one in so many blocks was unexpected is not followed any more, once
// there were kUnexpectedMax too many.
constexpr unsigned kBlocksPerUnexpected = 4;
constexpr unsigned kUnexpectedMax = 32;
// Of one call that reads very much.
constexpr std::uint32_t kBlocksPerReadMax = 4096;
constexpr std::uint32_t kNoBlock = UINT32_MAX;

bool is_read(AccessKind kind) { return kind >= AccessKind::kMiss && kind <= AccessKind::kHit; }

BlockRun run_of(const AccessEvent& event) {
  const auto first = static_cast<std::int64_t>(event.offset / kBlockBytes);
  const std::uint64_t end = event.offset + std::max<std::uint64_t>(event.length, 1);
  const auto past = static_cast<std::int64_t>((end + kBlockBytes - 1) / kBlockBytes);
  return BlockRun{first, static_cast<std::uint32_t>(past - first)};
}

std::size_t uses_for(const NodeMemory& memory) {
  std::size_t blocks = 0;
  for (unsigned tier = 0; tier < memory.tiers_for(BufferingMode::kAsync); ++tier)
    blocks += memory.pool(static_cast<TierId>(tier)).slab_count();
  return std::clamp<std::size_t>(3 * blocks, 1, FutureBook::kUsesMax);
}

}  // namespace

FutureBook::FutureBook(const NodeMemory& memory) : memory_(memory), uses_max_(uses_for(memory)) {}

void FutureBook::follow(OrderBook* orders, PathOf path_of) {
  orders_ = orders;
  path_of_ = std::move(path_of);
}

void FutureBook::take(std::span<const ToldAccess> batch) {
  if (orders_ == nullptr || orders_->is_empty()) return;
  const std::lock_guard lock(mutex_);
  if (refuted_seen_ != orders_->refuted()) drop_refuted();
  for (const ToldAccess& told : batch) {
    if (told.event.kind == AccessKind::kClose) {
      const auto found = streams_.find(told.stream());
      if (found == streams_.end()) continue;
      end_stream(found->second);
      streams_.erase(found);
    } else if (is_read(told.event.kind) && told.event.object != ObjectIndex::kNone) {
      read(told);
    }
  }
}

FutureBook::Stream& FutureBook::stream_of(const ToldAccess& told) {
  // Streams of files without an order are met again at their next read.
  if (streams_.size() >= kStreamsMax)
    std::erase_if(streams_, [](const auto& entry) { return entry.second.followed == nullptr; });
  Stream& stream = streams_[told.stream()];
  if (stream.object != told.event.object) {
    end_stream(stream);
    stream.object = told.event.object;
    stream.owner = told.event.owner;
    stream.reads_looked_at = 0;
  }
  return stream;
}

void FutureBook::read(const ToldAccess& told) {
  Stream& stream = stream_of(told);
  const BlockRun run = run_of(told.event);
  if (stream.followed == nullptr) look_for_order(stream, told, run);
  if (stream.followed == nullptr) return;
  Followed& followed = *stream.followed;
  pass(followed, run);
  look_ahead(followed);
  if (followed.doubt < kUnexpectedMax * kBlocksPerUnexpected) return;
  orders_->refute(followed.path);
  drop_refuted();
}

// Which epoch of which declared order the stream is at shows in what it reads first.
void FutureBook::look_for_order(Stream& stream, const ToldAccess& told, BlockRun run) {
  if (stream.reads_looked_at >= kFirstReads) return;
  if (stream.reads_looked_at++ == 0) stream.path = path_of_(told);
  if (!orders_->has_order_of(stream.path)) {
    stream.reads_looked_at = kFirstReads;
    return;
  }
  DeclaredOrder order = orders_->order_from(stream.path, run, OrderReader::kReplacement);
  if (order != nullptr) {
    follow_order(stream, std::move(order));
    stream.reads_looked_at = kFirstReads;
  } else if (stream.reads_looked_at == kFirstReads) {
    orders_->refute(stream.path);
  }
}

void FutureBook::follow_order(Stream& stream, DeclaredOrder order) {
  if (followed_.size() >= kFollowedMax) return;
  stream.followed = std::make_unique<Followed>();
  Followed& fresh = *stream.followed;
  fresh.object = stream.object;
  fresh.path = stream.path;
  fresh.order = std::move(order);
  fresh.passed.fill(kNoBlock);
  fresh.skipped.fill(kNoBlock);
  followed_.push_back(&fresh);
  share_window();
  look_ahead(fresh);
}

// Who knows more than its part now learns no more until it does not.
void FutureBook::share_window() {
  for (Followed* followed : followed_)
    followed->future.set_uses_max(std::max<std::size_t>(1, uses_max_ / followed_.size()));
}

void FutureBook::look_ahead(Followed& followed) {
  const std::vector<BlockRun>& order = *followed.order;
  // Of a window that is full, what is past is replaced however much that was.
  const std::size_t uses = std::max(kUsesPerRead, std::size_t{kSkipsMax} + 1);
  for (std::size_t told = 0; told < uses && !followed.future.is_full(); ++told) {
    while (!followed.is_at_its_end() && followed.blocks_of_run >= order[followed.run].count) {
      ++followed.run;
      followed.blocks_of_run = 0;
    }
    if (followed.is_at_its_end()) return;
    followed.future.expect(
        static_cast<std::uint32_t>(order[followed.run].first + followed.blocks_of_run));
    ++followed.blocks_of_run;
  }
}

// The last of so many uses has come, and the others are past with it.
void FutureBook::move_on(Followed& followed, std::uint32_t uses) {
  for (std::uint32_t at = 0; at + 1 < uses; ++at)
    followed.skipped[followed.skipped_count++ % kSkipsMax] = followed.future.block_after(at);
  followed.passed[followed.passed_count++ % kSkipsMax] = followed.future.block_after(uses - 1);
  followed.future.pass(uses);
  if (followed.stray_at != KnownFuture::kNever)
    followed.stray_at = followed.stray_at >= uses ? followed.stray_at - uses : KnownFuture::kNever;
}

void FutureBook::pass(Followed& followed, BlockRun run) {
  // The next piece of the same block.
  if (run == followed.last && run.count == 1) return;
  followed.last = run;
  const std::uint32_t count = std::min(run.count, kBlocksPerReadMax);
  for (std::uint32_t at = 0; at < count; ++at)
    pass_block(followed, static_cast<std::uint32_t>(run.first + at));
}

void FutureBook::pass_block(Followed& followed, std::uint32_t block) {
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

void FutureBook::end_stream(Stream& stream) {
  if (stream.followed == nullptr) return;
  std::erase(followed_, stream.followed.get());
  stream.followed.reset();
  share_window();
}

void FutureBook::drop_refuted() {
  refuted_seen_ = orders_->refuted();
  for (auto& [number, stream] : streams_) {
    if (stream.followed == nullptr || orders_->has_order_of(stream.followed->path)) continue;
    end_stream(stream);
    stream.reads_looked_at = kFirstReads;
  }
}

void FutureBook::forget_dead() {
  const std::lock_guard lock(mutex_);
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (memory_.owners().is_alive(at->second.owner)) {
      ++at;
      continue;
    }
    end_stream(at->second);
    at = streams_.erase(at);
  }
}

std::uint32_t FutureBook::until_use(ObjectIndex object, std::uint32_t block) const {
  std::uint32_t soonest = BlockView::kUseUnknown;
  bool may_be_soon = false;
  for (const Followed* followed : followed_) {
    if (followed->object != object) continue;
    const std::uint32_t after = followed->future.until_use(block);
    if (after != KnownFuture::kNever) {
      soonest = std::min({soonest, after, BlockView::kUseFarAway - 1});
    } else if (followed->is_at_its_end()) {
      soonest = std::min(soonest, BlockView::kUseNever);
    } else {
      soonest = std::min(soonest, BlockView::kUseFarAway);
      // A window that is still growing says nothing of what is not in it.
      may_be_soon = may_be_soon || !followed->future.is_full();
    }
  }
  return may_be_soon && soonest >= BlockView::kUseFarAway ? BlockView::kUseUnknown : soonest;
}

void FutureBook::look_up(std::span<BlockView> blocks) const {
  const std::lock_guard lock(mutex_);
  for (BlockView& view : blocks) {
    view.until_use =
        followed_.empty() ? BlockView::kUseUnknown : until_use(view.object, raw(view.number));
  }
}

std::size_t FutureBook::known_ahead() const {
  const std::lock_guard lock(mutex_);
  std::size_t known = 0;
  for (const Followed* followed : followed_) known += followed->future.size();
  return known;
}

}  // namespace cairn::node
