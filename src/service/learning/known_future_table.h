// SPDX-License-Identifier: Apache-2.0
// What programs are known to read next, block by block: follows those that read a file of which an
// order is declared (service/learning/declared_orders.h) through it, or open one after the other
// the files of an order, so that replacement can ask when a block is wanted
// (policy/replacement/known_future.h). An order that was found to be gone through once more
// (policy/prefetch/history_replay.h) is taken for one that goes on so for ever, until what is read
// proves it wrong.
//
// The table follows each stream of a packed file by itself; a block is wanted when the first of
// them wants it. In an order of files it follows the opens of all processes; a file's blocks are
// wanted when the file is. Uses without an event, hits above all, are passed over at the next use
// with one, up to kSkipsMax of them at once. A stream that leaves its order is not followed any
// more.
//
// A program may have closed a file, and have another one under the same descriptor, before the
// event of its open arrives. So the table identifies files by their keys, which it looks up among
// the files that come next.
//
// Known is a window of three times as many blocks as all tiers have room for, kUsesMax at most, of
// all streams together; that takes 0.15 % of the tiers' bytes.
//
// Thread safety: on_accesses() and on_deaths() by one thread, which also uses the declared orders;
// look_up() and known_ahead() by any. Ownership: borrows memory and orders.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "policy/replacement/known_future.h"
#include "policy/replacement/replacement_policy.h"
#include "service/learning/access_observer.h"
#include "service/learning/order_search.h"
#include "service/learning/stream_table.h"

namespace cairn::node {

class KnownFutureTable final : public AccessObserver {
 public:
  static constexpr std::size_t kUsesMax = std::size_t{3} << 19;
  static constexpr std::size_t kFollowedMax = 32;
  // Orders that were found; of more files than that they are not followed.
  static constexpr std::size_t kFoundMax = 8;
  static constexpr std::uint32_t kSkipsMax = 256;
  static constexpr std::uint32_t kFilesAhead = 32;

  KnownFutureTable(const NodeMemory& memory, StreamTable& streams);
  // Before the first batch. Without orders nothing is known of any block.
  void follow(DeclaredOrders* orders, PathOf path_of);
  // For nodes that fetch ahead: files that were fetched are not known here before a program opens
  // them, and would have to leave for others that are wanted later.
  void leave_out_files() { follows_files_ = false; }

  // The stream goes through this order once more. By the thread that calls on_accesses().
  void found(const ToldAccess& told, RepeatedOrder order);

  void on_accesses(std::span<const ToldAccess> batch) override;
  // Processes have died: what they were to read is not wanted any more.
  void on_deaths(const StreamEnds& ends) override;

  // Sets `until_use` of each block.
  void look_up(std::span<BlockView> blocks) const;
  // Reads of blocks that are known ahead, of all streams together.
  std::size_t known_ahead() const;

 private:
  // What one stream reads, or which files are opened, and how far that is. For files, a block is
  // the number of an item.
  struct Followed {
    ObjectIndex object = ObjectIndex::kNone;  // none: of files
    std::string path;
    DeclaredOrder order;
    bool repeats = false;                // it begins anew behind its end
    std::size_t uses_of_lap = SIZE_MAX;  // of one that repeats; more of it tells nothing new
    std::size_t run = 0;                 // the first that the window does not reach
    std::uint32_t blocks_of_run = 0;     // that it does reach
    KnownFuture future{1};
    BlockRun last{-1, 0};
    // Rings of blocks: the last that were read, and the last that were passed over.
    std::array<std::uint32_t, kSkipsMax> passed{};
    std::array<std::uint32_t, kSkipsMax> skipped{};
    std::uint32_t passed_count = 0;
    std::uint32_t skipped_count = 0;
    std::uint32_t stray_at = KnownFuture::kNever;  // where an unexpected read stands in the window
    unsigned doubt = 0;
    std::vector<bool> items_seen;  // of files, whose keys have been looked up

    bool is_at_its_end() const { return !repeats && run == order->size(); }
    bool knows_its_lap() const { return repeats && future.size() >= uses_of_lap; }
  };
  struct Stream {
    ObjectIndex object = ObjectIndex::kNone;
    OrderSearch order;
    std::unique_ptr<Followed> followed;  // null: nothing is known of it
  };

  // An order that was found, for the next streams of its file.
  struct Found {
    ObjectKey key;
    DeclaredOrder order;
  };
  // A stream that goes through it, from this read on.
  struct Beginning {
    const AccessStream* stream = nullptr;
    std::uint64_t cycles = 0;
    DeclaredOrder order;
    std::size_t at = 0;
  };

  // A file that was opened, and how many blocks it has.
  struct OpenedFile {
    DeclaredOrders::FilePlace place;
    std::uint32_t blocks = 1;
  };

  void note(const ToldAccess& told);
  void forget(const StreamEnds& ends);
  void read(const ToldAccess& told);
  std::optional<DeclaredOrders::FilePlace> place_of(const ToldAccess& told);
  void look_up(const ObjectKey& key, const std::string& path);
  void look_up(const ObjectKey& key, std::size_t declaration, Followed& followed);
  void note_file(const DeclaredOrders::FilePlace& place);
  void opened(const ToldAccess& told, const DeclaredOrders::FilePlace& place);
  bool begin_again(const DeclaredOrders::FilePlace& place);
  Followed* files_followed(const DeclaredOrders::FilePlace& place);
  void look_for_order(Stream& stream, const ToldAccess& told, BlockRun run);
  void look_for_found(Stream& stream, BlockRun run);
  std::unique_ptr<Followed> begin(std::unique_ptr<Followed> fresh);
  std::unique_ptr<Followed> begin(const std::string& path, DeclaredOrder order);
  void begin_found(Stream& stream, BlockRun run, const DeclaredOrder& order, std::size_t at);
  void begin_found(Stream& stream, const ToldAccess& told);
  bool make_room_for_found();
  bool knows_any() const { return (orders_ != nullptr && !orders_->is_empty()) || !found_.empty(); }
  static bool is_refuted(const Followed& followed);
  static void go_on(Followed& followed, BlockRun run);
  void refute(Followed& followed);
  static void pass(Followed& followed, BlockRun run);
  static void pass_block(Followed& followed, std::uint32_t block);
  static void move_on(Followed& followed, std::uint32_t uses);
  static void look_ahead(Followed& followed);
  void share_window();
  void drop_refuted();
  void end(std::unique_ptr<Followed>& followed);
  Stream& stream_of(const ToldAccess& told);
  static std::uint32_t until_use_of(const Followed& followed, std::uint32_t block);
  std::uint32_t until_use_of_file(ObjectIndex object, const OpenedFile& file) const;
  std::uint32_t until_use(const BlockView& view) const;

  const NodeMemory& memory_;
  const std::size_t uses_max_;
  // The one thread's own.
  std::map<ObjectKey, DeclaredOrders::FilePlace> places_;
  std::unordered_map<ObjectIndex, Found> found_;
  std::vector<Beginning> beginnings_;  // found in the batch that comes next
  DeclaredOrders* orders_ = nullptr;
  bool follows_files_ = true;
  PathOf path_of_;
  unsigned refuted_seen_ = 0;
  mutable std::mutex mutex_;
  StreamSlot<Stream> streams_;
  std::unordered_map<std::size_t, std::unique_ptr<Followed>> orders_of_files_;  // by declaration
  std::unordered_map<ObjectIndex, OpenedFile> files_;
  std::vector<Followed*> followed_;  // those of the streams and of files
};

}  // namespace cairn::node
