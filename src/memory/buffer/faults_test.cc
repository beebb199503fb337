// SPDX-License-Identifier: Apache-2.0
// Reads, writes and flushes over a store and a tier that fail in every way that they can: whatever
// fails, no byte that was taken is lost, no read makes bytes up, and errors are reported.
//
// CAIRN_FAULT_RUNS sets the number of random histories, CAIRN_SEED the first seed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/backing/testing/faulty_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/testing/faulty_tier.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

using testing::BackingCall;
using testing::TierCall;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// An object on two slabs of memory and some of a faulty tier, before a faulty store.
class FaultyNode {
 public:
  FaultyNode() {
    MemoryShape shape;
    shape.tier_bytes[0] = 2 * kBlockBytes;
    shape.tier_bytes[1] = 4 * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 64;
    auto memory = NodeMemory::create(shape, {"", "/var/tmp"});
    EXPECT_TRUE(memory.is_ok()) << memory.status().message();
    memory_ = std::move(memory.value());
    service_.memory = &memory_;
    tier_.emplace(memory_.tier(TierId{1}));
    stand_in_.emplace(memory_, *tier_);
    actor_ = testing::make_actor(memory_);
    StoreStatus status;
    EXPECT_EQ(file_.status(&status), 0);
    index_ = open_object(actor_, store_, status, true);
    EXPECT_NE(index_, ObjectIndex::kNone);
    object().clear(kObjectUnlinked);
  }
  ~FaultyNode() {
    actor_.drop_leases();
    ::close(fd_);
  }

  testing::FaultyBacking& store() { return store_; }
  testing::FaultyTier& tier() { return *tier_; }
  Object& object() { return memory_.objects().at(index_); }
  Actor another_actor() {
    Actor actor = testing::make_actor(memory_);
    actor.self = memory_.owners().current(3);
    return actor;
  }
  void heal() {
    store_.heal();
    tier_->heal();
  }

  ssize_t write(Actor& actor, std::uint64_t offset, const std::string& bytes) {
    return write_object(access(actor), offset, bytes.data(), bytes.size());
  }
  ssize_t write(std::uint64_t offset, const std::string& bytes) {
    return write(actor_, offset, bytes);
  }
  // The bytes, or none and the error.
  std::optional<std::string> read(std::uint64_t offset, std::size_t length) {
    std::string bytes(length, 'x');
    const ssize_t got = read_object(access(actor_), offset, bytes.data(), length);
    if (got < 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  int sync(Actor& actor) { return sync_object(access(actor), true, nullptr); }
  int sync() { return sync(actor_); }
  // As the flusher does (service/write_back/store_writer.cc).
  int flush_as_service() {
    const int error = flush_object(actor_, FlushRequest(index_, store_)).error;
    if (error < 0) record_store_error(object(), -error);
    return error;
  }
  std::string stored() {
    std::string bytes(1 << 20, 'x');
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  TierId tier_of(std::uint32_t number) {
    return memory_.tier_of(memory_.directory().find(index_, BlockNumber{number}));
  }

 private:
  ObjectAccess access(Actor& actor) { return ObjectAccess{actor, index_, store_, service_}; }

  int fd_ = testing::make_unnamed_file();
  PosixBacking file_{fd_, O_RDWR};
  testing::FaultyBacking store_{file_};
  NodeMemory memory_;
  testing::AcceptingService service_;
  std::optional<testing::FaultyTier> tier_;
  std::optional<testing::TierStandIn> stand_in_;
  Actor actor_;
  ObjectIndex index_ = ObjectIndex::kNone;
};

class Faults : public ::testing::Test {
 protected:
  // Blocks of one letter each, more than memory has room for; returns one that is in the tier.
  std::uint32_t fill(unsigned blocks) {
    std::uint32_t below = UINT32_MAX;
    for (std::uint32_t number = 0; number < blocks; ++number) {
      EXPECT_EQ(node_.write(number * kBlockBytes, block(number)),
                static_cast<ssize_t>(kBlockBytes));
      if (node_.tier_of(number) == TierId{1}) below = number;
    }
    EXPECT_NE(below, UINT32_MAX) << "no block came into the tier";
    return below;
  }
  static std::string block(std::uint32_t number) {
    return std::string(kBlockBytes, static_cast<char>('a' + number));
  }
  FaultyNode node_;
};

TEST_F(Faults, ATornWriteOfTheStoreIsMadeGood) {
  ASSERT_EQ(node_.write(0, block(0)), static_cast<ssize_t>(kBlockBytes));
  ASSERT_EQ(node_.sync(), 0);
  ASSERT_EQ(node_.write(0, block(1)), static_cast<ssize_t>(kBlockBytes));
  node_.store().tear(BackingCall::kWrite, 10'000, EIO, node_.store().count(BackingCall::kWrite) + 1,
                     1);
  EXPECT_EQ(node_.sync(), -EIO);
  EXPECT_EQ(node_.stored()[0], 'b') << "half of it is there";
  EXPECT_EQ(node_.stored()[kBlockBytes - 1], 'a');
  EXPECT_EQ(node_.object().dirty_blocks.load(), 1u);
  EXPECT_EQ(node_.sync(), 0);
  EXPECT_TRUE(node_.stored() == block(1));
}

TEST_F(Faults, AnErrorIsReportedUntilAllIsStored) {
  ASSERT_EQ(node_.write(0, block(0)), static_cast<ssize_t>(kBlockBytes));
  node_.store().fail(BackingCall::kWrite, EDQUOT);
  EXPECT_EQ(node_.flush_as_service(), -EDQUOT) << "behind the program's back";
  EXPECT_EQ(node_.object().error_number.load(), EDQUOT);
  EXPECT_EQ(node_.sync(), -EDQUOT);
  EXPECT_EQ(node_.sync(), -EDQUOT);
  EXPECT_EQ(node_.object().dirty_blocks.load(), 1u);
  EXPECT_TRUE(node_.read(0, kBlockBytes) == block(0)) << "the bytes stay readable";
  node_.heal();
  EXPECT_EQ(node_.sync(), 0);
  EXPECT_FALSE(node_.object().has(kObjectFailing)) << "a close has nothing to report";
  EXPECT_TRUE(node_.stored() == block(0));
}

TEST_F(Faults, AStoreThatHangsKeepsNobodyFromItsBlocks) {
  ASSERT_EQ(node_.write(0, block(0)), static_cast<ssize_t>(kBlockBytes));
  node_.store().hang(BackingCall::kWrite);
  std::thread flusher([this] {
    Actor actor = node_.another_actor();
    EXPECT_EQ(node_.sync(actor), 0);
    actor.drop_leases();
  });
  node_.store().await_hanging(1);
  EXPECT_TRUE(node_.read(0, kBlockBytes) == block(0));
  EXPECT_EQ(node_.write(0, "new"), 3) << "the block that is being stored";
  EXPECT_EQ(node_.write(kBlockBytes, block(1)), static_cast<ssize_t>(kBlockBytes));
  EXPECT_TRUE(node_.read(0, 4) == "newa");
  node_.heal();
  flusher.join();
  EXPECT_EQ(node_.sync(), 0);
  EXPECT_TRUE(node_.stored() == "new" + block(0).substr(3) + block(1));
}

TEST_F(Faults, ATierThatHangsKeepsNobodyFromMemory) {
  const std::uint32_t below = fill(4);
  node_.tier().hang(TierCall::kRead);
  std::thread reader([&] {
    Actor actor = node_.another_actor();
    EXPECT_EQ(node_.write(actor, below * kBlockBytes + 1, "new"), 3);
    actor.drop_leases();
  });
  node_.tier().await_hanging(1);
  std::uint32_t in_memory = 0;
  while (node_.tier_of(in_memory) != TierId::kMemory) ++in_memory;
  EXPECT_TRUE(node_.read(in_memory * kBlockBytes, kBlockBytes) == block(in_memory));
  EXPECT_EQ(node_.write(in_memory * kBlockBytes, "own"), 3);
  node_.heal();
  reader.join();
  const std::string begin = {block(below)[0], 'n', 'e', 'w'};
  EXPECT_TRUE(node_.read(below * kBlockBytes, 4) == begin);
  EXPECT_EQ(node_.sync(), 0);
}

TEST_F(Faults, SlowStoresAndTiersAreWaitedFor) {
  node_.store().delay(BackingCall::kWrite, 5);
  node_.tier().delay(TierCall::kWrite, 2);
  node_.tier().delay(TierCall::kRead, 2);
  const std::uint32_t below = fill(4);
  EXPECT_TRUE(node_.read(below * kBlockBytes, kBlockBytes) == block(below));
  EXPECT_EQ(node_.sync(), 0);
  EXPECT_TRUE(node_.stored() == block(0) + block(1) + block(2) + block(3));
}

TEST_F(Faults, WhatATierWillNotGiveIsAnErrorAndStaysDirty) {
  const std::uint32_t below = fill(4);
  node_.tier().fail(TierCall::kRead, EIO);
  EXPECT_EQ(node_.read(below * kBlockBytes, kBlockBytes), std::nullopt);
  EXPECT_EQ(node_.sync(), -EIO);
  EXPECT_NE(node_.object().dirty_blocks.load(), 0u);
  node_.heal();
  EXPECT_TRUE(node_.read(below * kBlockBytes, kBlockBytes) == block(below));
  EXPECT_EQ(node_.sync(), 0);
  EXPECT_TRUE(node_.stored() == block(0) + block(1) + block(2) + block(3));
}

// A file as it must be; a call that failed may have changed its bytes or not.
// Whole pieces are compared at once: the bytes of one are looked at where it differs.
constexpr std::size_t kPieceBytes = 4096;

class Model {
 public:
  const std::string& bytes() const { return bytes_; }
  void write(std::uint64_t offset, const std::string& bytes, ssize_t put) {
    const std::size_t done = put < 0 ? 0 : static_cast<std::size_t>(put);
    const std::uint64_t end = offset + bytes.size();
    if (done != 0 && offset + done > bytes_.size()) bytes_.resize(offset + done, '\0');
    if (end > doubtful_.size()) doubtful_.resize(end, kKnown);
    if (done != 0) bytes_.replace(offset, done, bytes, 0, done);
    doubtful_.replace(offset, done, done, kKnown);
    doubtful_.replace(offset + done, bytes.size() - done, bytes.size() - done, kDoubtful);
  }
  // How many of `length` bytes at `offset` are before the end.
  std::size_t there(std::uint64_t offset, std::size_t length) const {
    return offset < bytes_.size() ? std::min<std::size_t>(length, bytes_.size() - offset) : 0;
  }
  // Whether `found` may be the file's bytes at `offset`.
  bool agrees(std::uint64_t offset, const std::string& found) const {
    const std::size_t known = there(offset, found.size());
    for (std::size_t piece = 0; piece < known; piece += kPieceBytes) {
      const std::size_t length = std::min(kPieceBytes, known - piece);
      if (std::memcmp(&found[piece], &bytes_[offset + piece], length) == 0) continue;
      for (std::size_t at = piece; at < piece + length; ++at)
        if (found[at] != bytes_[offset + at] && doubtful_[offset + at] == kKnown) return false;
    }
    return true;
  }

 private:
  static constexpr char kKnown = 0;
  static constexpr char kDoubtful = 1;

  std::string bytes_;
  std::string doubtful_;  // a mark for each byte, behind the end as well
};

class FaultyHistory {
 public:
  explicit FaultyHistory(std::uint64_t seed) : random_(seed) {}

  void run(unsigned steps) {
    for (unsigned step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      one_step();
    }
  }
  void expect_all_is_well_when_healed() {
    node_.heal();
    for (int attempt = 0; attempt < 3 && node_.sync() != 0; ++attempt) {
    }
    EXPECT_EQ(node_.sync(), 0) << "an error is reported until all is stored";
    EXPECT_EQ(node_.object().dirty_blocks.load(), 0u);
    expect_stored();
  }
  // After a power cut each byte is what it was at the last sync, or was written since.
  void expect_no_loss_in_a_power_cut() {
    node_.store().cut_power(random_);
    const std::string left = node_.stored();
    ASSERT_GE(left.size(), versions_.front().size());
    for (std::size_t piece = 0; piece < versions_.front().size(); piece += kPieceBytes)
      expect_bytes_of_a_version(left, piece);
  }
  // Faults come from now on; a power cut will.
  void begin(bool has_faults, bool is_forgetting) {
    has_faults_ = has_faults;
    if (is_forgetting) node_.store().begin_forgetting();
  }

 private:
  static constexpr std::uint32_t kFileBytes = 7 * kBlockBytes;

  void one_step() {
    const std::uint64_t offset = random_.below(kFileBytes);
    const std::size_t length = 1 + random_.below(random_.below(3) == 0 ? 2 * kBlockBytes : 5000);
    switch (random_.below(has_faults_ ? 10 : 8)) {
      case 0:
      case 1:
        return sync();
      case 2:
      case 3:
      case 4:
        return read(offset, length);
      case 8:
        return node_.heal();
      case 9:
        return plan();
      default:
        return write(offset, length);
    }
  }
  // Each byte of the piece is that of some version.
  void expect_bytes_of_a_version(const std::string& left, std::size_t piece) {
    const std::size_t length = std::min(kPieceBytes, versions_.front().size() - piece);
    for (const std::string& version : versions_)
      if (version.compare(piece < version.size() ? piece : version.size(), length, left, piece,
                          length) == 0)
        return;
    for (std::size_t at = piece; at < piece + length; ++at) {
      const auto has_it = [&](const std::string& version) {
        return at < version.size() && left[at] == version[at];
      };
      ASSERT_TRUE(std::ranges::any_of(versions_, has_it)) << "byte " << at << " of " << left.size();
    }
  }
  void expect_stored() {
    const std::string stored = node_.stored();
    EXPECT_TRUE(model_.agrees(0, stored)) << "0 has promised all";
    EXPECT_GE(stored.size(), model_.bytes().size());
  }
  void fill_at_random(std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_.next();
      std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
    }
  }
  void write(std::uint64_t offset, std::size_t length) {
    std::string bytes(length, '\0');
    fill_at_random(bytes);
    const ssize_t put = node_.write(offset, bytes);
    ASSERT_TRUE(has_faults_ || put == static_cast<ssize_t>(length));
    model_.write(offset, bytes, put);
    versions_.push_back(model_.bytes());
  }
  void read(std::uint64_t offset, std::size_t length) {
    const auto found = node_.read(offset, length);
    ASSERT_TRUE(found || has_faults_);
    if (!found) return;
    EXPECT_TRUE(model_.agrees(offset, *found)) << offset << " +" << length;
    // An error in the middle ends a read, and the next one begins with it.
    const std::size_t there = model_.there(offset, length);
    EXPECT_GE(found->size(), has_faults_ ? std::min<std::size_t>(there, 1) : there);
  }
  void sync() {
    const int error = node_.sync();
    ASSERT_TRUE(error == 0 || has_faults_);
    if (error != 0) return;
    expect_stored();
    versions_ = {model_.bytes()};
  }
  void plan() {
    constexpr BackingCall kCalls[] = {BackingCall::kRead, BackingCall::kWrite, BackingCall::kSync,
                                      BackingCall::kTruncate, BackingCall::kStatus};
    const BackingCall call = kCalls[random_.below(5)];
    const testing::Calls next{node_.tier().count(TierCall::kWrite) + 1 + random_.below(3), 1};
    const unsigned soon = node_.store().count(call) + 1 + random_.below(3);
    switch (random_.below(7)) {
      case 0:
        return node_.store().shorten(BackingCall::kWrite, 1 + random_.below(9000));
      case 1:
        return node_.store().tear(BackingCall::kWrite, random_.below(9000), EIO,
                                  node_.store().count(BackingCall::kWrite) + 1, 1);
      case 2:
        return node_.tier().fail(TierCall::kWrite, EIO, next);
      case 3:
        return node_.tier().shorten(TierCall::kWrite, random_.below(kBlockBytes), next);
      case 4:
        return node_.tier().fail(TierCall::kRead, EIO,
                                 {node_.tier().count(TierCall::kRead) + 1, 1 + random_.below(3)});
      default:
        return node_.store().fail(call, random_.below(2) == 0 ? EIO : ENOSPC, soon,
                                  1 + random_.below(3));
    }
  }

  RandomSource random_;
  FaultyNode node_;
  Model model_;
  std::vector<std::string> versions_{""};
  bool has_faults_ = false;
};

#ifdef CAIRN_TSAN
constexpr std::uint64_t kSeedsShare = 5;  // a history has one thread: a fifth of them will do
#else
constexpr std::uint64_t kSeedsShare = 1;
#endif

void for_each_seed(std::uint64_t runs, const std::function<void(FaultyHistory&)>& body) {
  const std::uint64_t first = setting("CAIRN_SEED", 1);
  runs = setting("CAIRN_FAULT_RUNS", runs / kSeedsShare);
  std::printf("CAIRN_SEED=%llu and %llu more\n", static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(runs - 1));
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
    FaultyHistory history(seed);
    body(history);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomFaults, NothingIsLostOrMadeUp) {
  for_each_seed(120, [](FaultyHistory& history) {
    history.begin(true, false);
    history.run(60);
    history.expect_all_is_well_when_healed();
  });
}

TEST(RandomFaults, APowerCutTakesOnlyWhatNoSyncHasPromised) {
  for_each_seed(40, [](FaultyHistory& history) {
    history.begin(false, true);
    history.run(40);
    history.expect_no_loss_in_a_power_cut();
  });
}

}  // namespace
}  // namespace cairn
