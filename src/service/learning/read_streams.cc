// SPDX-License-Identifier: Apache-2.0
#include "service/learning/read_streams.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "base/file_rule.h"
#include "policy/prefetch/predictors.h"
#include "service/learning/read_events.h"

namespace cairn::node {
namespace {

// After so many calls in a row that found everything in RAM, further ones are not learned from
// until something is missed: there is nothing to fetch, and each would cost the service 1 us.
constexpr std::uint32_t kHitsFollowed = 64;
// The most blocks of one call: a read of gigabytes must not count as gigabytes read ahead.
constexpr std::uint32_t kBlocksPerReadMax = 256;
// So often in a row something that finds no room is tried again.
constexpr unsigned kTriesMax = 50;
// Blocks that are wanted in file tiers are looked for again when so much more has been read: each
// search takes some 100 us.
constexpr std::uint32_t kBeyondStep = 64;
constexpr std::size_t kBeyondRunsMax = 4096;
// Blocks between two pieces that a device reads as if there were none.
constexpr std::int64_t kGapMax = 4;
constexpr std::uint32_t kBeyondBlocksMax = 16'384;

constexpr std::uint8_t predictor_named(std::string_view name) {
  std::uint8_t number = 0;
  while (name != kPredictorMakers[number].name) ++number;
  return number;
}
constexpr std::uint8_t kAdvised = predictor_named("advised");
static_assert(ReadStreams::kByHeat > Chooser::kSupplied, "it counts for no predictor");

std::int64_t blocks_of(const Object& object) {
  const std::uint64_t size = std::min(object.size.load(std::memory_order_relaxed),
                                      object.store_size.load(std::memory_order_relaxed));
  return static_cast<std::int64_t>((size + kBlockBytes - 1) / kBlockBytes);
}

// The same of advice, which may go to the end of the file.
BlockRun advised_run(const AccessEvent& event) {
  BlockRun run = run_of(event);
  if (event.length == UINT32_MAX) run.count = UINT32_MAX;
  return run;
}

// The part of a run that lies in a file of so many blocks.
BlockRun cut_to(const BlockRun& run, std::int64_t blocks) {
  const std::int64_t first = std::max<std::int64_t>(run.first, 0);
  const std::int64_t end = std::min(run.end(), blocks);
  return first < end ? BlockRun{first, static_cast<std::uint32_t>(end - first)} : BlockRun{0, 0};
}

// 64 bits of what the file is, mixed (Fibonacci hashing; Knuth, TAOCP 3, 6.4).
std::uint64_t key_of(const ObjectKey& key) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  std::uint64_t mixed = raw(key.store) * kGolden;
  mixed = (mixed ^ (mixed >> 32) ^ key.id.inode) * kGolden;
  return (mixed ^ (mixed >> 32) ^ static_cast<std::uint64_t>(key.id.birth_ns)) * kGolden;
}

}  // namespace

void ReadStreams::take(const ToldAccess& told) {
  forget(told.ends);
  // The last events of the dead are of no use.
  if (told.stream == nullptr || !memory_.owners().is_alive(told.event.owner)) return;
  const AccessKind kind = told.event.kind;
  if (kind == AccessKind::kOpen) {
    Stream& stream = begin(told);
    stream.order.note_open();
    return list(stream);
  }
  Stream* stream = stream_of(told);
  if (stream == nullptr || stream->is_silenced) return;
  if (kind == AccessKind::kAdvice) {
    advise(*stream, told.event);
  } else {
    read(*stream, told);
  }
  list(*stream);
}

void ReadStreams::forget(const StreamEnds& ends) {
  for (AccessStream* stream : ends.streams) {
    if (streams_.find(*stream) != nullptr) streams_.drop(*stream);
  }
}

// A stream whose open was lost, or that a child has taken over, is followed from a read on that
// was not a hit.
ReadStreams::Stream* ReadStreams::stream_of(const ToldAccess& told) {
  Stream* stream = streams_.find(*told.stream);
  if (stream == nullptr && told.event.kind == AccessKind::kHit) return nullptr;
  if (stream == nullptr) stream = &begin(told);
  stream->descriptor = told.event.descriptor;
  return stream;
}

ReadStreams::Stream& ReadStreams::begin(const ToldAccess& told) {
  Stream& stream = streams_.make(*told.stream);
  stream.object = told.event.object;
  stream.owner = told.event.owner;
  stream.descriptor = told.event.descriptor;
  const Object& object = memory_.objects().at(stream.object);
  const PrefetchHint hint = object.handling().prefetch;
  stream.is_silenced = !object.handling().is_fetched_ahead();
  if (hint == PrefetchHint::kSequential)
    chooser_of(stream).hints().advise(AccessAdvice::kSequential);
  if (hint == PrefetchHint::kWillNeed)
    stream.needed.push_back(BlockRun{0, static_cast<std::uint32_t>(blocks_of(object))});
  return stream;
}

Chooser& ReadStreams::chooser_of(Stream& stream) {
  CAIRN_CHECK((stream.chooser == nullptr) == (stream.knowledge == nullptr));
  if (stream.chooser == nullptr) {
    const std::uint64_t key = key_of(memory_.objects().at(stream.object).key());
    stream.knowledge = node_.file(key);
    stream.chooser = std::make_unique<Chooser>(stream.knowledge, node_, supply_);
    stream.lookahead = stream.knowledge->lookahead.begin();
  }
  return *stream.chooser;
}

void ReadStreams::advise(Stream& stream, const AccessEvent& event) {
  StreamHints& hints = chooser_of(stream).hints();
  switch (event.advice) {
    case POSIX_FADV_RANDOM:
      hints.advise(AccessAdvice::kRandom);
      stream.wanted.clear();
      stream.beyond.clear();
      break;
    case POSIX_FADV_NORMAL:
      hints.advise(AccessAdvice::kNormal);
      break;
    case POSIX_FADV_SEQUENTIAL:
      hints.advise(AccessAdvice::kSequential);
      break;
    case POSIX_FADV_WILLNEED:
      hints.will_need(cut_to(advised_run(event), blocks_of(memory_.objects().at(stream.object))));
      collect_needed(stream);
      break;
    default:
      break;
  }
}

void ReadStreams::collect_needed(Stream& stream) {
  std::array<BlockRun, StreamHints::kRangesMax> ranges;
  const std::size_t count = stream.chooser->hints().take_wanted(ranges, UINT32_MAX);
  for (std::size_t at = 0; at < count; ++at) stream.needed.push_back(ranges[at]);
}

void ReadStreams::look_for_order(Stream& stream, const ToldAccess& told, BlockRun run) {
  if (orders_ == nullptr) return;
  OrderSearch::Found found =
      stream.order.look(*orders_, told, run, OrderReader::kFetching, path_of_);
  if (found.outcome == OrderSearch::Outcome::kFound)
    chooser_of(stream).hints().declare(std::move(found.order));
}

void ReadStreams::read(Stream& stream, const ToldAccess& told) {
  const AccessEvent& event = told.event;
  const bool is_quiet = event.kind == AccessKind::kHit;
  stream.hits_in_a_row = is_quiet ? stream.hits_in_a_row + 1 : 0;
  // A stream that follows a declared order must not lose its place in it.
  if (stream.hits_in_a_row > kHitsFollowed && stream.order.path().empty()) return;
  const BlockRun run = run_of(event);
  // The next piece of the same block.
  if (run == stream.last && run.count == 1) return;
  stream.last = run;
  look_for_order(stream, told, run);
  if (stream.chooser == nullptr && is_quiet) return;
  Chooser& chooser = chooser_of(stream);
  judge(stream, event.kind, run);
  chooser.set_file_blocks(blocks_of(memory_.objects().at(stream.object)));
  chooser.observe(run);
  if (!stream.is_repeated && stream.order.path().empty()) look_for_repeated(stream, told);
  if (!stream.order.path().empty() && chooser.hints().is_order_refuted()) {
    orders_->refute(stream.order.path());
    stream.order.forget_path();
  }
  stream.blocks_per_read = std::min(run.count, kBlocksPerReadMax);
  foresee(stream);
  read_on(stream, stream.blocks_per_read);
}

// Repeated reads matter to replacement, once blocks leave.
void ReadStreams::look_for_repeated(Stream& stream, const ToldAccess& told) {
  const bool has_room = memory_.pool(TierId::kMemory).common_slabs() >
                        memory_.organizer_board().roomy_slabs.load(std::memory_order_relaxed);
  if (found_repeated_ == nullptr || has_room) return;
  RepeatedOrder order = stream.chooser->repeated();
  if (order.runs.empty()) return;
  stream.is_repeated = true;
  found_repeated_(told, std::move(order));
}

// Whether what was foreseen came in time.
void ReadStreams::judge(Stream& stream, AccessKind kind, BlockRun run) {
  const auto was_foreseen = [&] {
    return std::any_of(stream.wanted.begin(), stream.wanted.end(), [&](const BlockRun& wanted) {
      return wanted.first < run.end() && run.first < wanted.end();
    });
  };
  const bool is_late = kind == AccessKind::kLate || (kind == AccessKind::kMiss && was_foreseen());
  if (!is_late) return;
  CAIRN_CHECK(stream.knowledge != nullptr);
  stream.lookahead.on_late(run.count);
  stream.knowledge->lookahead.learn(stream.lookahead);
}

void ReadStreams::foresee(Stream& stream) {
  const unsigned factor = stream.chooser->hints().ahead_factor();
  predict(stream, stream.lookahead.runs_ahead(stream.blocks_per_read, factor),
          stream.lookahead.blocks_ahead(factor), &stream.wanted);
}

// The program may have read by now some of the blocks that were wanted later.
void ReadStreams::read_on(Stream& stream, std::uint32_t blocks) {
  stream.blocks_read_on += blocks;
  if (stream.blocks_read_on < kBeyondStep) return;
  stream.beyond.clear();
  if (stream.lookahead.is_at_most()) list_beyond(stream);
}

void ReadStreams::look_beyond(Stream& stream, std::uint32_t blocks_max) {
  const std::uint32_t blocks = std::min(blocks_max, kBeyondBlocksMax);
  const std::size_t runs = std::max<std::size_t>(blocks / stream.blocks_per_read, 1);
  predict(stream, std::min(runs, kBeyondRunsMax), blocks, &stream.beyond);
  stream.blocks_read_on = 0;
}

// The soonest first.
void ReadStreams::predict(Stream& stream, std::size_t runs_max, std::uint64_t blocks_max,
                          std::deque<BlockRun>* into) {
  into->clear();
  room_.resize(runs_max);
  const Chooser::Choice choice = stream.chooser->predict(room_);
  CAIRN_CHECK(choice.count <= runs_max);
  if (choice.count == 0) return;
  stream.predictor = static_cast<std::uint8_t>(choice.predictor);
  const std::int64_t blocks = blocks_of(memory_.objects().at(stream.object));
  std::uint64_t foreseen = 0;
  for (std::size_t at = 0; at < choice.count && foreseen < blocks_max; ++at) {
    const BlockRun run = cut_to(room_[at], blocks);
    if (run.count == 0) continue;
    foreseen += run.count;
    into->push_back(run);
  }
}

void ReadStreams::list(Stream& stream) {
  if (stream.is_listed) return;
  if (stream.wanted.empty() && stream.needed.empty() && stream.hot.empty()) return;
  stream.is_listed = true;
  enter(stream, &active_);
}

void ReadStreams::list_beyond(Stream& stream) {
  if (stream.is_listed_beyond) return;
  stream.is_listed_beyond = true;
  enter(stream, &beyond_);
}

// Streams that have ended leave their places behind while nothing is taken.
void ReadStreams::enter(Stream& stream, Listed* listed) {
  listed->push_back(stream.weak_from_this());
  if (listed->size() <= 2 * StreamTable::kStreamsMax) return;
  std::erase_if(*listed, [](const std::weak_ptr<Stream>& entry) { return entry.expired(); });
}

// Null when it has ended.
std::shared_ptr<ReadStreams::Stream> ReadStreams::take_first(Listed* listed) {
  std::shared_ptr<Stream> first = listed->front().lock();
  listed->pop_front();
  return first;
}

ReadStreams::Place ReadStreams::place_of(const Stream& stream, std::int64_t block, Aim aim) const {
  const BucketIndex bucket =
      memory_.directory().find(stream.object, static_cast<BlockNumber>(block));
  if (bucket == BucketIndex::kNone) return Place::kStore;
  if (aim == Aim::kBelow || memory_.in_memory(bucket)) return Place::kGoodEnough;
  // Without much room in RAM it is as well where it is, unless it has been waiting there.
  const bool comes_up = brings_up_ || aim == Aim::kMemory || memory_.block(bucket).is_unread();
  return comes_up ? Place::kBelow : Place::kGoodEnough;
}

// The first blocks of `runs` that are not where they are wanted, as far as they lie side by side in
// whichever order and in the same place. Blocks on the way that are good enough are taken as well.
BlockRun ReadStreams::take_run(const Stream& stream, std::deque<BlockRun>* runs, unsigned count_max,
                               Aim aim, Place* place) const {
  BlockRun taken{0, 0};
  while (!runs->empty() && taken.count < count_max) {
    BlockRun& front = runs->front();
    const bool joins =
        taken.count == 0 || front.first == taken.end() || front.first + 1 == taken.first;
    const Place where = place_of(stream, front.first, aim);
    if (where != Place::kGoodEnough) {
      if (!joins || (taken.count != 0 && where != *place)) break;
      *place = where;
      const bool is_before = taken.count != 0 && front.first < taken.first;
      taken = BlockRun{taken.count == 0 || is_before ? front.first : taken.first, taken.count + 1};
    } else if (taken.count != 0) {
      break;
    }
    ++front.first;
    if (--front.count == 0) runs->pop_front();
  }
  CAIRN_CHECK(taken.count <= count_max);
  return taken;
}

WantedBlocks ReadStreams::wanted_of(Stream& stream, BlockRun run, std::uint8_t predictor) {
  CAIRN_CHECK(run.count != 0);
  CAIRN_CHECK(run.first >= 0);
  WantedBlocks wanted;
  wanted.stream = stream.weak_from_this();
  wanted.object = stream.object;
  wanted.owner = stream.owner;
  wanted.descriptor = stream.descriptor;
  wanted.first = static_cast<BlockNumber>(run.first);
  wanted.count = run.count;
  wanted.predictor = predictor;
  return wanted;
}

bool ReadStreams::follows(ObjectIndex object, const BlockRun& run,
                          std::span<const BlocksAtWork> at_work) {
  return std::any_of(at_work.begin(), at_work.end(), [&](const BlocksAtWork& now) {
    return now.object == object && run.first >= now.run.first &&
           run.first <= now.run.end() + kGapMax;
  });
}

bool ReadStreams::next(unsigned count_max, std::span<const BlocksAtWork> at_work,
                       WantedBlocks* wanted) {
  for (std::size_t left = active_.size(); left > 0; --left) {
    const std::shared_ptr<Stream> first = take_first(&active_);
    if (first == nullptr) continue;
    Stream& stream = *first;
    stream.is_listed = false;
    std::uint8_t predictor = stream.predictor;
    std::deque<BlockRun>* from = &stream.wanted;
    Place place = Place::kStore;
    BlockRun run = take_run(stream, from, count_max, Aim::kSoon, &place);
    if (run.count == 0) {
      from = &stream.needed;
      run = take_run(stream, from, count_max, Aim::kSoon, &place);
      predictor = kAdvised;
    }
    if (run.count == 0) {
      from = &stream.hot;
      run = take_run(stream, from, count_max, Aim::kMemory, &place);
      predictor = kByHeat;
    }
    const bool waits = run.count != 0 && follows(stream.object, run, at_work);
    if (waits) from->push_front(run);
    list(stream);
    if (waits || run.count == 0) continue;
    *wanted = wanted_of(stream, run, predictor);
    wanted->is_below = place == Place::kBelow;
    return true;
  }
  return false;
}

bool ReadStreams::next_beyond(unsigned count_max, std::uint32_t blocks_max,
                              std::span<const BlocksAtWork> at_work, WantedBlocks* wanted) {
  for (std::size_t left = beyond_.size(); left > 0; --left) {
    const std::shared_ptr<Stream> first = take_first(&beyond_);
    if (first == nullptr) continue;
    Stream& stream = *first;
    stream.is_listed_beyond = false;
    const bool is_at_work = std::any_of(at_work.begin(), at_work.end(), [&](const auto& now) {
      return now.object == stream.object;
    });
    if (is_at_work) {
      list_beyond(stream);
      continue;
    }
    if (stream.blocks_read_on >= kBeyondStep && stream.lookahead.is_at_most())
      look_beyond(stream, blocks_max);
    Place place = Place::kStore;
    std::uint8_t predictor = stream.predictor;
    BlockRun run = take_run(stream, &stream.beyond, count_max, Aim::kBelow, &place);
    if (run.count == 0) {
      run = take_run(stream, &stream.warm, count_max, Aim::kBelow, &place);
      predictor = kByHeat;
    }
    if (!stream.beyond.empty() || !stream.warm.empty()) list_beyond(stream);
    if (run.count == 0) continue;
    *wanted = wanted_of(stream, run, predictor);
    wanted->is_for_below = true;
    return true;
  }
  return false;
}

void ReadStreams::give_back(const WantedBlocks& wanted, bool for_good) {
  const std::shared_ptr<Stream> known = wanted.stream.lock();
  if (known == nullptr) return;
  Stream& stream = *known;
  if (for_good) {
    stream.is_silenced = true;
    stream.forget_wanted();
    return;
  }
  // Room may never come, such as for a run that has its share: then something else is tried.
  if (++stream.tries > kTriesMax) {
    stream.tries = 0;
    stream.forget_wanted();
    return;
  }
  const BlockRun run{static_cast<std::int64_t>(raw(wanted.first)), wanted.count};
  const bool is_by_heat = wanted.predictor == kByHeat;
  if (wanted.is_for_below) {
    (is_by_heat ? stream.warm : stream.beyond).push_front(run);
    return list_beyond(stream);
  }
  std::deque<BlockRun>& asked = wanted.predictor == kAdvised ? stream.needed : stream.wanted;
  (is_by_heat ? stream.hot : asked).push_front(run);
  list(stream);
}

void ReadStreams::want_hot(ObjectIndex object, BlockRun run, bool is_for_below) {
  if (run.count == 0) return;
  Stream* reader = nullptr;
  streams_.for_each([&](Stream& stream) {
    if (reader == nullptr && stream.object == object && !stream.is_silenced) reader = &stream;
  });
  if (reader == nullptr) return;
  (is_for_below ? reader->warm : reader->hot).push_back(run);
  is_for_below ? list_beyond(*reader) : list(*reader);
}

void ReadStreams::note_fetched(const WantedBlocks& wanted) {
  if (const std::shared_ptr<Stream> stream = wanted.stream.lock(); stream != nullptr)
    stream->tries = 0;
}

void ReadStreams::note_evicted_unused() {
  streams_.for_each([](Stream& stream) {
    stream.lookahead.on_evicted_unused();
    if (stream.knowledge != nullptr) stream.knowledge->lookahead.learn(stream.lookahead);
  });
}

}  // namespace cairn::node
