// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/write_under_way.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/buffer/uncounted_reads.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

// Looks what a thread's shard says while the thread is at work.
class WatchingService final : public testing::AcceptingService {
 public:
  explicit WatchingService(const Actor& actor) : actor_(actor) { memory = actor.memory; }
  bool hand_over(ObjectIndex index, const Backing& backing) override {
    look();
    return AcceptingService::hand_over(index, backing);
  }
  int note_cut(ObjectIndex, std::uint64_t) override {
    look();
    return 0;
  }
  std::vector<std::uint32_t> seen;

 private:
  void look() { seen.push_back(actor_.counters->writing.load()); }

  const Actor& actor_;
};

class WriteUnderWayTest : public ::testing::Test {
 protected:
  WriteUnderWayTest() {
    StoreStatus status;
    EXPECT_EQ(file_.status(&status), 0);
    index_ = open_object(actor_, file_, status, true);
    EXPECT_NE(index_, ObjectIndex::kNone);
  }
  ~WriteUnderWayTest() override {
    actor_.drop_leases();
    ::close(fd_);
  }
  std::uint32_t writing() const { return actor_.counters->writing.load(); }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor_ = testing::make_actor(memory_);
  int fd_ = testing::make_unnamed_file();
  PosixBacking file_{fd_, O_RDWR};
  WatchingService service_{actor_};
  ObjectIndex index_ = ObjectIndex::kNone;
};

TEST_F(WriteUnderWayTest, TheShardNamesTheObjectUntilTheTimesAreSet) {
  const std::string bytes(100, 'a');
  const ObjectAccess access{actor_, index_, file_, service_};
  EXPECT_EQ(write_object(access, 0, bytes.data(), bytes.size()), 100);
  EXPECT_EQ(service_.seen, std::vector{raw(index_)});
  EXPECT_EQ(writing(), 0u);
  // As of one that the log has, of whose cut the service hears.
  access.object().log_position.store(1);
  EXPECT_EQ(truncate_object(access, 50), 0);
  EXPECT_EQ(service_.seen, (std::vector{raw(index_), raw(index_)}));
  EXPECT_EQ(writing(), 0u);
  access.object().log_position.store(0);
}

TEST_F(WriteUnderWayTest, AWriteInASignalHandlerLeavesTheOneBelow) {
  const WriteUnderWay below({actor_, index_, file_, service_});
  {
    const WriteUnderWay handler({actor_, ObjectIndex{3}, file_, service_});
    EXPECT_EQ(writing(), 3u);
    const ClientSlot& slot = memory_.slot(actor_.self.slot());
    EXPECT_TRUE(slot.may_be_writing(index_)) << "its shard does not say so";
  }
  EXPECT_EQ(writing(), raw(index_));
}

// As frontends/regions keeps what it has read, when a signal comes.
TEST_F(WriteUnderWayTest, AWriteInASignalHandlerIsSeenWhereReadsAreNotCounted) {
  CounterShard* const shard = actor_.counters;
  {
    const UncountedReads uncounted(actor_);
    actor_.count(Counter::kReadBytes, 5);
    const WriteUnderWay handler({actor_, index_, file_, service_});
    EXPECT_TRUE(memory_.slot(actor_.self.slot()).may_be_writing(index_));
  }
  EXPECT_EQ(actor_.counters, shard);
  EXPECT_EQ(shard->get(Counter::kReadBytes), 0u);
  EXPECT_EQ(writing(), 0u);
}

}  // namespace
}  // namespace cairn
