// SPDX-License-Identifier: Apache-2.0
// What a record of kind kNames says: which file each of some names of a directory means, and which
// one it meant before.
//
//   each name   bytes of the name u32, flags u32 (1: it meant a file, 2: it means one, 4: that file
//               may be empty), the name, then for each of the two files inode u64, birth time u64,
//               bytes of the handle u32, the handle; last, of the second, mode, user, group u32
//
// Recovery needs both. What a directory has after a crash may be older than the record: a file that
// the record does not know came later, and stays.
//
// Thread safety: pure functions. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/object_key.h"

namespace cairn::durable {

// A file as its directory knows it. The handle (file_handle.h) tells two files apart that had one
// inode in one tick of the clock.
struct NamedFile {
  FileId id;
  std::vector<std::byte> handle;

  friend auto operator<=>(const NamedFile&, const NamedFile&) = default;
};

struct NameChange {
  std::string name;
  std::optional<NamedFile> before;
  std::optional<NamedFile> after;
  // Nobody has made `after` durable: after a crash it may be empty.
  bool may_be_empty = false;
  // As `after` was made.
  std::uint32_t mode = 0;
  std::uint32_t user = 0;
  std::uint32_t group = 0;

  friend bool operator==(const NameChange&, const NameChange&) = default;
};

inline constexpr std::size_t kNameBytesMax = 255;
// The longest payload; a segment takes it whatever its size.
inline constexpr std::size_t kNamesBytesMax = 12U << 10;

std::vector<std::byte> encode_names(std::span<const NameChange> changes);
// None where a length or a value is impossible.
std::optional<std::vector<NameChange>> decode_names(std::span<const std::byte> bytes);

}  // namespace cairn::durable
