// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/knowledge.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {

NodeKnowledge::NodeKnowledge(const KnowledgeOptions& options)
    : options_(options), budget_(options.file_bytes_max) {
  scores_.fill(kScoreFirst);
}

FileKnowledgePtr NodeKnowledge::file(std::uint64_t key) {
  const auto known = by_key_.find(key);
  if (known != by_key_.end()) {
    files_.splice(files_.begin(), files_, known->second);
    return known->second->file;
  }
  make_room();
  FileKnowledgePtr file = std::make_shared<FileKnowledge>(budget_, options_, scores_);
  if (shelf_ != nullptr) shelf_->fetch(key, file.get());
  // With so many files in use this one is learned of for as long as it is.
  if (files_.size() >= options_.files_max) return file;
  files_.push_front(Entry{key, file});
  by_key_[key] = files_.begin();
  return file;
}

void NodeKnowledge::put_away() const {
  if (shelf_ == nullptr) return;
  // The one used last is put last: where there is room for some only, it is one of them.
  for (auto entry = files_.rbegin(); entry != files_.rend(); ++entry)
    shelf_->put(entry->key, *entry->file);
}

void NodeKnowledge::forget(std::uint64_t key) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return;
  files_.erase(known->second);
  by_key_.erase(known);
}

// A quarter is set free at once: a file more asks for little, and looking through all those in use
// for each would cost more than it gives.
void NodeKnowledge::make_room() {
  CAIRN_CHECK(files_.size() == by_key_.size());
  const bool has_room = budget_.bytes_used() < budget_.bytes_max() / 8 * 7;
  if (has_room && files_.size() < options_.files_max) return;
  const std::size_t files_kept = options_.files_max - std::max(1U, options_.files_max / 4);
  const std::size_t bytes_kept = budget_.bytes_max() / 4 * 3;
  for (auto entry = files_.end(); entry != files_.begin();) {
    if (files_.size() <= files_kept && budget_.bytes_used() <= bytes_kept) return;
    --entry;
    if (entry->file.use_count() > 1) continue;
    if (shelf_ != nullptr) shelf_->put(entry->key, *entry->file);
    by_key_.erase(entry->key);
    entry = files_.erase(entry);
  }
}

}  // namespace cairn
