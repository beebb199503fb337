// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/array.h"

#include <algorithm>
#include <array>
#include <new>
#include <span>

#include "base/check.h"
#include "frontends/hdf5/dataset_news.h"
#include "frontends/hdf5/dataset_questions.h"
#include "frontends/hdf5/kept_errors.h"

namespace cairn::hdf5 {
namespace {

using arrays::LeftReason;

// A chunk of this size is unpacked into memory of the connector's.
constexpr std::uint64_t kChunkBytesMax = std::uint64_t{256} << 20;

hsize_t stored_bytes(const Dataset& dataset, hid_t transfer) {
  hsize_t bytes = 0;
  H5VL_dataset_get_args_t question = {};
  question.op_type = H5VL_DATASET_GET_STORAGE_SIZE;
  question.args.get_storage_size.storage_size = &bytes;
  const OpenFile& file = *dataset.file;
  const bool is_told = file.library.call.H5VLdataset_get(dataset.lower, file.connector, &question,
                                                         transfer, nullptr) >= 0;
  return is_told ? bytes : 0;
}

}  // namespace

Array* Array::look_at(Dataset& dataset, hid_t transfer) {
  Library& library = dataset.file->library;
  const hid_t creation = ask_dataset(dataset, H5VL_DATASET_GET_DCPL, transfer);
  if (creation < 0) {
    leave_all(dataset, LeftReason::kLayout);
    return nullptr;
  }
  auto* array = new (std::nothrow) Array(library);
  bool is_fit = array != nullptr && array->look_at_layout(creation);
  if (is_fit) {
    array->type_ = ask_dataset(dataset, H5VL_DATASET_GET_TYPE, transfer);
    array->space_ = ask_dataset(dataset, H5VL_DATASET_GET_SPACE, transfer);
    is_fit =
        array->look_at_type() && array->look_at_space() &&
        (array->is_contiguous_ ? array->look_at_rows(dataset, transfer) : array->look_at_grid());
  }
  if (is_fit && array->is_packed()) array->look_at_filters(creation, dataset);
  library.call.H5Pclose(creation);
  if (is_fit) return array;
  if (array != nullptr) leave_all(dataset, array->unfit_);
  delete array;
  return nullptr;
}

Array::~Array() {
  const KeptErrors kept(library_.call);
  if (type_ >= 0) library_.call.H5Tclose(type_);
  if (space_ >= 0) library_.call.H5Sclose(space_);
}

bool Array::is_unfit(LeftReason why) {
  unfit_ = why;
  return false;
}

bool Array::look_at_layout(hid_t creation) {
  const Hdf5Functions& call = library_.call;
  const H5D_layout_t layout = call.H5Pget_layout(creation);
  is_contiguous_ = layout == H5D_CONTIGUOUS && call.H5Pget_external_count(creation) == 0;
  if (is_contiguous_) return true;
  if (layout != H5D_CHUNKED) return is_unfit(LeftReason::kLayout);
  if (call.H5Pget_nfilters(creation) <= 0) return is_unfit(LeftReason::kNotPacked);
  // HDF5 leaves the program's memory as it is where nothing was ever written.
  H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
  H5D_fill_value_t value = H5D_FILL_VALUE_UNDEFINED;
  if (call.H5Pget_fill_time(creation, &when) < 0 || when == H5D_FILL_TIME_NEVER ||
      call.H5Pfill_value_defined(creation, &value) < 0 || value == H5D_FILL_VALUE_UNDEFINED) {
    return is_unfit(LeftReason::kNoFill);
  }
  std::array<hsize_t, arrays::kDimensionsMax> chunk{};
  const int dimensions = call.H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  if (dimensions < 1 || dimensions > static_cast<int>(chunk.size()))
    return is_unfit(LeftReason::kShape);
  chunk_ = arrays::Coordinates(static_cast<std::size_t>(dimensions), 0);
  for (std::size_t at = 0; at < chunk_.size(); ++at) chunk_[at] = chunk[at];
  return true;
}

// Cells of a fixed size, without pointers in them.
bool Array::look_at_type() {
  if (type_ < 0) return is_unfit(LeftReason::kType);
  const H5T_class_t kind = library_.call.H5Tget_class(type_);
  cell_bytes_ = library_.call.H5Tget_size(type_);
  const bool is_plain = cell_bytes_ != 0 && (kind == H5T_INTEGER || kind == H5T_FLOAT ||
                                             kind == H5T_ENUM || kind == H5T_BITFIELD);
  return is_plain || is_unfit(LeftReason::kType);
}

bool Array::look_at_space() {
  const Hdf5Functions& call = library_.call;
  if (space_ < 0 || call.H5Sget_simple_extent_type(space_) != H5S_SIMPLE)
    return is_unfit(LeftReason::kShape);
  std::array<hsize_t, arrays::kDimensionsMax> shape{};
  const int dimensions = call.H5Sget_simple_extent_dims(space_, shape.data(), nullptr);
  if (dimensions < 1 || dimensions > static_cast<int>(shape.size()))
    return is_unfit(LeftReason::kShape);
  shape_ = arrays::Coordinates(static_cast<std::size_t>(dimensions), 0);
  for (std::size_t at = 0; at < shape_.size(); ++at) shape_[at] = shape[at];
  const auto cells = arrays::whole(shape_).cells();
  const bool has_cells = cells && *cells != 0 && *cells <= UINT64_MAX / cell_bytes_;
  return has_cells || is_unfit(LeftReason::kShape);
}

// Small ones are read before anybody could be ahead.
bool Array::look_at_rows(const Dataset& dataset, hid_t transfer) {
  constexpr std::uint64_t kBytesMin = std::uint64_t{1} << 20;
  if (bytes_of(arrays::whole(shape_)) < kBytesMin) return is_unfit(LeftReason::kSmall);
  haddr_t offset = HADDR_UNDEF;
  // Without any, and behind a user block, HDF5 answers with an offset that it makes of the block's
  // size and of the one that stands for none.
  if (stored_bytes(dataset, transfer) == 0) return is_unfit(LeftReason::kNoStorage);
  H5VL_native_dataset_optional_args_t native = {};
  native.get_offset.offset = &offset;
  H5VL_optional_args_t question = {.op_type = H5VL_NATIVE_DATASET_GET_OFFSET, .args = &native};
  const OpenFile& file = *dataset.file;
  const bool is_told =
      file.is_native && library_.call.H5VLdataset_optional(dataset.lower, file.connector, &question,
                                                           transfer, nullptr) >= 0;
  if (!is_told || offset == HADDR_UNDEF || offset >= file.source.version.size)
    return is_unfit(LeftReason::kNoStorage);
  in_file_ = {shape_, cell_bytes_, offset};
  note_offset(dataset, offset);
  ahead_.emplace(shape_, cell_bytes_);
  return true;
}

arrays::ByteRun Array::in_the_file(arrays::ByteRun run) const {
  run.offset += in_file_.offset;
  return run;
}

std::optional<arrays::ByteRun> Array::follow(const arrays::Box& box) {
  CAIRN_DCHECK(ahead_.has_value());
  const auto run = ahead_->observe(box);
  return run ? std::optional(in_the_file(*run)) : std::nullopt;
}

std::optional<arrays::ByteRun> Array::follow(const arrays::Hyperslab& selection) {
  CAIRN_DCHECK(ahead_.has_value());
  const auto run = ahead_->observe(selection);
  return run ? std::optional(in_the_file(*run)) : std::nullopt;
}

arrays::ByteRun Array::needed_now(const arrays::Box& box) const {
  CAIRN_DCHECK(ahead_.has_value());
  return in_the_file(ahead_->needed_now(box));
}

arrays::ByteRun Array::needed_now(const arrays::Hyperslab& selection) const {
  CAIRN_DCHECK(ahead_.has_value());
  return in_the_file(ahead_->needed_now(selection));
}

bool Array::look_at_grid() {
  if (chunk_.size() != shape_.size()) return is_unfit(LeftReason::kShape);
  arrays::Coordinates cut = chunk_;
  for (std::size_t at = 0; at < shape_.size(); ++at) {
    // A dataset that grows may be smaller than its chunk for now.
    cut[at] = std::min(chunk_[at], shape_[at]);
    if (cut[at] == 0) return is_unfit(LeftReason::kShape);
  }
  auto grid = arrays::ChunkGrid::of(shape_, arrays::ChunkShape::plain(cut));
  if (!grid) return is_unfit(LeftReason::kShape);
  grid_ = *grid;
  const auto cells = grid_->chunk(0).cells();
  return (cells && *cells <= kChunkBytesMax / cell_bytes_) || is_unfit(LeftReason::kLargeChunk);
}

// HDF5 may have left chunks at the edges as they were; and the native connector alone knows where
// chunks are.
void Array::look_at_filters(hid_t creation, const Dataset& dataset) {
  constexpr std::size_t kMost = arrays::FilterList::kMost;
  const Hdf5Functions& call = library_.call;
  const int count = call.H5Pget_nfilters(creation);
  unsigned options = 0;
  if (!dataset.file->is_native || count < 1 || count > static_cast<int>(kMost) ||
      call.H5Pget_chunk_opts(creation, &options) < 0 || options != 0)
    return;
  std::array<std::uint32_t, kMost> numbers{};
  for (int at = 0; at < count; ++at) {
    unsigned value = 0;
    std::size_t values = 1;
    const int number = call.H5Pget_filter2(creation, static_cast<unsigned>(at), nullptr, &values,
                                           &value, 0, nullptr, nullptr);
    // Bytes of other cells than these.
    if (number == H5Z_FILTER_SHUFFLE && value != cell_bytes_) return;
    numbers[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(std::max(number, 0));
  }
  const auto filters =
      arrays::FilterList::of(std::span(numbers).first(static_cast<std::size_t>(count)));
  if (!filters) return;
  arrays::PackedArray packed{dataset.token_words(), shape_, chunk_, cell_bytes_, *filters};
  if (packed.grid()) packed_ = packed;
}

}  // namespace cairn::hdf5
