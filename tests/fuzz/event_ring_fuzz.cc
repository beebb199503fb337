// SPDX-License-Identifier: Apache-2.0
// Event rings as a hostile client writes them: bytes over the ring, and events with a right sum and
// any values. The reader, the table of streams and every learner go on, within their bounds.
//
//   an input: steps, each an opcode (one byte) and its operands
#include <cstring>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "memory/tiers/testing/test_memory.h"
#include "policy/prefetch/predictors.h"
#include "service/learning/event_reader.h"
#include "service/learning/heat_table.h"
#include "service/learning/known_future_table.h"
#include "service/learning/learned_replacement.h"
#include "service/learning/read_streams.h"

namespace {

using namespace cairn;
using namespace cairn::node;

constexpr std::uint64_t kFileBlocks = 1000;

// What the prefetcher does with events, without its threads.
class Fetching final : public AccessObserver {
 public:
  Fetching(const NodeMemory& memory, StreamTable& table) : streams_(memory, table) {}
  void on_accesses(std::span<const ToldAccess> batch) override {
    for (const ToldAccess& told : batch) streams_.take(told);
    WantedBlocks wanted;
    for (int turn = 0; turn < 64 && streams_.next(16, {}, &wanted); ++turn)
      CAIRN_CHECK(wanted.count != 0 && wanted.count <= 16);
    for (int turn = 0; turn < 64 && streams_.next_beyond(16, 256, {}, &wanted); ++turn)
      CAIRN_CHECK(wanted.count != 0 && wanted.count <= 16);
  }
  void on_deaths(const StreamEnds& ends) override { streams_.forget(ends); }

 private:
  ReadStreams streams_;
};

struct Scene {
  Scene()
      : memory(cairn::testing::make_memory(cairn::testing::memory_only(64 * kBlockBytes))),
        table(memory),
        fetching(memory, table),
        future(memory, table),
        learned(memory, "ws-plus", 10),
        heat(memory, "/tmp/cairn-fuzz-no-such-directory"),
        reader(memory, table) {
    Actor actor = cairn::testing::make_actor(memory);
    Acquisition how;
    StoreStamp stamp;
    stamp.size = kFileBlocks * kBlockBytes;
    for (std::uint64_t inode = 1; inode < 5; ++inode)
      memory.objects().acquire(file_key(1, inode, 3), stamp, actor.self, actor.owners(), &how);
    learned.set_future(&future);
    for (AccessObserver* observer :
         std::vector<AccessObserver*>{&fetching, &future, &learned, &heat})
      reader.add(*observer);
  }
  NodeMemory memory;
  StreamTable table;
  Fetching fetching;
  KnownFutureTable future;
  LearnedReplacement learned;
  HeatTable heat;
  EventReader reader;
};

void put_event(Scene& scene, std::uint16_t slot, fuzz::FuzzInput& input) {
  AccessEvent event;
  event.owner = scene.memory.owners().current(slot);
  event.object = static_cast<ObjectIndex>(input.take<std::uint8_t>() % 8);
  event.kind = static_cast<AccessKind>(input.take<std::uint8_t>());
  event.advice = input.take<std::uint8_t>();
  event.stream = static_cast<DescriptionIndex>(input.take<std::uint8_t>());
  event.descriptor = input.take<std::int8_t>();
  const auto shape = input.take<std::uint8_t>();
  // Blocks of the file, mostly.
  event.offset =
      shape % 4 != 0 ? input.take<std::uint16_t>() * kBlockBytes / 4 : input.take<std::uint64_t>();
  event.length = shape % 3 != 0 ? input.take<std::uint16_t>() : input.take<std::uint32_t>();
  event.cycles = input.take<std::uint32_t>();
  scene.memory.tell(event);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // To make the learners takes longer than all else, and what they remember is a part of what they
  // do: they are those of the inputs before. What one input does not show alone shows again with
  // the run's seed.
  static Scene& scene = *new Scene;
  fuzz::FuzzInput input(data, size);
  const auto slots = static_cast<std::uint16_t>(scene.memory.slot_count());
  while (!input.is_at_end()) {
    const auto step = input.take<std::uint8_t>();
    const auto slot = static_cast<std::uint16_t>(1 + (step >> 4) % (slots - 1));
    EventRing& ring = scene.memory.events(slot);
    switch (step % 8) {
      case 0: {
        // Behind the head, so that a jump of the head is a step of its own.
        const std::size_t at = 64 + input.take<std::uint16_t>() % (sizeof ring - 72);
        const auto word = input.take<std::uint64_t>();
        std::memcpy(reinterpret_cast<char*>(&ring) + at, &word, sizeof word);
        break;
      }
      case 1: {
        // The head is the second word.
        const std::uint32_t head = ring.head() + input.take<std::uint16_t>() % 64;
        std::memcpy(reinterpret_cast<char*>(&ring) + sizeof head, &head, sizeof head);
        CAIRN_CHECK(ring.head() == head);
        break;
      }
      case 2:
        (void)scene.reader.take();
        break;
      default:
        put_event(scene, slot, input);
    }
  }
  // A ring is read when its process says so: one event more.
  for (std::uint16_t slot = 1; slot < slots; ++slot) {
    AccessEvent last;
    last.owner = scene.memory.owners().current(slot);
    scene.memory.tell(last);
  }
  (void)scene.reader.take();
  CAIRN_CHECK(scene.table.size() <= StreamTable::kStreamsMax);
  return 0;
}
