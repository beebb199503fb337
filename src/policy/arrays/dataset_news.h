// SPDX-License-Identifier: Apache-2.0
// What a library of arrays says of a dataset that a program reads: what it is, and how many of its
// reads were served from chunks in the tiers, or why they were not.
//
// The numbers of the enumerations are those of cairn_array_news() (include/cairn/region_calls.h).
//
// Units: cells, and bytes where it says so. Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

enum class Layout : std::uint8_t {
  kOther,  // in the object's header, in other files, in other datasets
  kContiguous,
  kChunked,
  kCount
};

// Why the library below reads by itself. The first ones are of a dataset as a whole.
enum class LeftReason : std::uint8_t {
  kNone,
  kWritable,    // the process has the file open for writing
  kElsewhere,   // the dataset is in another file than the one that was opened
  kOtherFile,   // the open file is another version of it, or no plain file
  kNotPacked,   // chunks without filters
  kLayout,      // Layout::kOther
  kNoFill,      // cells without content leave the program's memory as it is
  kType,        // cells that are no plain numbers
  kShape,       // no cells, or too many dimensions
  kSmall,       // an array of less than a MiB
  kNoStorage,   // nothing was written yet
  kLargeChunk,  // one of more than the connector unpacks
  // Those from here on are of single reads.
  kConversion,  // into another type
  kSelection,   // no box, or one with gaps in the program's memory
  kTransfer,    // changes what it reads, or several datasets at once
  kPlainBox,    // small, large, or of long rows: as fast from the file's own blocks
  kNotThere,    // the box was not gathered, the chunk not unpacked yet
  kCheap,       // to unpack it is cheaper than to keep it
  kNoRoom,      // chunks that were kept were gone when they were read again
  kWriter,      // a process has the file open for writing, this one or another
  kChanged,     // the file has changed since it was opened
  kCount
};

inline constexpr std::size_t kLeftReasons = static_cast<std::size_t>(LeftReason::kCount);
constexpr bool is_of_dataset(LeftReason reason) {
  return reason != LeftReason::kNone && reason < LeftReason::kConversion;
}

// As in "left to HDF5: ...".
const char* text_of(LeftReason reason);

struct DatasetNews {
  // Within the file; empty: it has none. A name that is too long for its message is here with its
  // last part, behind "...", which no path begins with.
  std::string name;
  Layout layout = Layout::kOther;
  LeftReason unfit = LeftReason::kNone;  // why none of its reads is served; else kNone
  Coordinates shape;                     // without dimensions: not known
  Coordinates chunk;                     // of the file, if kChunked and known
  std::uint64_t cell_bytes = 0;
  std::uint64_t offset = 0;              // bytes, of the first cell in the file, if kContiguous
  std::array<std::uint64_t, 2> token{};  // what the library names the dataset by in the file
  std::vector<std::uint32_t> filters;    // by their registered numbers
  std::uint64_t served_reads = 0;        // since the news before, as all that follows
  std::uint64_t served_bytes = 0;
  std::array<std::uint64_t, kLeftReasons> left_reads{};

  // `path`: the whole one, or the name as it is here, which is what users see.
  bool is_named(std::string_view path) const;
  std::uint64_t all_left() const;
};

// "gzip", "shuffle", ... or the number (https://github.com/HDFGroup/hdf5_plugins has the numbers).
std::string filter_name(std::uint32_t number);

// Two words that name an unpacked chunk as a region of its file.
std::array<std::uint64_t, 2> packed_region_name(const std::array<std::uint64_t, 2>& token,
                                                const ChunkGrid& grid, std::uint64_t cell_bytes,
                                                std::uint64_t number);

}  // namespace cairn::arrays
