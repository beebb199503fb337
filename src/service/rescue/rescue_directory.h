// SPDX-License-Identifier: Apache-2.0
// Where a rescue puts what it cannot store: a directory of this user's own with the saved bytes and
// a list that says whose they are (docs/formats.md has the format; `cairn rescue` reads it).
//
//   DIRECTORY/list     one line for each range
//   DIRECTORY/1, 2...  one file for each that is saved, its bytes at their own offsets
//
// It is made with the first file: a rescue that can store everything leaves nothing. Places are
// tried in turn, because what is full may be the file system of the first.
//
// Thread safety: one thread. Ownership: closes its descriptors.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

// A file, and why it is saved.
struct SavedSource {
  ObjectIndex object = ObjectIndex::kNone;
  std::string path;  // empty when nobody knows
  std::string why;
};

class RescueDirectory {
 public:
  // Directories that are made in `places`, the first that can be written, are named after the node.
  RescueDirectory(const NodeMemory& memory, std::string node, std::vector<std::string> places);

  // Saves the dirty pages of the file, whatever the state of its blocks, and lists them. What
  // cannot be saved is listed as lost. Returns whether nothing is lost.
  bool save(const SavedSource& source);
  // Lists the file as one that nothing could be read of.
  void list_unreadable(const SavedSource& source);
  // Lists the file as one whose store may have lost any of it that is not saved here.
  void list_lost(const SavedSource& source);
  // Everything is on its device. Returns false when that cannot be said.
  bool finish();

  // Empty when nothing has been saved or listed.
  const std::string& path() const { return path_; }
  std::uint64_t saved_bytes() const { return saved_bytes_; }
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  std::size_t files() const { return listed_.size(); }

 private:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    int error = 0;
  };
  bool make_in(const std::string& place);
  bool open();
  std::vector<Range> write_pages(const SavedSource& source, int fd);
  Range write_range(BucketIndex bucket, std::uint64_t offset, std::uint64_t length, int fd);
  void list_whole(const SavedSource& source, int error);
  void list(const SavedSource& source, const std::string& name, const std::vector<Range>& ranges);

  const NodeMemory& memory_;
  const std::string node_;
  std::vector<std::string> places_;
  std::string path_;
  UniqueFd list_;
  std::set<ObjectIndex> listed_;
  std::uint64_t saved_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  bool is_durable_ = true;
};

// The places in which users look for what programs keep: the state directory, /var/tmp, and the
// node's own directory at last.
std::vector<std::string> rescue_places(const std::string& node_directory);

}  // namespace cairn::node
