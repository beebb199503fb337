// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace cairn::node {

// A dataset that the library cannot name keeps its name alone.
bool ArrayBook::is_same(const Entry& left, const Entry& right) {
  return left.file == right.file && left.total.token == right.total.token &&
         left.total.name == right.total.name;
}

void ArrayBook::add(const arrays::DatasetNews& news, arrays::DatasetNews* total) {
  arrays::DatasetNews sum = news;
  sum.served_reads += total->served_reads;
  sum.served_bytes += total->served_bytes;
  for (std::size_t at = 0; at < sum.left_reads.size(); ++at)
    sum.left_reads[at] += total->left_reads[at];
  *total = std::move(sum);
}

bool ArrayBook::note(std::uint32_t run, const ObjectKey& file, const arrays::DatasetNews& news) {
  Entry fresh{run, file, {}, news, false};
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.run == run && is_same(each, fresh);
  });
  if (known != entries_.end()) {
    add(news, &known->total);
    entries_.splice(entries_.begin(), entries_, known);
    return known->path.empty() || known->has_old_path;
  }
  // Where nobody can say the file's path any more, it is as it was.
  const auto named = std::find_if(entries_.begin(), entries_.end(), [&file](const Entry& each) {
    return each.file == file && !each.path.empty();
  });
  if (named != entries_.end()) {
    fresh.path = named->path;
    fresh.has_old_path = true;
  }
  entries_.push_front(std::move(fresh));
  if (entries_.size() > kDatasetsMax) entries_.pop_back();
  CAIRN_CHECK(entries_.size() <= kDatasetsMax);
  return true;
}

void ArrayBook::name_file(const ObjectKey& file, const std::string& path) {
  if (path.empty()) return;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.file != file) continue;
    entry.path = path;
    entry.has_old_path = false;
  }
}

std::string ArrayBook::path_of(const ObjectKey& file) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&file](const Entry& entry) {
    return entry.file == file && !entry.path.empty();
  });
  return found == entries_.end() ? std::string() : found->path;
}

void ArrayBook::end_run(std::uint32_t run) {
  if (run == 0) return;
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto at = entry++;
    if (at->run != run) continue;
    const auto old = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
      return each.run == 0 && is_same(each, *at);
    });
    at->run = 0;
    if (old == entries_.end()) continue;
    // The description is that of the later one.
    add(at->total, &old->total);
    if (!at->path.empty()) old->path = at->path;
    entries_.erase(at);
  }
}

std::vector<ArrayBook::Entry> ArrayBook::of_file(StoreId store, std::uint64_t inode) const {
  std::vector<Entry> found;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->file.store != store || entry->file.id.inode != inode) continue;
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const Entry& each) { return is_same(each, *entry); });
      if (same == found.end()) {
        found.push_back(*entry);
      } else {
        add(entry->total, &same->total);
      }
    }
  }
  std::ranges::sort(found, {}, [](const Entry& entry) { return entry.total.name; });
  return found;
}

std::vector<ArrayBook::Entry> ArrayBook::of_run(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> found;
  std::copy_if(entries_.rbegin(), entries_.rend(), std::back_inserter(found),
               [run](const Entry& entry) { return entry.run == run; });
  return found;
}

}  // namespace cairn::node
