// SPDX-License-Identifier: Apache-2.0
// Hears what fsync(2) and syncfs(2) say of what was stored. The kernel tells of a page that it has
// given up once to each open description, and takes the page for clean from then on. So the
// tiers have to store again what they still have of it.
//
// Thread safety: any thread.
#pragma once

#include <string>

#include "base/object_key.h"
#include "service/write_back/store_file.h"

namespace cairn::node {

// A file that was stored, and whose descriptor is gone.
struct ClosedFile {
  ObjectIndex object = ObjectIndex::kNone;
  ObjectKey key;
  std::string path;
};

class SyncListener {
 public:
  virtual ~SyncListener() = default;
  // `error`: 0 or -errno. Returns whether nothing is lost: all of the file is in the tiers, and is
  // going to be stored again. Requires: the file's sync_mutex.
  virtual bool file_synced(const StoreFile& file, int error) = 0;
  virtual void store_sync_failed(StoreId store, int error) = 0;
  // What the store has failed to keep may be of this file. Returns whether nothing is lost.
  virtual bool store_again(const ClosedFile& file) = 0;
};

}  // namespace cairn::node
