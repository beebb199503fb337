// SPDX-License-Identifier: Apache-2.0
// Hears what fsync(2) and syncfs(2) say of what was stored. The kernel tells of a page that it has
// given up once to each open description, and takes the page for clean from then on. So the
// tiers have to store again what they still have of it.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/object_key.h"
#include "service/write_back/store_file.h"

namespace cairn::node {

// A file that was stored, and whose descriptor is gone.
struct ClosedFile {
  ObjectIndex object = ObjectIndex::kNone;
  ObjectKey key;
  std::string path;
  // Leads to the file wherever it is, and tells when it is deleted; null: too few descriptors.
  std::shared_ptr<const UniqueFd> place;
  // These may be lost: nobody has made them durable since they were stored.
  StoredRanges stored;
};

// What an fsync has said.
struct SyncAnswer {
  int error = 0;                      // 0 or -errno
  std::uint32_t failures_before = 0;  // Object::sync_failures when it began
  StoredRanges stored;                // what it was to make durable
};

// What becomes of the bytes that a store may have failed to keep.
enum class Fate : std::uint8_t {
  kSafe,        // the store has them
  kDirtyAgain,  // the tiers have all of them, and are going to store them again
  kLost         // the tiers do not have all of them
};

class SyncListener {
 public:
  virtual ~SyncListener() = default;
  // Requires: the file's sync_mutex.
  [[nodiscard]] virtual Fate file_synced(const StoreFile& file, const SyncAnswer& answer) = 0;
  virtual void store_sync_failed(StoreId store, int error) = 0;
  // What the store has failed to keep may be of this file.
  [[nodiscard]] virtual Fate store_again(const ClosedFile& file) = 0;
};

}  // namespace cairn::node
