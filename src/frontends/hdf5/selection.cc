// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/selection.h"

#include <array>

namespace cairn::hdf5 {
namespace {

using arrays::Box;
using arrays::Coordinates;
using Numbers = std::array<hsize_t, arrays::kDimensionsMax>;

Coordinates coordinates(const Numbers& numbers, std::size_t dimensions) {
  Coordinates result(dimensions, 0);
  for (std::size_t at = 0; at < dimensions; ++at) result[at] = numbers[at];
  return result;
}

// The shape of a space; none where it has more or fewer dimensions than `dimensions`, if not 0.
std::optional<Coordinates> shape_of(const Hdf5Functions& call, hid_t space) {
  Numbers shape{};
  const int dimensions = call.H5Sget_simple_extent_ndims(space);
  if (dimensions < 1 || dimensions > static_cast<int>(shape.size())) return std::nullopt;
  if (call.H5Sget_simple_extent_dims(space, shape.data(), nullptr) != dimensions)
    return std::nullopt;
  return coordinates(shape, static_cast<std::size_t>(dimensions));
}

// A space's selection, which may have been shifted by H5Soffset_simple(): its bounds tell.
std::optional<arrays::Hyperslab> regular(const Hdf5Functions& call, hid_t space,
                                         std::size_t dimensions) {
  if (call.H5Sget_select_type(space) != H5S_SEL_HYPERSLABS ||
      call.H5Sis_regular_hyperslab(space) <= 0)
    return std::nullopt;
  Numbers start{};
  Numbers stride{};
  Numbers count{};
  Numbers block{};
  Numbers first{};
  Numbers last{};
  if (call.H5Sget_regular_hyperslab(space, start.data(), stride.data(), count.data(),
                                    block.data()) < 0 ||
      call.H5Sget_select_bounds(space, first.data(), last.data()) < 0) {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < dimensions; ++at) {
    // H5S_UNLIMITED, and more than an array may have.
    constexpr hsize_t kMost = hsize_t{1} << 62;
    if (count[at] == 0 || block[at] == 0 || count[at] > kMost || block[at] > kMost)
      return std::nullopt;
    if (first[at] != start[at]) return std::nullopt;
  }
  return arrays::Hyperslab{coordinates(start, dimensions), coordinates(stride, dimensions),
                           coordinates(count, dimensions), coordinates(block, dimensions)};
}

std::optional<Box> selected(const Hdf5Functions& call, hid_t space, const Coordinates& shape) {
  if (call.H5Sget_select_type(space) == H5S_SEL_ALL) return arrays::whole(shape);
  const auto slab = regular(call, space, shape.size());
  return slab ? slab->as_box() : std::nullopt;
}

}  // namespace

std::optional<Box> box_in_file(const Hdf5Functions& call, hid_t file_space,
                               const Coordinates& shape) {
  std::optional<Box> box;
  // The properties of the transfer say it.
  if (file_space == H5S_PLIST) return std::nullopt;
  if (file_space == H5S_ALL) {
    box = arrays::whole(shape);
  } else {
    const auto extent = shape_of(call, file_space);
    if (!extent || *extent != shape) return std::nullopt;
    box = selected(call, file_space, shape);
  }
  if (!box || box->is_empty() || !box->cells() || !arrays::whole(shape).contains(*box))
    return std::nullopt;
  return box;
}

std::optional<arrays::Hyperslab> hyperslab_in_file(const Hdf5Functions& call, hid_t file_space,
                                                   const Coordinates& shape) {
  if (file_space == H5S_PLIST || file_space == H5S_ALL) return std::nullopt;
  const auto extent = shape_of(call, file_space);
  if (!extent || *extent != shape) return std::nullopt;
  auto slab = regular(call, file_space, shape.size());
  if (!slab) return std::nullopt;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    // What lies beyond the array is HDF5's to refuse, before a product can overflow.
    if (slab->stride[at] == 0 || slab->block[at] > shape[at] ||
        (slab->count[at] - 1) > (shape[at] - slab->block[at]) / slab->stride[at])
      return std::nullopt;
  }
  if (!arrays::whole(shape).contains(slab->bounds())) return std::nullopt;
  return slab;
}

bool has_no_gaps(const Hdf5Functions& call, const DatasetRead& read, const Box& box,
                 const Coordinates& shape) {
  if (read.memory_space == H5S_BLOCK) return true;
  // The memory has the shape of the dataset, and the selection's cells at their places.
  if (read.memory_space == H5S_ALL) return box == arrays::whole(shape);
  if (read.memory_space == H5S_PLIST) return false;
  const auto memory = shape_of(call, read.memory_space);
  if (!memory) return false;
  const auto chosen = selected(call, read.memory_space, *memory);
  return chosen && *chosen == arrays::whole(*memory) && chosen->cells() == box.cells();
}

std::optional<Box> box_of(const Hdf5Functions& call, const DatasetRead& read,
                          const Coordinates& shape) {
  auto box = box_in_file(call, read.file_space, shape);
  if (!box || !has_no_gaps(call, read, *box, shape)) return std::nullopt;
  return box;
}

}  // namespace cairn::hdf5
