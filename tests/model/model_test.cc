// SPDX-License-Identifier: Apache-2.0
// Random operations of several clients on several files against byte arrays: the whole data path in
// one process, with tiers far smaller than the files, so that blocks are flushed, evicted, moved
// and read again all the time. CAIRN_SEED replays a failure, CAIRN_MODEL_STEPS makes it longer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/flush/flush_object.h"
#include "reference_store.h"

namespace cairn::model {
namespace {

using Generator = std::mt19937_64;
constexpr std::uint64_t kSizeMax = 900'000;
#if defined(CAIRN_TSAN)
// ThreadSanitizer copies byte by byte, thirty times slower. Its races show in fewer steps.
constexpr std::uint64_t kSteps = 1500;
#else
constexpr std::uint64_t kSteps = 6000;
#endif

std::uint64_t number_from_environment(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

// One client's open file.
struct Handle {
  int fd = -1;
  std::unique_ptr<PosixBacking> file;
  ObjectIndex index = ObjectIndex::kNone;
  unsigned through = 0;
};

// A node's memory, a directory as backing store, and verbs that do the same to the stack and to the
// reference.
class Stack {
 public:
  Stack(unsigned memory_slabs, unsigned file_slabs) {
    char directory[] = "/var/tmp/cairn-model-XXXXXX";
    directory_ = mkdtemp(directory);
    MemoryShape shape;
    shape.tier_bytes[0] = memory_slabs * kBlockBytes;
    shape.tier_bytes[1] = file_slabs * kBlockBytes;
    shape.clients_max = 16;
    auto memory = NodeMemory::create(shape, {"", directory_});
    EXPECT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    service_.memory = &memory_;
  }
  ~Stack() { std::filesystem::remove_all(directory_); }

  NodeMemory& memory() { return memory_; }
  HandOver& service() { return service_; }
  std::string path(int file) const { return directory_ + "/file" + std::to_string(file); }

  Actor actor(std::uint32_t client) {
    Actor actor;
    actor.memory = &memory_;
    actor.self = memory_.owners().current(client);
    actor.counters = &memory_.slot(client).shards[0];
    return actor;
  }

  std::optional<Handle> open(Actor& actor, int file) {
    Handle handle;
    handle.fd = ::open(path(file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    handle.file = std::make_unique<PosixBacking>(handle.fd, O_RDWR);
    StoreStatus status;
    if (store_status(handle.fd, &status) != 0) return std::nullopt;
    handle.index = open_object(actor, *handle.file, status, true);
    if (handle.index == ObjectIndex::kNone) {
      ::close(handle.fd);
      return std::nullopt;
    }
    return handle;
  }
  int close(Actor& actor, Handle& handle) {
    while (handle.through > 0) {
      leave_through(actor, handle.index);
      --handle.through;
    }
    const int result = close_object({actor, handle.index, *handle.file, service_}, true);
    handle.file->close_extra();
    ::close(handle.fd);
    handle.fd = -1;
    return result;
  }

 private:
  std::string directory_;
  NodeMemory memory_;
  cairn::testing::AcceptingService service_;
};

std::vector<std::byte> random_bytes(Generator& random, std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t at = 0; at < length; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(&bytes[at], &word, std::min(sizeof word, length - at));
  }
  return bytes;
}

std::uint64_t random_offset(Generator& random) {
  switch (random() % 4) {
    case 0:
      return random() % 14 * kBlockBytes + random() % 7 - (random() % 2) * 3 + 3;
    case 1:
      return random() % 200 * 4096 + random() % 3;
    default:
      return random() % kSizeMax;
  }
}

std::size_t random_length(Generator& random) {
  switch (random() % 5) {
    case 0:
      return 4096;
    case 1:
      return kBlockBytes;
    case 2:
      return 1 + random() % 250'000;
    default:
      return 1 + random() % 6000;
  }
}

// What the organizer does, at random instants.
void evict(Actor& actor, ObjectIndex index, Generator& random) {
  for (std::uint32_t number = 0; number < 20; ++number) {
    if (random() % 2 == 0) continue;
    LockedBlock block = lock_resident(actor, index, static_cast<BlockNumber>(number));
    if (!block || block.descriptor().dirty_pages() != 0) continue;
    if (UnclaimedBlock unclaimed(block); unclaimed)
      discard_block(actor, std::move(unclaimed), PlacementReason::kNone);
  }
}

// A random step on an open file and its reference; each returns what went wrong, or an empty text.
struct Target {
  Stack& stack;
  Actor& actor;
  Handle& handle;
  ReferenceFile& reference;
  Generator& random;

  ObjectAccess access() const {
    return ObjectAccess{actor, handle.index, *handle.file, stack.service()};
  }
};

std::string write_step(const Target& target, std::uint64_t offset, std::size_t length) {
  const auto bytes = random_bytes(target.random, length);
  if (write_object(target.access(), offset, bytes.data(), length) != static_cast<ssize_t>(length))
    return "short write";
  target.reference.write(offset, bytes);
  return "";
}

std::string append_step(const Target& target, std::size_t length) {
  if (target.reference.size() > kSizeMax) return "";
  const auto bytes = random_bytes(target.random, length);
  std::uint64_t where = 0;
  if (append_object(target.access(), bytes.data(), length, &where) != static_cast<ssize_t>(length))
    return "short append";
  return target.reference.append(bytes) == where ? "" : "append went elsewhere";
}

std::string read_step(const Target& target, std::uint64_t offset, std::size_t length) {
  const auto expected = target.reference.read(offset, length);
  std::vector<std::byte> bytes(length);
  const ssize_t got = read_object(target.access(), offset, bytes.data(), length);
  if (got != static_cast<ssize_t>(expected.size()))
    return "read returned " + std::to_string(got) + " for " + std::to_string(expected.size());
  bytes.resize(expected.size());
  return bytes.empty() || std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0
             ? ""
             : "read other bytes";
}

std::string shape_step(const Target& target, std::uint64_t offset, std::size_t length) {
  if (target.random() % 2 == 0) {
    const std::uint64_t size = target.random() % 3 == 0 ? 0 : random_offset(target.random);
    if (truncate_object(target.access(), size) != 0) return "truncate failed";
    target.reference.truncate(size);
    return "";
  }
  const bool grow = target.random() % 2 == 0;
  const int mode = grow ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const int error = allocate_object(target.access(), mode, offset, length);
  if (error == -EOPNOTSUPP) return "";
  if (error != 0) return "fallocate failed with " + std::to_string(error);
  target.reference.zero(offset, length, grow);
  return "";
}

std::string flush_step(const Target& target) {
  if (target.random() % 2 == 0)
    return sync_object(target.access(), target.random() % 4 == 0, nullptr) == 0 ? ""
                                                                                : "sync failed";
  FlushRequest request(target.handle.index, *target.handle.file);
  request.bytes_max = target.random() % 300'000;
  request.wait_for_others = false;
  return flush_object(target.actor, request).error == 0 ? "" : "flush failed";
}

std::string through_step(const Target& target) {
  if (target.handle.through > 0) {
    leave_through(target.actor, target.handle.index);
    --target.handle.through;
  } else if (target.random() % 2 == 0) {
    if (enter_through(target.access()) != 0) return "enter_through failed";
    ++target.handle.through;
  }
  return "";
}

std::string choose_step(const Target& target) {
  const std::uint64_t offset = random_offset(target.random);
  const std::size_t length = random_length(target.random);
  const auto ticket = target.random() % 20;
  if (ticket < 6) return write_step(target, offset, length);
  if (ticket < 7) return append_step(target, length);
  if (ticket < 12) return read_step(target, offset, length);
  if (ticket < 14) return shape_step(target, offset, length);
  if (ticket < 16) return flush_step(target);
  if (ticket < 17) return through_step(target);
  evict(target.actor, target.handle.index, target.random);
  return "";
}

std::string step(const Target& target) {
  std::string problem = choose_step(target);
  const std::uint64_t size = target.access().object().size.load();
  if (problem.empty() && size != target.reference.size())
    problem = "size " + std::to_string(size) + ", not " + std::to_string(target.reference.size());
  return problem;
}

void expect_stored(Stack& stack, int file, const ReferenceFile& reference) {
  const int fd = open(stack.path(file).c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<std::byte> stored(reference.size() + 1);
  const ssize_t got = pread(fd, stored.data(), stored.size(), 0);
  close(fd);
  ASSERT_EQ(got, static_cast<ssize_t>(reference.size())) << "file " << file;
  stored.pop_back();
  EXPECT_TRUE(stored == reference.bytes()) << "file " << file << " is stored with other bytes";
}

struct Tiers {
  unsigned memory_slabs;
  unsigned file_slabs;
};

class Model : public ::testing::TestWithParam<Tiers> {};

TEST_P(Model, ClientsInTurn) {
  const std::uint64_t seed = number_from_environment("CAIRN_SEED", 7);
  const std::uint64_t steps = number_from_environment("CAIRN_MODEL_STEPS", kSteps);
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  constexpr int kFiles = 4, kClients = 3;
  Generator random(seed);
  Stack stack(GetParam().memory_slabs, GetParam().file_slabs);
  ReferenceFile references[kFiles];
  std::vector<Actor> actors;
  for (std::uint32_t client = 0; client < kClients; ++client)
    actors.push_back(stack.actor(client + 2));
  std::optional<Handle> handles[kClients][kFiles];
  for (std::uint64_t number = 0; number < steps; ++number) {
    const auto client = random() % kClients, file = random() % kFiles;
    auto& handle = handles[client][file];
    if (!handle) {
      handle = stack.open(actors[client], static_cast<int>(file));
      ASSERT_TRUE(handle) << "step " << number;
    } else if (random() % 25 == 0) {
      ASSERT_EQ(stack.close(actors[client], *handle), 0) << "step " << number;
      handle.reset();
      continue;
    }
    const std::string problem = step({stack, actors[client], *handle, references[file], random});
    ASSERT_EQ(problem, "") << "step " << number << ", file " << file << ", client " << client;
  }
  for (int client = 0; client < kClients; ++client) {
    for (int file = 0; file < kFiles; ++file) {
      auto& handle = handles[client][file];
      if (!handle) handle = stack.open(actors[static_cast<std::size_t>(client)], file);
      const ObjectAccess access{actors[static_cast<std::size_t>(client)], handle->index,
                                *handle->file, stack.service()};
      EXPECT_EQ(sync_object(access, true, nullptr), 0);
      EXPECT_EQ(drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kStagedOut), 0);
      EXPECT_EQ(stack.close(actors[static_cast<std::size_t>(client)], *handle), 0);
    }
  }
  for (auto& actor : actors) actor.drop_leases();
  for (int file = 0; file < kFiles; ++file) expect_stored(stack, file, references[file]);
  EXPECT_EQ(stack.memory().flusher_board().dirty_bytes.load(), 0u);
  EXPECT_EQ(stack.memory().pool(TierId::kMemory).free_slabs(), GetParam().memory_slabs);
}

// Each thread has files of its own and all share the tiers, so that they take buckets from one
// another, while one more thread flushes and evicts whatever it finds.
TEST_P(Model, ThreadsShareTheTiers) {
  const std::uint64_t seed = number_from_environment("CAIRN_SEED", 11);
  const std::uint64_t steps = number_from_environment("CAIRN_MODEL_STEPS", kSteps) / 6;
  SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
  constexpr int kThreads = 4;
  Stack stack(GetParam().memory_slabs, GetParam().file_slabs);
  ReferenceFile references[kThreads];
  Handle handles[kThreads];
  std::vector<Actor> actors;
  for (int id = 0; id <= kThreads; ++id)
    actors.push_back(stack.actor(static_cast<std::uint32_t>(id) + 2));
  for (int id = 0; id < kThreads; ++id) {
    auto handle = stack.open(actors[static_cast<std::size_t>(id)], id);
    ASSERT_TRUE(handle);
    handles[id] = std::move(*handle);
  }
  std::string problems[kThreads];
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      Generator random(seed + static_cast<std::uint64_t>(id));
      Actor& actor = actors[static_cast<std::size_t>(id)];
      for (std::uint64_t number = 0; number < steps && problems[id].empty(); ++number)
        problems[id] = step({stack, actor, handles[id], references[id], random});
      running.fetch_sub(1);
    });
  }
  threads.emplace_back([&] {
    Generator random(seed + 100);
    Actor& actor = actors[kThreads];
    while (running.load() > 0) {
      const auto id = random() % kThreads;
      FlushRequest request(handles[id].index, *handles[id].file);
      request.bytes_max = 200'000;
      request.wait_for_others = false;
      flush_object(actor, request);
      evict(actor, handles[random() % kThreads].index, random);
    }
  });
  for (auto& thread : threads) thread.join();
  for (int id = 0; id < kThreads; ++id) {
    EXPECT_EQ(problems[id], "") << "thread " << id;
    Actor& actor = actors[static_cast<std::size_t>(id)];
    EXPECT_EQ(
        sync_object({actor, handles[id].index, *handles[id].file, stack.service()}, true, nullptr),
        0);
    EXPECT_EQ(stack.close(actor, handles[id]), 0);
    expect_stored(stack, id, references[id]);
  }
  for (auto& actor : actors) actor.drop_leases();
  EXPECT_EQ(stack.memory().flusher_board().dirty_bytes.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Model,
                         ::testing::Values(Tiers{3, 0}, Tiers{12, 0}, Tiers{200, 0}, Tiers{6, 24}));

}  // namespace
}  // namespace cairn::model
