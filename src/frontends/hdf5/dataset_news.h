// SPDX-License-Identifier: Apache-2.0
// What the node is to hear of a dataset that the program reads: what it is, how many of its reads
// came from chunks in the tiers, and why the others did not.
//
// The node hears of it at the first read, when the file is closed, and in between a few times a
// second at most. A file that is read has the news of its datasets, as some programs open a dataset
// for each read. A close waits for a node that has no time for the news, 50 ms at most for all of a
// file; what the node has not heard then is lost.
//
// Thread safety: as open_file.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "frontends/hdf5/object.h"
#include "policy/arrays/dataset_news.h"

namespace cairn::hdf5 {

class ReadNews final : public Memory {
 public:
  // Its news from the first read on; null where nobody is to hear of it, or there is no memory.
  static ReadNews* of(Dataset& dataset, hid_t transfer);
  // The same if it has been read.
  static ReadNews* if_any(const Dataset& dataset) { return static_cast<ReadNews*>(dataset.news); }

  // Why none of the dataset's reads is served.
  arrays::LeftReason unfit = arrays::LeftReason::kNone;
  // Why HDF5 works on the read that is under way.
  arrays::LeftReason left = arrays::LeftReason::kNone;
  // Where its first cell is in the file, if the cells follow each other there.
  std::uint64_t offset = 0;
  // Bytes of that read that came from the tiers.
  std::uint64_t served_bytes = 0;

  // The read is over, or is known to be HDF5's.
  void count_read(bool is_served);
  bool has_counted() const { return has_counted_; }
  // Tells the node now, if it is to hear of this dataset at all.
  void tell(Dataset& dataset, hid_t transfer);
  // The same, unless it has been told a moment ago.
  void tell_sometimes(Dataset& dataset, hid_t transfer);
  // The same for the last time, as nobody keeps the news.
  void tell_last(Dataset& dataset, hid_t transfer);
  // Tells the node what it has not heard yet of the file's datasets, for the last time.
  static void tell_rest(OpenFile& file);

 private:
  static constexpr std::size_t kFiltersMax = 8;

  // So many datasets of a file share their news among those who open them.
  static constexpr std::size_t kSharedMax = 256;

  using Token = std::array<std::uint64_t, 2>;

  // That of a dataset of the file, by its name as well if that is not null.
  static ReadNews* find(const OpenFile& file, const Token& token, const char* name);
  bool is_to_be_told();
  // Returns: as cairn_array_news().
  int send(const OpenFile& file);
  void send_patiently(OpenFile& file);
  void describe(Dataset& dataset, hid_t transfer);
  void describe_layout(const Dataset& dataset, hid_t transfer);
  void describe_shape(const Dataset& dataset, hid_t transfer);

  std::unique_ptr<ReadNews> next_;  // of the file
  std::size_t position_ = 0;        // from the end of the file's
  Token token_{};
  bool has_counted_ = false;
  bool is_described_ = false;
  bool is_outdated_ = false;  // the description: another dataset may have the name by now
  bool has_place_ = false;    // among the unserved datasets that the node hears of
  std::int64_t told_at_ms_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t read_bytes_ = 0;
  std::array<std::uint64_t, arrays::kLeftReasons> left_reads_{};

  char name_[256] = {};
  arrays::Layout layout_ = arrays::Layout::kOther;
  std::uint64_t cell_bytes_ = 0;
  std::size_t dimensions_ = 0;
  bool has_chunks_ = false;
  std::array<std::uint64_t, arrays::kDimensionsMax> shape_{};
  std::array<std::uint64_t, arrays::kDimensionsMax> chunk_{};
  std::size_t filter_count_ = 0;
  std::array<std::uint32_t, kFiltersMax> filters_{};
};

// HDF5 works on the read that is under way. Returns: false.
bool leave(const Dataset& dataset, arrays::LeftReason why);
// Its first cell is there in the file, and the others follow.
void note_offset(const Dataset& dataset, std::uint64_t offset);
// None of the dataset's reads is served. Returns: false.
bool leave_all(const Dataset& dataset, arrays::LeftReason why);
// So many bytes of the read that is under way came from the tiers.
void note_served(const Dataset& dataset, std::uint64_t bytes);

}  // namespace cairn::hdf5
