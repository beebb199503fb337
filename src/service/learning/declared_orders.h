// SPDX-License-Identifier: Apache-2.0
// The orders that users have declared for files (policy/orders/order_declaration.h): which blocks
// of a packed file, or which of many files, a training loop will read, and in which order.
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
// that a stream was told of, at most kRunsMax of them; streams of the same epochs share them.
// Errors: kInvalid with FILE:LINE and what to write instead.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "policy/orders/epoch_order.h"
#include "policy/prefetch/stream_hints.h"
#include "service/learning/file_progress.h"

namespace cairn::node {

// The users of orders; each has its own way through the epochs.
enum class OrderReader : std::uint8_t { kFetching = 0, kReplacement };

class DeclaredOrders {
 public:
  using Complain = std::function<void(const std::string& text)>;
  static constexpr std::size_t kRunsMax = std::size_t{1} << 21;

  DeclaredOrders() = default;
  // An empty path: no declarations.
  static Result<DeclaredOrders> load(const std::string& path, Complain complain);

  // The sum of all declarations and lists: equal texts have equal fingerprints.
  std::uint64_t fingerprint() const;
  // Every file that was read for it.
  std::vector<std::string> sources() const;

  // Takes over the declarations of another one. A declaration that both have goes on; another
  // declaration for the same pattern replaces the old one, which is dropped without a complaint.
  void append(DeclaredOrders&& other);

  bool is_empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  // Whether a declaration is of files.
  bool has_files() const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const Entry& entry) { return !entry.item_of.empty(); });
  }
  // Whether a declaration speaks of the blocks of the file at `path`.
  bool has_order_of(const std::string& path) const;
  // What a process reads of a packed file from the run `first` on, which must be among the first
  // few of an epoch, or of the part that one of its workers has. Null when no declaration has an
  // epoch that begins so.
  DeclaredOrder order_from(const std::string& path, BlockRun first,
                           OrderReader reader = OrderReader::kFetching);
  // Which item of which declaration a file is; none when no declaration speaks of it.
  struct FilePlace {
    std::size_t declaration = 0;
    std::uint32_t item = 0;
  };
  std::optional<FilePlace> place_of_file(const std::string& path) const;
  // Requires: the declaration is not refuted.
  const std::string& file_of(const FilePlace& place) const {
    CAIRN_CHECK(!is_refuted(place.declaration));
    const std::vector<std::string>& files = entries_[place.declaration].order.item_files();
    CAIRN_CHECK(place.item < files.size());
    return files[place.item];
  }
  // The items of the declaration in the order in which their files are opened, each as a run of
  // one, from the beginning of the epoch on that has `place` near it. Null when none has.
  DeclaredOrder files_from(const FilePlace& place, OrderReader reader);
  bool is_refuted(std::size_t declaration) const {
    CAIRN_CHECK(declaration < entries_.size());
    return entries_[declaration].is_refuted;
  }

  // The reads of the file follow none of its declarations.
  void refute(const std::string& path);
  // How many declarations have been dropped.
  unsigned refuted() const { return refuted_; }

  // The files that each declaration of files begins with, in its first epoch.
  std::vector<std::string> first_files(std::size_t count);
  // The files that are read after this one, in order; none when nothing is declared about it.
  std::vector<std::string> files_after(const std::string& path, std::size_t count);

 private:
  // The order that was made last for the blocks of a worker, and its first epoch.
  struct Made {
    std::weak_ptr<const std::vector<BlockRun>> runs;
    std::uint32_t epoch = 0;
  };
  // Where in the declared epochs a stream begins: with the item number `at` of a worker.
  struct Beginning {
    std::uint32_t epoch = 0;
    std::uint32_t worker = 0;
    std::size_t at = SIZE_MAX;
  };
  struct Entry {
    std::string place;    // FILE:LINE
    std::string pattern;  // of a packed file
    std::string text;     // behind it
    EpochOrder order;
    std::array<std::uint32_t, 2> next_epoch{};  // of each reader
    std::vector<Made> made;                     // of each worker
    bool is_refuted = false;
    // For an order of many files: the item of each, and how far their opens are.
    std::unordered_map<std::string, std::uint32_t> item_of;
    FileProgress progress;
  };
  Status add(const std::string& place, const std::string& line);
  static Beginning find_beginning(Entry* entry, BlockRun first, std::uint32_t next_epoch);
  static void find_worker(const Entry& entry, const std::vector<std::uint32_t>& items,
                          std::uint32_t epoch, BlockRun first, Beginning* found);
  static BlockRun run_of(const Entry& entry, std::uint32_t item);
  static DeclaredOrder order_of_epochs(Entry* entry, const Beginning& beginning);
  static BlockRun run_or_item(const Entry& entry, std::uint32_t item) {
    return entry.item_of.empty() ? run_of(entry, item) : BlockRun{item, 1};
  }
  static bool say_the_same(const Entry& old, const Entry& fresh);
  void forget(Entry* entry);
  void drop(Entry* entry, const std::string& path);

  std::string path_;
  std::vector<Entry> entries_;
  Complain complain_;
  unsigned refuted_ = 0;
};

}  // namespace cairn::node
