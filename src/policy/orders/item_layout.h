// SPDX-License-Identifier: Apache-2.0
// Where the bytes of an item are: all items of one size in one packed file, or a file for each.
//
// Data only: nothing here opens a file.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

struct ItemRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ItemRange&, const ItemRange&) = default;
};

struct ItemLayout {
  std::uint64_t item_bytes = 0;    // of each item of the packed file; 0 when there is none
  std::uint64_t header_bytes = 0;  // of the packed file, before its first item
  std::string files_path;          // a list that names the file of each item; empty when not given

  bool is_packed() const { return item_bytes != 0; }
  bool is_files() const { return !files_path.empty(); }
  // Requires: is_packed(), and an item of the declaration, whose last byte is known to lie below
  // 2^63.
  ItemRange range_of(std::uint32_t item) const {
    return {header_bytes + item * item_bytes, item_bytes};
  }
};

}  // namespace cairn
