// SPDX-License-Identifier: Apache-2.0
// A shelf in a directory: one file (policy/prefetch/knowledge_file.h) for each file whose order is
// worth it. Several nodes may use the directory at once; the last put of a file counts.
//
// Bounds: what was used longest ago is removed when there are more than files_max, or more bytes
// than bytes_max.
//
// Thread safety: none. A directory that cannot be written costs nothing but what would be kept: it
// is complained of once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "policy/prefetch/knowledge.h"

namespace cairn::node {

class KnowledgeDirectory final : public KnowledgeShelf {
 public:
  struct Bounds {
    std::size_t files_max = 1024;
    std::uint64_t bytes_max = std::uint64_t{64} << 20;
  };
  struct Counts {
    std::size_t fetched = 0;  // files of which something was known
    std::size_t put = 0;
  };
  using Complain = std::function<void(const std::string& what)>;

  // The directory is not touched before the first call.
  KnowledgeDirectory(std::string directory, const Bounds& bounds, Complain complain)
      : directory_(std::move(directory)), bounds_(bounds), complain_(std::move(complain)) {}

  void fetch(std::uint64_t key, FileKnowledge* file) override;
  void put(std::uint64_t key, const FileKnowledge& file) override;
  // Keeps to the bounds.
  void tidy();

  const std::string& directory() const { return directory_; }
  const Counts& counts() const { return counts_; }

  // "17a3f5e09c4d2b10.order"
  static std::string file_name(std::uint64_t key);

 private:
  // Lists the keys in the directory once, so that a file without an entry costs no look into the
  // file system.
  void list();
  std::string path_of(std::uint64_t key) const { return directory_ + "/" + file_name(key); }

  const std::string directory_;
  const Bounds bounds_;
  const Complain complain_;
  // Whether it has to be written anew is seen by this; 0 where it was not read.
  std::unordered_map<std::uint64_t, std::uint64_t> kept_;
  Counts counts_;
  bool is_listed_ = false;
  bool is_broken_ = false;
};

}  // namespace cairn::node
