// SPDX-License-Identifier: Apache-2.0
// What a node that runs for months remembers of what programs read: everybody who learns, told of
// random programs that come and go, keeps within the memory that the headers state. CAIRN_SEED
// replays a run, CAIRN_LEARNER_EVENTS makes it longer.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "memory/tiers/testing/test_memory.h"
#include "service/learning/heat_table.h"
#include "service/learning/known_future_table.h"
#include "service/learning/learned_replacement.h"
#include "service/learning/read_streams.h"

namespace cairn::node {
namespace {

#if defined(CAIRN_TSAN) || defined(CAIRN_ASAN)
constexpr std::uint64_t kEvents = 100'000;
#else
constexpr std::uint64_t kEvents = 1'000'000;
#endif
constexpr std::uint64_t kTierBytes = std::uint64_t{1} << 30;
constexpr unsigned kFiles = 1500;
constexpr unsigned kReaders = 48;
constexpr unsigned kBatch = 64;

std::uint64_t number_from_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

// Programs that open files, read them in one of several ways for a while, and close them.
class Programs {
 public:
  Programs(const NodeMemory& memory, std::vector<ObjectIndex> files, std::uint64_t seed)
      : memory_(memory), files_(std::move(files)), random_(seed), readers_(kReaders) {}

  // The next report.
  ToldAccess next() {
    Reader& reader = readers_[random_() % kReaders];
    if (reader.left == 0) return open(reader);
    if (--reader.left == 0) return told(reader, AccessKind::kClose, 0);
    const AccessKind kind = random_() % 3 == 0 ? AccessKind::kHit : AccessKind::kMiss;
    return told(reader, kind, block_of(reader, reader.place++));
  }

 private:
  enum class Pattern : unsigned { kSequential, kStride, kShuffle, kLoop, kRandom, kSkewed, kCount };
  struct Reader {
    ObjectIndex object = ObjectIndex::kNone;
    std::uint32_t stream = 0;
    std::uint64_t blocks = 1;
    Pattern pattern{};
    std::uint64_t place = 0;
    std::uint64_t left = 0;
  };

  ToldAccess open(Reader& reader) {
    reader.object = files_[std::min(random_() % files_.size(), random_() % files_.size())];
    reader.blocks = memory_.objects().at(reader.object).size.load() / kBlockBytes;
    reader.stream = 1 + stream_++ % (memory_.descriptions().capacity() - 1);  // 0 is none
    reader.pattern = static_cast<Pattern>(random_() % static_cast<unsigned>(Pattern::kCount));
    reader.place = 0;
    reader.left = 100 + random_() % 20'000;
    return told(reader, AccessKind::kOpen, 0);
  }
  std::uint64_t block_of(const Reader& reader, std::uint64_t place) {
    switch (reader.pattern) {
      case Pattern::kStride:
        return 3 * place % reader.blocks;
      case Pattern::kShuffle:  // the same for all of the file's readers
        return place % reader.blocks * 7919 % reader.blocks;
      case Pattern::kLoop:
        return place % (reader.blocks / 2 + 1);
      case Pattern::kRandom:
        return random_() % reader.blocks;
      case Pattern::kSkewed:
        return std::min(
            {random_() % reader.blocks, random_() % reader.blocks, random_() % reader.blocks});
      default:
        return place % reader.blocks;
    }
  }
  ToldAccess told(const Reader& reader, AccessKind kind, std::uint64_t block) {
    ToldAccess told;
    told.event.owner = memory_.owners().current(1);
    told.event.object = reader.object;
    told.event.stream = static_cast<DescriptionIndex>(reader.stream);
    told.event.descriptor = 3;
    told.event.kind = kind;
    told.event.cycles = ++cycles_;
    told.event.offset = block * kBlockBytes;
    told.event.length = kBlockBytes;
    return told;
  }

  const NodeMemory& memory_;
  const std::vector<ObjectIndex> files_;
  std::mt19937_64 random_;
  std::vector<Reader> readers_;
  std::uint64_t cycles_ = 0;
  std::uint32_t stream_ = 0;
};

class Learner : public ::testing::Test {
 protected:
  Learner() {
    MemoryShape shape = testing::memory_only(kTierBytes);
    shape.objects_max = 2 * kFiles;
    memory_ = testing::make_memory(shape);
    // Always short of room, so that orders that repeat are looked for.
    memory_.organizer_board().roomy_slabs.store(UINT32_MAX);
    std::string directory = ::testing::TempDir() + "/cairn-learner-XXXXXX";
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    directory_ = directory;
  }
  ~Learner() override { std::filesystem::remove_all(directory_); }

  // Files of 16 blocks to 32768, most of them small.
  std::vector<ObjectIndex> make_files(std::mt19937_64 random) {
    const Actor actor = testing::make_actor(memory_);
    std::vector<ObjectIndex> files;
    for (unsigned file = 0; file < kFiles; ++file) {
      Acquisition how;
      StoreStamp stamp;
      stamp.size = (std::uint64_t{16} << std::min(random() % 12, random() % 12)) * kBlockBytes;
      files.push_back(memory_.objects().acquire(file_key(1, 100 + file, 3), stamp, actor.self,
                                                actor.owners(), &how));
    }
    return files;
  }

  NodeMemory memory_;
  std::string directory_;
};

TEST_F(Learner, KeepsWithinItsMemory) {
  const std::uint64_t seed = number_from_environment("CAIRN_SEED", 1);
  const std::uint64_t events = number_from_environment("CAIRN_LEARNER_EVENTS", kEvents);
  SCOPED_TRACE("seed " + std::to_string(seed));
  Programs programs(memory_, make_files(std::mt19937_64(seed)), seed);
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  DeclaredOrders orders;
  StreamTable table(memory_);
  ReadStreams streams(memory_, table);
  KnownFutureTable future(memory_, table);
  LearnedReplacement learned(memory_, "ws-plus", 10);
  HeatTable heat(memory_, directory_);
  future.follow(&orders, [](const ToldAccess&) { return std::string(); });
  std::size_t found = 0;
  streams.set_found_repeated([&](const ToldAccess& told, RepeatedOrder order) {
    ++found;
    future.found(told, std::move(order));
  });

  // Knowledge of files, its tables, what is known ahead, the experts of one tier, 256 heat maps.
  const std::size_t bound = (std::size_t{64} << 20) + (std::size_t{16} << 20) +
                            kTierBytes * 15 / 10'000 + kTierBytes * 5 / 1000 +
                            HeatTable::kMapsMax * FileHeat::kMemoryBytesMax;
  std::size_t most_of_first_half = 0;
  std::size_t most = 0;
  std::vector<ToldAccess> batch(kBatch);
  for (std::uint64_t told = 0; told < events; told += kBatch) {
    std::generate(batch.begin(), batch.end(), [&] { return programs.next(); });
    table.follow(batch);
    for (const ToldAccess& each : batch) streams.take(each);
    for (WantedBlocks wanted; streams.next(16, {}, &wanted);) ReadStreams::note_fetched(wanted);
    future.on_accesses(batch);
    learned.on_accesses(batch);
    heat.on_accesses(batch);
    table.forget_ended();
    if (told / kBatch % 256 != 0) continue;
    const std::size_t now = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
    most = std::max(most, now > before ? now - before : 0);
    if (told < events / 2) most_of_first_half = most;
    ASSERT_LE(most, bound) << "after " << told << " events";
  }
  std::printf(
      "%.1f MiB at most after %lu events, %.1f MiB in their first half, of %.1f MiB; "
      "%zu orders came again\n",
      static_cast<double>(most) / (1 << 20), events,
      static_cast<double>(most_of_first_half) / (1 << 20), static_cast<double>(bound) / (1 << 20),
      found);
  EXPECT_GT(found, events / 1'000'000);
  // What grows without end shows in a long run, whatever the bound.
  if (events >= 20 * kEvents) {
    EXPECT_LE(most, most_of_first_half + most_of_first_half / 20);
  }
}

}  // namespace
}  // namespace cairn::node
