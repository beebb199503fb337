// SPDX-License-Identifier: Apache-2.0
#include "service/control/array_report.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "memory/buffer/region_identity.h"
#include "service/control/explain.h"

namespace cairn::node {
namespace {

using arrays::ChunkGrid;
using arrays::DatasetNews;
using arrays::Layout;
using arrays::LeftReason;

Json numbers(const arrays::Coordinates& coordinates) {
  Json list = Json::array();
  for (const std::uint64_t number : coordinates.all()) list.push_back(number);
  return list;
}

const char* layout_text(Layout layout) {
  switch (layout) {
    case Layout::kContiguous:
      return "contiguous";
    case Layout::kChunked:
      return "chunked";
    case Layout::kOther:
    case Layout::kCount:
      break;
  }
  return "other";
}

// The largest number that each may have, so that all together have at most `sum`.
std::uint64_t most_for_each(std::vector<std::uint64_t> wanted, std::uint64_t sum) {
  std::ranges::sort(wanted);
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const std::uint64_t share = sum / (wanted.size() - at);
    if (wanted[at] > share) return share;
    sum -= wanted[at];
  }
  return std::numeric_limits<std::uint64_t>::max();
}

Json description(const ArrayBook::Entry& entry) {
  const DatasetNews& dataset = entry.total;
  Json filters = Json::array();
  for (const std::uint32_t filter : dataset.filters) filters.push_back(arrays::filter_name(filter));
  Json left = Json::object();
  for (std::size_t reason = 0; reason < arrays::kLeftReasons; ++reason) {
    if (dataset.left_reads[reason] != 0)
      left[arrays::text_of(static_cast<LeftReason>(reason))] = dataset.left_reads[reason];
  }
  return {{"name", dataset.name},
          {"shape", numbers(dataset.shape)},
          {"cell_bytes", dataset.cell_bytes},
          {"layout", layout_text(dataset.layout)},
          {"file_chunk", numbers(dataset.chunk)},
          {"filters", filters},
          {"not_served", arrays::text_of(dataset.unfit)},
          {"served_reads", dataset.served_reads},
          {"served_bytes", dataset.served_bytes},
          {"left_reads", dataset.all_left()},
          {"left", left}};
}

}  // namespace

std::vector<ChunkGrid> ArrayReport::grids_of(ObjectIndex file, const DatasetNews& dataset) const {
  if (dataset.unfit != LeftReason::kNone || dataset.shape.size() == 0) return {};
  if (dataset.layout == Layout::kContiguous)
    return from_.gatherer.grids_of(file, {dataset.shape, dataset.cell_bytes, dataset.offset});
  if (dataset.chunk.size() != dataset.shape.size()) return {};
  // As the connector has it: a dataset that grows may be smaller than its chunk.
  arrays::Coordinates chunk = dataset.chunk;
  for (std::size_t at = 0; at < chunk.size(); ++at)
    chunk[at] = std::min(chunk[at], dataset.shape[at]);
  auto grid = ChunkGrid::of(dataset.shape, arrays::ChunkShape::plain(chunk));
  return grid ? std::vector{*grid} : std::vector<ChunkGrid>();
}

// The object of a chunk that the tiers have something of.
ObjectIndex ArrayReport::chunk(ObjectIndex file, const DatasetNews& dataset, const ChunkGrid& grid,
                               std::uint64_t number) const {
  CAIRN_DCHECK(file != ObjectIndex::kNone);
  CAIRN_DCHECK(number < grid.chunks());
  const Object& record = from_.memory.objects().at(file);
  // The record may be another object's by now.
  const ObjectKey key = record.key();
  if (key.kind == ObjectKind::kRegion) return ObjectIndex::kNone;
  const bool is_packed = dataset.layout == Layout::kChunked;
  const arrays::Box box = is_packed ? grid.chunk(number) : grid.with_ghost(number);
  const arrays::FileArray array{dataset.shape, dataset.cell_bytes, dataset.offset};
  const auto name =
      is_packed ? arrays::packed_region_name(dataset.token, grid, dataset.cell_bytes, number)
                : arrays::region_name(array, box);
  const StoreStatus status = status_of_region(from_.memory.objects(), key,
                                              {name, array.bytes_of(box), FileVersion::of(record)});
  const ObjectIndex found = from_.memory.objects().find(status.key);
  const bool is_cached =
      found != ObjectIndex::kNone && from_.memory.objects().at(found).blocks.load() != 0;
  return is_cached ? found : ObjectIndex::kNone;
}

Json ArrayReport::chunks_of(Search* search, const ChunkGrid& grid, std::uint64_t looked_at) const {
  CAIRN_DCHECK(looked_at <= grid.chunks());
  Json json = Json::object();
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  Json cached = Json::array();
  for (std::uint64_t number = 0; number < looked_at; ++number) {
    const ObjectIndex found = chunk(search->file, search->dataset, grid, number);
    if (found == ObjectIndex::kNone || !search->found.insert(found).second) continue;
    const Object& region = from_.memory.objects().at(found);
    ++chunks;
    bytes += std::min(region.size.load(), region.blocks.load() * kBlockBytes);
    const BucketIndex bucket = from_.memory.directory().find(found, BlockNumber{});
    if (search->names_chunks) {
      cached.push_back({number, bucket == BucketIndex::kNone
                                    ? std::string()
                                    : tier_name(from_.config, raw(from_.memory.tier_of(bucket)))});
    }
  }
  CAIRN_CHECK(chunks <= looked_at);
  json["chunk"] = numbers(grid.shape().chunk);
  json["ghost_before"] = numbers(grid.shape().ghost.before);
  json["ghost_behind"] = numbers(grid.shape().ghost.behind);
  json["origin"] = numbers(grid.shape().origin);
  json["grid"] = numbers(grid.chunks_of(arrays::whole(search->dataset.shape)).count);
  json["chunks"] = grid.chunks();
  json["chunks_looked_at"] = looked_at;
  json["cached_chunks"] = chunks;
  json["cached_bytes"] = bytes;
  if (search->names_chunks) json["cached"] = std::move(cached);
  return json;
}

Json ArrayReport::cached_of(Search search, const std::vector<ChunkGrid>& grids,
                            std::uint64_t most) const {
  CAIRN_CHECK(!grids.empty());
  Json json;
  Json earlier = Json::array();
  for (const ChunkGrid& grid : grids) {
    Json chunks = chunks_of(&search, grid, std::min(grid.chunks(), most));
    if (&grid == &grids.front()) {
      json = std::move(chunks);
    } else if (chunks["cached_chunks"] != 0) {
      earlier.push_back(std::move(chunks));
    }
  }
  json["earlier"] = std::move(earlier);
  return json;
}

Json ArrayReport::of_file(const Question& question) const {
  const ObjectIndex file = find_file(from_.memory, question.device, question.inode);
  std::vector<ArrayBook::Entry> entries =
      from_.book.of_file(StoreId{question.device}, question.inode);
  if (!question.dataset.empty()) {
    std::erase_if(entries, [&question](const ArrayBook::Entry& entry) {
      return !entry.total.is_named(question.dataset);
    });
  }
  std::vector<std::vector<ChunkGrid>> grids;
  std::vector<std::uint64_t> chunks;
  for (const ArrayBook::Entry& entry : entries) {
    grids.push_back(file == ObjectIndex::kNone ? std::vector<ChunkGrid>()
                                               : grids_of(file, entry.total));
    for (const ChunkGrid& grid : grids.back()) chunks.push_back(grid.chunks());
  }
  const std::uint64_t most = most_for_each(chunks, kChunksMax);
  Json list = Json::array();
  for (std::size_t at = 0; at < entries.size(); ++at) {
    const DatasetNews& total = entries[at].total;
    Json dataset = description(entries[at]);
    if (!grids[at].empty() && total.layout == Layout::kChunked)
      dataset["unpacked_ahead"] = from_.gatherer.unpacker().unpacked_of(file, total.token);
    if (!grids[at].empty())
      dataset.update(cached_of({file, total, question.names_chunks}, grids[at], most));
    list.push_back(std::move(dataset));
  }
  return list;
}

Json ArrayReport::of_run(std::uint32_t run) const {
  std::vector<ArrayBook::Entry> entries = from_.book.of_run(run);
  const auto reads_of = [](const ArrayBook::Entry& entry) {
    return entry.total.served_reads + entry.total.all_left();
  };
  std::sort(entries.begin(), entries.end(), [&](const auto& left, const auto& right) {
    return std::pair(reads_of(right), left.total.name) <
           std::pair(reads_of(left), right.total.name);
  });
  Json list = Json::array();
  for (const ArrayBook::Entry& entry : entries) {
    if (list.size() == kOfRunMax) break;
    list.push_back(description(entry));
    list.back()["file"] = entry.path;
  }
  Json unfit = Json::object();
  std::size_t fit = 0;
  for (const ArrayBook::Entry& entry : entries) {
    if (entry.total.unfit == LeftReason::kNone) {
      ++fit;
    } else {
      Json& count = unfit[arrays::text_of(entry.total.unfit)];
      count = (count.is_number_unsigned() ? count.get<std::size_t>() : 0) + 1;
    }
  }
  return {{"datasets", list},
          {"more", entries.size() - list.size()},
          {"may_be_served", fit},
          {"not_served", unfit},
          {"hints", from_.hints.complaints_of(run)}};
}

}  // namespace cairn::node
