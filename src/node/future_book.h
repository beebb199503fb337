// SPDX-License-Identifier: Apache-2.0
// What programs are known to read next, block by block: follows those that read a file of which an
// order is declared (node/order_book.h) through it, so that whoever evicts can ask when a block is
// wanted (replacement/known_future.h).
//
// Each stream is followed by itself; a block is wanted when the first of them wants it. Uses that
// are not heard of, hits above all, are passed over when a later one is, up to kSkipsMax of them at
// once. A stream that does not keep to its order is not followed any more.
//
// Known is a window of three times as many blocks as all tiers have room for, kUsesMax at most, of
// all streams together; that takes 0.15 % of the tiers' bytes.
//
// Thread safety: take() and forget_dead() by one thread, which also uses the order book; look_up()
// and known_ahead() by any. Ownership: borrows memory and orders.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "node/event_reader.h"
#include "node/order_book.h"
#include "replacement/known_future.h"
#include "replacement/replacement_policy.h"

namespace cairn::node {

class FutureBook {
 public:
  static constexpr std::size_t kUsesMax = std::size_t{3} << 19;
  static constexpr std::size_t kFollowedMax = 32;
  static constexpr std::size_t kStreamsMax = 4096;
  static constexpr std::uint32_t kSkipsMax = 256;

  // The path of the file that a process accesses; empty when it is not known.
  using PathOf = std::function<std::string(const ToldAccess& told)>;

  explicit FutureBook(const NodeMemory& memory);
  // Before the first take(). Without orders nothing is known of any block.
  void follow(OrderBook* orders, PathOf path_of);

  // An EventReader::Sink.
  void take(std::span<const ToldAccess> batch);
  // Processes have died: what they were to read is not wanted any more.
  void forget_dead();

  // Sets `until_use` of each block.
  void look_up(std::span<BlockView> blocks) const;
  // Reads of blocks that are known ahead, of all streams together.
  std::size_t known_ahead() const;

 private:
  // What one stream reads, and where it has got to.
  struct Followed {
    ObjectIndex object = ObjectIndex::kNone;
    std::string path;
    DeclaredOrder order;
    std::size_t run = 0;              // the first that the window does not reach
    std::uint32_t blocks_of_run = 0;  // that it does reach
    KnownFuture future{1};
    BlockRun last{-1, 0};
    // Rings of blocks: the last that were read, and the last that were passed over.
    std::array<std::uint32_t, kSkipsMax> passed{};
    std::array<std::uint32_t, kSkipsMax> skipped{};
    std::uint32_t passed_count = 0;
    std::uint32_t skipped_count = 0;
    std::uint32_t stray_at = KnownFuture::kNever;  // where an unexpected read stands in the window
    unsigned doubt = 0;

    bool is_at_its_end() const { return run == order->size(); }
  };
  struct Stream {
    ObjectIndex object = ObjectIndex::kNone;
    Owner owner;
    unsigned reads_looked_at = 0;
    std::string path;
    std::unique_ptr<Followed> followed;  // null: nothing is known of it
  };

  void read(const ToldAccess& told);
  void look_for_order(Stream& stream, const ToldAccess& told, BlockRun run);
  void follow_order(Stream& stream, DeclaredOrder order);
  static void pass(Followed& followed, BlockRun run);
  static void pass_block(Followed& followed, std::uint32_t block);
  static void move_on(Followed& followed, std::uint32_t uses);
  static void look_ahead(Followed& followed);
  void share_window();
  void drop_refuted();
  void end_stream(Stream& stream);
  Stream& stream_of(const ToldAccess& told);
  std::uint32_t until_use(ObjectIndex object, std::uint32_t block) const;

  const NodeMemory& memory_;
  const std::size_t uses_max_;
  OrderBook* orders_ = nullptr;
  PathOf path_of_;
  unsigned refuted_seen_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Stream> streams_;
  std::vector<Followed*> followed_;  // those of the streams
};

}  // namespace cairn::node
