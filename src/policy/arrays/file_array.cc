// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/file_array.h"

#include "base/check.h"
#include "policy/arrays/region_name.h"

namespace cairn::arrays {

static RegionName name_of(const FileArray& array) {
  // Not as a packed chunk's, which begins with a token of its dataset.
  constexpr std::uint64_t kOfFileArray = 0x666172;
  RegionName name;
  name.add(kOfFileArray);
  name.add(array.offset);
  name.add(array.cell_bytes);
  name.add(array.shape.size());
  name.add_all(array.shape.all());
  return name;
}

std::array<std::uint64_t, 2> region_name(const FileArray& array, const Box& box) {
  CAIRN_DCHECK(whole(array.shape).contains(box));
  RegionName name = name_of(array);
  name.add_all(box.first.all());
  name.add_all(box.count.all());
  return name.words();
}

std::array<std::uint64_t, 2> array_name(const FileArray& array) { return name_of(array).words(); }

std::uint64_t bytes_in_a_row(const FileArray& array, const Box& box) {
  CAIRN_DCHECK(!box.is_empty());
  std::uint64_t cells = 1;
  for (std::size_t at = box.dimensions(); at-- > 0;) {
    cells *= box.count[at];
    if (box.count[at] != array.shape[at]) break;
  }
  return cells * array.cell_bytes;
}

}  // namespace cairn::arrays
