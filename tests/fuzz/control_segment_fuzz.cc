// SPDX-License-Identifier: Apache-2.0
// The control segment as a hostile client leaves it, under all of the service's readers: takeover,
// sweeps, audit of counts, flushes, views for `cairn status`. They end, and touch no memory but the
// node's.
//
//   an input: words to be written, each an opcode and a table (a byte each), where in it, what
//
// Here each owner is gone as soon as a waiter looks for it, so that no lock is waited for without
// end.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "memory/flush/flush_object.h"
#include "service/attachment/sweep.h"
#include "service/recovery/testing/left_memory.h"
#include "service/write_back/dirty_view.h"
#include "service/write_back/flusher.h"

namespace {

using namespace cairn;
using namespace cairn::node;

struct AllGone final : OwnerWatch {
  bool is_gone(Owner) const override { return true; }
};

// Generations name the living, and the identity is checked before anything else is believed.
constexpr Table kTables[] = {
    Table::kService,     Table::kUnserved,     Table::kStamps,         Table::kPlacement,
    Table::kDevices,     Table::kFlusher,      Table::kOrganizer,      Table::kEvents,
    Table::kWarmer,      Table::kPoolBoard,    Table::kDescriptorRoom, Table::kExtendLocks,
    Table::kRules,       Table::kMoves,        Table::kFetches,        Table::kAccounts,
    Table::kTold,        Table::kRequests,     Table::kObjects,        Table::kObjectLines,
    Table::kHolds,       Table::kDescriptions, Table::kBlocks,         Table::kBlockLines,
    Table::kMiddleHints, Table::kSmallHints,   Table::kDirtyMap,       Table::kSlabs,
    Table::kFreeHints};

class Scene final : public node::testing::LeftMemory {
 public:
  Scene() {
    SetUp();
    memory_.owners().watch_with(&all_gone_);
    for (std::uint32_t number = 0; number < 3; ++number) write(number, 'a');
    service_ = actor_of(service());
  }
  ~Scene() override { TearDown(); }

  void write_word(fuzz::FuzzInput& input) {
    const MemoryMap map(memory_.shape());
    const auto table =
        static_cast<unsigned>(kTables[input.take<std::uint8_t>() % std::size(kTables)]);
    const TableRow& row = map.rows()[table];
    const auto how = input.take<std::uint8_t>();
    const std::uint64_t at = input.take<std::uint16_t>() * std::uint64_t{8};
    const auto value = input.take<std::uint64_t>();
    if (row.bytes() < sizeof value) return;
    // Near the begin, where elements are in use, or near the end.
    const std::uint64_t words = row.bytes() / sizeof value;
    const std::uint64_t word = how % 8 == 0 ? words - 1 - at / 8 % words : at / 8 % words;
    std::byte* const place = memory_.control().base() + row.offset + word * sizeof value;
    std::uint64_t seen = 0;
    std::memcpy(&seen, place, sizeof seen);
    const std::uint64_t next = how % 3 == 0 ? seen ^ value : value;
    std::memcpy(place, &next, sizeof next);
  }

  void act(std::uint8_t what) {
    switch (what % 8) {
      case 0:
        service_ = actor_of(taken_over().service);
        break;
      case 1:
        (void)sweep_buckets(service_);
        break;
      case 2: {
        std::vector<TransitHold> in_transit;
        const Owner dead(kClient, static_cast<std::uint8_t>(what >> 3));
        (void)sweep_holds(service_, {&dead, 1}, &in_transit);
        for (const TransitHold& hold : in_transit) release_transit(service_, hold);
        break;
      }
      case 3:
        (void)sweep_locks(service_);
        (void)count_dead_locks(memory_);
        break;
      case 4:
        (void)sweep_settlings(service_);
        (void)sweep_cuts(service_);
        (void)settle_store(service_, index_, *file_);
        break;
      case 5: {
        FlushRequest request(index_, *file_);
        request.wait_for_others = (what & 8) != 0;
        (void)flush_object(service_, request);
        break;
      }
      case 6: {
        const StoreFiles files(memory_);
        (void)view_dirty(memory_, files, 16);
        break;
      }
      default:
        memory_.rules().decide(RuleQuestion{"/data/file", nullptr, 0, 7, true, true}, {});
        lease_all();
    }
  }

 private:
  // As the organizer and the prefetcher do it.
  void lease_all() {
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      BucketPool& pool = memory_.pool(static_cast<TierId>(tier));
      std::array<std::uint32_t, 2 * kSlabs> slabs{};
      const unsigned leased = pool.lease_whole(service_.self, slabs);
      for (unsigned at = 0; at < leased; ++at) {
        CAIRN_CHECK(slabs[at] < pool.slab_count());
        pool.give_back(SlabIndex{slabs[at]}, service_.self);
      }
    }
  }

  void TestBody() override {}
  const AllGone all_gone_;
  Actor service_;
};

// A file never grows beyond this, whatever size stands in the memory. As in the service, that is an
// error and no signal.
bool bound_files() {
  constexpr rlim_t kBytesMax = rlim_t{1} << 40;
  const rlimit bound{kBytesMax, kBytesMax};
  ::signal(SIGXFSZ, SIG_IGN);
  return ::setrlimit(RLIMIT_FSIZE, &bound) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_bounded = bound_files();
  CAIRN_CHECK(is_bounded);
  Scene scene;
  fuzz::FuzzInput input(data, size);
  for (int step = 0; step < 64 && !input.is_at_end(); ++step) {
    const auto what = input.take<std::uint8_t>();
    if (what < 128) {
      scene.write_word(input);
    } else {
      scene.act(what);
    }
  }
  for (std::uint8_t what : {5, 0, 1, 2, 3, 4, 13, 6, 7}) scene.act(what);
  return 0;
}
