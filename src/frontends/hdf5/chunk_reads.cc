// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/chunk_reads.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/check.h"
#include "frontends/hdf5/dataset_news.h"
#include "frontends/hdf5/ranks.h"
#include "policy/arrays/box_copy.h"
#include "policy/arrays/dataset_news.h"

namespace cairn::hdf5 {
namespace {

using arrays::Box;

double seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A space of HDF5 for as long as it is in scope.
class Space {
 public:
  Space(const Hdf5Functions& call, const arrays::Coordinates& shape) : call_(call) {
    std::array<hsize_t, arrays::kDimensionsMax> numbers{};
    for (std::size_t at = 0; at < shape.size(); ++at) numbers[at] = shape[at];
    id_ = call.H5Screate_simple(static_cast<int>(shape.size()), numbers.data(), nullptr);
  }
  ~Space() {
    if (id_ >= 0) call_.H5Sclose(id_);
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  hid_t id() const { return id_; }
  bool select(const Box& box) {
    std::array<hsize_t, arrays::kDimensionsMax> first{};
    std::array<hsize_t, arrays::kDimensionsMax> count{};
    for (std::size_t at = 0; at < box.dimensions(); ++at) {
      first[at] = box.first[at];
      count[at] = box.count[at];
    }
    return id_ >= 0 && call_.H5Sselect_hyperslab(id_, H5S_SELECT_SET, first.data(), nullptr,
                                                 count.data(), nullptr) >= 0;
  }

 private:
  const Hdf5Functions& call_;
  hid_t id_;
};

// Memory of the connector's for an unpacked chunk.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : memory_(::malloc(bytes)) {}
  ~Scratch() { ::free(memory_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return memory_; }

 private:
  void* memory_;
};

arrays::LeftReason why_left(arrays::KeepingWorth::Answer answer) {
  switch (answer) {
    case arrays::KeepingWorth::Answer::kCheap:
      return arrays::LeftReason::kCheap;
    case arrays::KeepingWorth::Answer::kNoRoom:
      return arrays::LeftReason::kNoRoom;
    case arrays::KeepingWorth::Answer::kYes:
      break;
  }
  return arrays::LeftReason::kNotThere;
}

}  // namespace

ChunkReads::ChunkReads(Dataset& dataset, Array& array, const DatasetRead& read, const Box& box)
    : dataset_(dataset), array_(array), read_(read), box_(box), calls_(*region_calls()) {
  CAIRN_DCHECK(dataset.file->source.is_open());
}

CairnRegion ChunkReads::region_of(std::uint64_t number) const {
  const auto name = arrays::packed_region_name(dataset_.token_words(), array_.grid(),
                                               array_.cell_bytes(), number);
  CairnRegion region{};
  region.descriptor = dataset_.file->source.descriptor;
  std::copy(name.begin(), name.end(), region.name);
  region.bytes = array_.bytes_of(array_.grid().chunk(number));
  region.version = dataset_.file->source.version;
  return region;
}

int ChunkReads::copy_from_tiers(const CairnRegion& region, const Box& chunk,
                                const Box& wanted) const {
  std::vector<CairnRegionPart> parts;
  for (const arrays::CopyRun& run :
       arrays::runs_between(wanted, array_.cell_bytes(), chunk, box_)) {
    parts.push_back({run.from, run.bytes, static_cast<char*>(read_.buffer) + run.to});
  }
  return calls_.read(&region, parts.data(), parts.size());
}

bool ChunkReads::unpack(const Box& box, void* to) {
  const OpenFile& file = *dataset_.file;
  const Hdf5Functions& call = file.library.call;
  Space memory(call, box.count);
  Space cells(call, array_.grid().array());
  if (memory.id() < 0 || !cells.select(box)) return false;
  void* lower = dataset_.lower;
  hid_t type = read_.memory_type;
  hid_t memory_space = memory.id();
  hid_t file_space = cells.id();
  const double begin = seconds_now();
  std::optional<CallOfItsOwn> own;
  if (read_.is_apart && !own.emplace(file.library.parallel).has_begun()) return false;
  if (call.H5VLdataset_read(1, &lower, file.connector, &type, &memory_space, &file_space,
                            read_.transfer, &to, nullptr) < 0) {
    return false;
  }
  array_.keeping.note_unpacked(array_.bytes_of(box), seconds_now() - begin);
  return true;
}

void ChunkReads::keep(std::uint64_t number, const CairnRegion& region, const void* cells) {
  if (!array_.keeping.is_worth()) return;
  const double begin = seconds_now();
  if (calls_.keep(&region, cells) == 0) array_.keeping.note_kept(number, seconds_now() - begin);
}

bool ChunkReads::read_chunk(std::uint64_t number) {
  const Box chunk = array_.grid().chunk(number);
  const auto wanted = arrays::intersection(box_, chunk);
  CAIRN_DCHECK(wanted.has_value());
  const CairnRegion region = region_of(number);
  const int error = copy_from_tiers(region, chunk, *wanted);
  if (error == 0) {
    array_.keeping.note_found();
    note_served(dataset_, array_.bytes_of(*wanted));
    return true;
  }
  array_.keeping.note_missed(number);
  leave(dataset_, why_left(array_.keeping.answer()));
  // To unpack all of it for a part would be in vain.
  const bool has_room = array_.keeping.answer() != arrays::KeepingWorth::Answer::kNoRoom;
  if (error != -ENODATA || !has_room) return false;
  if (*wanted == box_ && *wanted == chunk) {
    if (!unpack(chunk, read_.buffer)) return false;
    keep(number, region, read_.buffer);
    return true;
  }
  const Scratch scratch(region.bytes);
  if (scratch.get() == nullptr || !unpack(chunk, scratch.get())) return false;
  keep(number, region, scratch.get());
  arrays::copy_cells(*wanted, array_.cell_bytes(),
                     {static_cast<const std::byte*>(scratch.get()), chunk},
                     {static_cast<std::byte*>(read_.buffer), box_});
  return true;
}

}  // namespace cairn::hdf5
