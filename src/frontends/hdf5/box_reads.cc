// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/box_reads.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "frontends/hdf5/dataset_news.h"
#include "frontends/hdf5/regions.h"

namespace cairn::hdf5 {
namespace {

using arrays::Box;

// Smaller boxes are read sooner than anybody hears of them.
constexpr std::uint64_t kBoxBytesMin = std::uint64_t{64} << 10;
// Longer rows are as fast from the file's own blocks.
constexpr std::uint64_t kRowBytesMax = std::uint64_t{64} << 10;
// What the node gathers (service/gathering).
constexpr std::uint64_t kBoxBytesMax = std::uint64_t{64} << 20;
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 18;

bool is_worth_gathering(const arrays::FileArray& array, const Box& box) {
  const std::uint64_t bytes = array.bytes_of(box);
  const std::uint64_t row_bytes = arrays::bytes_in_a_row(array, box);
  return bytes >= kBoxBytesMin && bytes <= kBoxBytesMax && row_bytes < kRowBytesMax &&
         bytes / row_bytes <= kRowsMax;
}

void tell(const Dataset& dataset, const Array& array, const Box& box, bool was_kept) {
  const arrays::FileArray& in_file = array.in_file();
  const CairnArrayRead read = {.descriptor = dataset.file->source.descriptor,
                               .dimensions = static_cast<std::uint32_t>(box.dimensions()),
                               .was_kept = was_kept ? 1U : 0U,
                               .reserved = 0,
                               .cell_bytes = in_file.cell_bytes,
                               .offset = in_file.offset,
                               .shape = in_file.shape.all().data(),
                               .first = box.first.all().data(),
                               .count = box.count.all().data()};
  (void)region_calls()->tell(&read);
}

}  // namespace

bool read_gathered(const Dataset& dataset, Array& array, const DatasetRead& read, const Box& box) {
  CAIRN_DCHECK(!array.is_packed());
  CAIRN_DCHECK(dataset.file->source.is_open());
  array.under_way.reset();
  if (!is_worth_gathering(array.in_file(), box))
    return leave(dataset, arrays::LeftReason::kPlainBox);
  const auto name = arrays::region_name(array.in_file(), box);
  CairnRegion region{};
  region.descriptor = dataset.file->source.descriptor;
  std::copy(name.begin(), name.end(), region.name);
  region.bytes = array.bytes_of(box);
  region.version = dataset.file->source.version;
  const CairnRegionPart all = {0, region.bytes, read.buffer};
  const bool is_read = region_calls()->read(&region, &all, 1) == 0;
  if (is_read) {
    note_served(dataset, region.bytes);
    tell(dataset, array, box, true);
  } else {
    array.under_way = box;
    leave(dataset, arrays::LeftReason::kNotThere);
  }
  return is_read;
}

void tell_of_read(const Dataset& dataset) {
  auto* array = static_cast<Array*>(dataset.array);
  if (array == nullptr || !array->under_way) return;
  tell(dataset, *array, *std::exchange(array->under_way, std::nullopt), false);
}

}  // namespace cairn::hdf5
