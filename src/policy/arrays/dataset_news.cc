// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/dataset_news.h"

#include "policy/arrays/region_name.h"

namespace cairn::arrays {

const char* text_of(LeftReason reason) {
  switch (reason) {
    case LeftReason::kWritable:
      return "the file is open for writing or SWMR";
    case LeftReason::kElsewhere:
      return "the dataset is in another file";
    case LeftReason::kOtherFile:
      return "another version of the file is open, or no plain file";
    case LeftReason::kNotPacked:
      return "chunks without filters";
    case LeftReason::kLayout:
      return "compact, external or virtual layout";
    case LeftReason::kNoFill:
      return "no fill value";
    case LeftReason::kType:
      return "cells that are no plain numbers";
    case LeftReason::kShape:
      return "no cells, or too many dimensions";
    case LeftReason::kSmall:
      return "smaller than a MiB";
    case LeftReason::kNoStorage:
      return "nothing is stored of it";
    case LeftReason::kLargeChunk:
      return "chunks too large to unpack";
    case LeftReason::kConversion:
      return "type conversion";
    case LeftReason::kSelection:
      return "not a plain box";
    case LeftReason::kTransfer:
      return "special transfer properties, or several datasets at once";
    case LeftReason::kPlainBox:
      return "a box too small, too large or of long rows";
    case LeftReason::kNotThere:
      return "not in the tiers yet";
    case LeftReason::kCheap:
      return "unpacking is cheaper";
    case LeftReason::kNoRoom:
      return "the tiers are too small to keep chunks until they are read again";
    case LeftReason::kWriter:
      return "a program has the file open for writing, or past the buffer";
    case LeftReason::kChanged:
      return "the file has changed since it was opened";
    case LeftReason::kNone:
    case LeftReason::kCount:
      break;
  }
  return "";
}

bool DatasetNews::is_named(std::string_view path) const {
  constexpr std::string_view kCut = "...";
  if (name == path || !name.starts_with(kCut)) return name == path;
  return path.size() > name.size() && path.ends_with(std::string_view(name).substr(kCut.size()));
}

std::uint64_t DatasetNews::all_left() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t reads : left_reads) sum += reads;
  return sum;
}

std::string filter_name(std::uint32_t number) {
  switch (number) {
    case 1:
      return "gzip";
    case 2:
      return "shuffle";
    case 3:
      return "fletcher32";
    case 4:
      return "szip";
    case 5:
      return "nbit";
    case 6:
      return "scaleoffset";
    case 307:
      return "bzip2";
    case 32000:
      return "lzf";
    case 32001:
      return "blosc";
    case 32004:
      return "lz4";
    case 32008:
      return "bitshuffle";
    case 32013:
      return "zfp";
    case 32015:
      return "zstd";
    case 32026:
      return "blosc2";
    default:
      return "filter " + std::to_string(number);
  }
}

std::array<std::uint64_t, 2> packed_region_name(const std::array<std::uint64_t, 2>& token,
                                                const ChunkGrid& grid, std::uint64_t cell_bytes,
                                                std::uint64_t number) {
  RegionName name;
  name.add_all(token);
  name.add_all(grid.array().all());
  name.add_all(grid.shape().chunk.all());
  name.add(cell_bytes);
  name.add(number);
  return name.words();
}

}  // namespace cairn::arrays
