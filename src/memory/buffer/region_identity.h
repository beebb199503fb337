// SPDX-License-Identifier: Apache-2.0
// Regions: objects of the tiers whose bytes are those of a part of a file, arranged otherwise or
// unpacked. Here is what tells them apart.
//
// A region is of one version of its file: of the size and the times that the file had, as the node
// knows them. A write by any program of the node changes those before the write returns, so a
// region of an older version is no longer asked for, and leaves the tiers. The death of a process
// in the midst of a write counts as a change too.
//
// Thread safety: functions of values, and of a file's record, which others may change.
#pragma once

#include <array>
#include <cstdint>

#include "memory/backing/backing.h"
#include "memory/catalog/object_table.h"

namespace cairn {

struct FileVersion {
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::uint32_t cut_writes = 0;  // Object::cut_writes

  static FileVersion of(const Object& file);
  // Another change of the file would have other times, by now.
  bool has_settled() const;
  bool operator==(const FileVersion&) const = default;
};

// Whether the file's bytes may be ahead of its version: somebody has it open who may write it, or
// has died with it open and is not buried yet. Its regions are nobody's then. To be looked at
// before the version is: a dead writer's cut write is noted first.
bool may_be_written(const Object& file);

struct RegionIdentity {
  std::array<std::uint64_t, 2> name{};  // within the file
  std::uint64_t bytes = 0;              // of the region
  FileVersion version;
};

// What a store would say of the region of that file. `objects`: where it is to be opened.
StoreStatus status_of_region(const ObjectTable& objects, const ObjectKey& file,
                             const RegionIdentity& region);

// How the region is treated: as its file, but it is clean always, so no scratch data, and neither
// pinned nor made of the parts that rules name.
ObjectHandling handling_of_region(const Object& file);

}  // namespace cairn
