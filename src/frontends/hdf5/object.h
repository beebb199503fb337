// SPDX-License-Identifier: Apache-2.0
// What the connector gives HDF5 for each open thing: the object of the connector below, and the
// file that it was reached through.
//
// Thread safety: as open_file.h.
// Ownership: HDF5 owns an object from the callback that opens it to the one that closes it.
#pragma once

#include <array>
#include <cstdint>

#include "frontends/hdf5/open_file.h"

namespace cairn::hdf5 {

enum class Kind : unsigned char { kOther, kDataset };

struct Object {
  Object(OpenFile& of, void* lower_object, Kind which = Kind::kOther)
      : lower(lower_object), file(&of), kind(which) {}

  void* lower;
  OpenFile* file;
  Kind kind;
};

// A dataset need not be in the file that it was opened through: a path may go through an external
// link or a mounted file. What names the dataset for good is filled in by identify()
// (dataset_identity.h), at the first read that wants it.
struct Dataset : Object {
  Dataset(OpenFile& of, void* lower_dataset) : Object(of, lower_dataset, Kind::kDataset) {}
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  enum class Identity : unsigned char { kNotAsked, kUnknown, kKnown };

  Identity identity = Identity::kNotAsked;
  // Whether the file that holds the dataset is the one that it was opened through, and that was
  // opened for reading alone. False where that is not certain.
  bool is_read_only = false;
  // The first half of that.
  bool is_in_file = false;
  // Where the dataset is in that file.
  H5O_token_t token = {};
  // Its chunks, where they may be kept: an Array (array.h). Looked for at the first read.
  Memory* array = nullptr;
  bool is_looked_at = false;
  // What the node is to hear of its reads (dataset_news.h). From the first read on; the file's,
  // unless the dataset owns it.
  Memory* news = nullptr;
  bool owns_news = false;
  // What of the memory for chunks is its own (chunk_room.h), in bytes.
  std::uint64_t chunk_room = 0;
  // The program has opened it by a path.
  bool has_path = true;

  std::array<std::uint64_t, 2> token_words() const {
    std::array<std::uint64_t, 2> words{};
    static_assert(sizeof token == sizeof words);
    __builtin_memcpy(words.data(), &token, sizeof words);
    return words;
  }
};

// Returns: an object of the kind, which holds the file; null for a null `lower` and where there is
// no memory.
Object* make_object(OpenFile& file, void* lower, Kind kind);
// Gives back the object, not the one below.
void release(Object* object);

// HDF5 has only untyped pointers to objects. What it asks before anything is open comes with null.
inline Object* object_of(void* object) { return static_cast<Object*>(object); }
inline void* lower_of(void* object) {
  return object == nullptr ? nullptr : object_of(object)->lower;
}

}  // namespace cairn::hdf5
