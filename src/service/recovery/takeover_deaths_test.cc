// SPDX-License-Identifier: Apache-2.0
// Services killed with SIGKILL one after the other while other processes write, read and ask: real
// processes on one memory. CAIRN_SEED repeats a run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/recovery/takeover.h"

namespace cairn::node {
namespace {

constexpr unsigned kClients = 3;
constexpr std::uint32_t kBlocks = 8;  // of each client's file
constexpr std::uint32_t kSlabs = 16;  // fewer than all files have
constexpr unsigned kServices = 40;
constexpr unsigned kLongSeconds = 60;
constexpr unsigned kLongSleeps = 200;

unsigned seed_of_run() {
  const char* given = std::getenv("CAIRN_SEED");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given))
                          : static_cast<unsigned>(::time(nullptr));
}

class TakeoverDeaths : public ::testing::Test {
 protected:
  struct File {
    int fd = -1;
    std::unique_ptr<PosixBacking> backing;
    ObjectIndex object{};
  };

  void SetUp() override {
    MemoryShape shape;
    shape.tier_bytes[0] = kSlabs * kBlockBytes;
    shape.tier_bytes[1] = kSlabs / 2 * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 64;
    auto memory = NodeMemory::create(shape, {"", "/var/tmp"});
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    accepts_.memory = &memory_;
    void* shared = ::mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    is_over_ = new (shared) std::atomic<unsigned>(0);
    for (unsigned client = 0; client < kClients; ++client) make_file(client);
  }
  void TearDown() override {
    for (const File& file : files_) ::close(file.fd);
    ::munmap(is_over_, sizeof(std::atomic<unsigned>));
  }

  void make_file(unsigned client) {
    File& file = files_[client];
    file.fd = cairn::testing::make_unnamed_file();
    file.backing = std::make_unique<PosixBacking>(file.fd, O_RDWR);
    StoreStatus status;
    ASSERT_EQ(store_status(file.fd, &status), 0);
    Actor actor = actor_of(owner_of(client));
    file.object = open_object(actor, *file.backing, status, true);
    ASSERT_NE(file.object, ObjectIndex::kNone);
    memory_.objects().at(file.object).clear(kObjectUnlinked);
  }
  Owner owner_of(unsigned client) const { return Owner(static_cast<std::uint16_t>(2 + client), 0); }
  Actor actor_of(Owner self) {
    Actor actor;
    actor.memory = &memory_;
    actor.self = self;
    actor.counters = &memory_.slot(self.slot()).shards[0];
    return actor;
  }
  ObjectAccess access_of(Actor& actor, const File& file) {
    return {actor, file.object, *file.backing, accepts_};
  }
  static pid_t start(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(kLongSeconds);
    ::_exit(body());
  }

  // What a service does all day, until it is killed.
  int serve(unsigned seed) {
    std::mt19937 random(seed);
    Actor actor = actor_of(memory_.owners().current(ClientSlot::kOfService));
    std::vector<char> bytes(kBlockBytes);
    for (;;) {
      const File& file = files_[random() % kClients];
      const ObjectAccess access = access_of(actor, file);
      FlushRequest request(file.object, *file.backing);
      request.wait_for_others = false;
      switch (random() % 4) {
        case 0:
          (void)flush_object(actor, request);
          (void)settle_store(actor, file.object, *file.backing);
          break;
        case 1:
          (void)drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kStagedOut);
          break;
        case 2:
          (void)read_object(access, random() % kBlocks * kBlockBytes, bytes.data(), bytes.size());
          break;
        default:
          memory_.requests().take(memory_.owners(), [this](const RequestRing::Taken& taken) {
            memory_.requests().answer(taken.place, static_cast<std::int32_t>(taken.question[0]),
                                      memory_.owners());
          });
      }
    }
  }

  // 0, or what went wrong.
  int work(unsigned client, unsigned seed) {
    std::mt19937 random(seed);
    Actor actor = actor_of(owner_of(client));
    memory_.slot(actor.self.slot()).pid.store(::getpid());
    const ObjectAccess access = access_of(actor, files_[client]);
    std::array<std::string, kBlocks> model;
    for (std::string& block : model) block.assign(kBlockBytes, '\0');
    std::string read(kBlockBytes, '?');
    for (std::uint32_t question = 1; is_over_->load() == 0; ++question) {
      const std::uint32_t number = random() % kBlocks;
      const std::uint64_t begin = std::uint64_t{number} * kBlockBytes;
      const std::size_t at = random() % kBlockBytes;
      const std::string piece(std::min<std::size_t>(1 + random() % 9000, kBlockBytes - at),
                              static_cast<char>('a' + random() % 26));
      model[number].replace(at, piece.size(), piece);
      if (write_object(access, begin + at, piece.data(), piece.size()) !=
          static_cast<ssize_t>(piece.size()))
        return 2;
      const std::uint32_t other = random() % kBlocks;
      const ssize_t got =
          read_object(access, std::uint64_t{other} * kBlockBytes, read.data(), read.size());
      if (got < 0) return 3;
      const auto length = static_cast<std::size_t>(got);
      if (read.compare(0, length, model[other], 0, length) != 0) return 4;
      if (model[other].find_first_not_of('\0', length) != std::string::npos) return 5;
      if (random() % 16 == 0 && !is_answered(actor.self, question)) return 6;
      if (random() % 64 == 0 && sync_object(access, false, nullptr) != 0) return 7;
    }
    actor.drop_leases();
    return 0;
  }
  bool is_answered(Owner self, std::uint32_t question) {
    const RequestRing& ring = memory_.requests();
    const auto place = ring.ask(self, {question, 0});
    std::int32_t result = 0;
    return place &&
           ring.await(*place, memory_.owners(), kLongSleeps, &result) ==
               RequestRing::Waited::kAnswered &&
           result == static_cast<std::int32_t>(question);
  }

  // Everything is stored and gives its room back.
  void expect_nothing_left() {
    Actor actor = actor_of(memory_.owners().current(ClientSlot::kOfService));
    for (const File& file : files_) {
      ASSERT_EQ(sync_object(access_of(actor, file), false, nullptr), 0);
      ASSERT_EQ(
          drop_blocks(access_of(actor, file), 0, UINT64_MAX, false, PlacementReason::kStagedOut),
          0);
      EXPECT_EQ(memory_.objects().at(file.object).blocks.load(), 0U);
      EXPECT_EQ(memory_.objects().at(file.object).dirty_blocks.load(), 0U);
    }
    actor.drop_leases();
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      const BucketPool& pool = memory_.pool(static_cast<TierId>(tier));
      EXPECT_EQ(pool.free_slabs(), pool.slab_count());
      EXPECT_EQ(pool.count_free_slabs(), pool.slab_count());
    }
    EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), 0U);
    EXPECT_EQ(memory_.requests().used_slots(), 0U);
  }

  NodeMemory memory_;
  cairn::testing::AcceptingService accepts_;
  std::array<File, kClients> files_;
  std::atomic<unsigned>* is_over_ = nullptr;
};

TEST_F(TakeoverDeaths, ProgramsGoOnUnderOneServiceAfterTheOther) {
  const unsigned seed = seed_of_run();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<pid_t> clients;
  for (unsigned client = 0; client < kClients; ++client) {
    const unsigned own = random();
    clients.push_back(start([&, client, own] { return work(client, own); }));
  }
  SweepCounts swept;
  std::uint32_t locks = 0;
  std::uint32_t requests = 0;
  for (unsigned death = 0; death < kServices; ++death) {
    const unsigned own = random();
    const pid_t service = start([&, own] { return serve(own); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ::kill(service, SIGKILL);
    ASSERT_EQ(::waitpid(service, nullptr, 0), service);
    const auto taken = take_over(memory_);
    ASSERT_TRUE(taken.is_ok());
    EXPECT_EQ(taken->mended, 0U) << "what a death leaves is no stray word";
    swept.blocks_unlocked += taken->swept.blocks_unlocked;
    swept.buckets_freed += taken->swept.buckets_freed;
    swept.slabs += taken->swept.slabs;
    locks += taken->locks;
    requests += taken->requests;
  }
  const pid_t last = start([&] { return serve(seed); });
  is_over_->store(1);
  for (const pid_t client : clients) {
    int status = 0;
    ASSERT_EQ(::waitpid(client, &status, 0), client);
    EXPECT_EQ(status, 0) << "exit " << WEXITSTATUS(status) << ", signal " << WTERMSIG(status);
  }
  ::kill(last, SIGKILL);
  ASSERT_EQ(::waitpid(last, nullptr, 0), last);
  ASSERT_TRUE(take_over(memory_).is_ok());
  std::printf("%u blocks unlocked, %u buckets and %u slabs freed, ", swept.blocks_unlocked,
              swept.buckets_freed, swept.slabs);
  std::printf("%u locks and claims released, %u requests returned\n", locks, requests);
  expect_nothing_left();
}

}  // namespace
}  // namespace cairn::node
