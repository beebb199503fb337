// SPDX-License-Identifier: Apache-2.0
// The datasets that programs of the node read, as their connectors tell of them: what each is, and
// how its reads went, by run.
//
// Thread safety: all functions from any thread. Ownership: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "base/object_key.h"
#include "policy/arrays/dataset_news.h"

namespace cairn::node {

class ArrayBook {
 public:
  // If there are more, the one that has rested longest is forgotten.
  static constexpr std::size_t kDatasetsMax = 1024;

  struct Entry {
    std::uint32_t run = 0;  // 0: of runs that have ended
    ObjectKey file;
    std::string path;           // of the file; empty: nobody could say
    arrays::DatasetNews total;  // the description as it is now, the reads since the beginning
    bool has_old_path = false;  // nobody has named the file since the entry is there
  };

  // Adds news of a dataset. Returns whether name_file() is wanted: nobody has named the entry's
  // file.
  bool note(std::uint32_t run, const ObjectKey& file, const arrays::DatasetNews& news);
  // Nothing where nobody can say: the process that has told of the file may be gone, and the next
  // one names it.
  void name_file(const ObjectKey& file, const std::string& path);
  // Empty: it has none.
  std::string path_of(const ObjectKey& file) const;
  // The run's datasets are nobody's now.
  void end_run(std::uint32_t run);

  // One entry per dataset of the file, all runs together, by their names.
  std::vector<Entry> of_file(StoreId store, std::uint64_t inode) const;
  std::vector<Entry> of_run(std::uint32_t run) const;

 private:
  static bool is_same(const Entry& left, const Entry& right);
  static void add(const arrays::DatasetNews& news, arrays::DatasetNews* total);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
};

}  // namespace cairn::node
