// SPDX-License-Identifier: Apache-2.0
// The orders that users have declared for files (orders/order_declaration.h): which blocks of a
// packed file, or which of many files, a training loop will read, and in which order.
//
// The file of declarations has one on each line, behind the pattern of the files that it is of:
//
//   # pattern            declaration
//   /data/train.bin      torch-random seed=42 items=60000 epochs=10 item-bytes=110K
//   /data/images/*.jpg   torch-random seed=42 items=9000 epochs=10 item-files=/data/images.txt
//
// Which epoch a program begins with shows in what it reads first. A declaration that does not match
// what is read is dropped, and that is said once.
//
// Thread safety: none. Ownership: the orders. Memory: sixteen bytes for each item of the epochs
// that a stream was told of, at most kRunsMax of them; who asks for the same epochs shares them.
// Errors: kInvalid with FILE:LINE and what to write instead.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "orders/epoch_order.h"
#include "prefetch/stream_hints.h"

namespace cairn::node {

// Who is told of orders, each in its own way through the epochs.
enum class OrderReader : std::uint8_t { kFetching = 0, kReplacement };

class OrderBook {
 public:
  using Complain = std::function<void(const std::string& text)>;
  static constexpr std::size_t kRunsMax = std::size_t{1} << 21;

  OrderBook() = default;
  // An empty path: no declarations.
  static Result<OrderBook> load(const std::string& path, Complain complain);

  bool is_empty() const { return entries_.empty(); }
  // Whether a declaration speaks of the blocks of the file at `path`.
  bool has_order_of(const std::string& path) const;
  // What is read of a packed file from the run `first` on, which must be among the first few of an
  // epoch. Null when no declaration has an epoch that begins so.
  DeclaredOrder order_from(const std::string& path, BlockRun first,
                           OrderReader reader = OrderReader::kFetching);
  // The stream does not keep to any declaration of the file.
  void refute(const std::string& path);
  // How many declarations have been dropped.
  unsigned refuted() const { return refuted_; }

  // The files that are read after this one, in order; none when nothing is declared about it.
  std::vector<std::string> files_after(const std::string& path, std::size_t count);

 private:
  struct Entry {
    std::string place;    // FILE:LINE
    std::string pattern;  // of a packed file
    EpochOrder order;
    std::array<std::uint32_t, 2> next_epoch{};  // of each reader
    // What was made last, from which epoch on.
    std::weak_ptr<const std::vector<BlockRun>> made;
    std::uint32_t made_from = 0;
    bool is_refuted = false;
    // Of many files: which item each is, the epoch that is being read and where it has got to.
    std::unordered_map<std::string, std::uint32_t> item_of;
    std::vector<std::uint32_t> epoch_items;
    std::size_t at = 0;
    unsigned not_found = 0;  // in a row
  };
  Status add(const std::string& place, const std::string& line);
  static bool begins_with(const Entry& entry, const std::vector<std::uint32_t>& items,
                          BlockRun first);
  static BlockRun run_of(const Entry& entry, std::uint32_t item);
  static DeclaredOrder order_of_epochs(Entry* entry, std::uint32_t first_epoch);
  static bool find(Entry* entry, std::uint32_t item);
  bool move_to(Entry* entry, std::uint32_t item);
  void drop(Entry* entry, const std::string& path);

  std::vector<Entry> entries_;
  Complain complain_;
  unsigned refuted_ = 0;
};

}  // namespace cairn::node
