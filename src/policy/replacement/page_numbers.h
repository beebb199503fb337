// SPDX-License-Identifier: Apache-2.0
// Small numbers for things with 64-bit keys, as experts need them: given at the first meeting with
// a key, taken back when nobody remembers the page any more.
//
// Thread safety: none. Ownership: about 40 bytes for every number in use.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policy/replacement/expert.h"

namespace cairn {

class PageNumbers {
 public:
  // kNoPage when the key has none.
  PageId find(std::uint64_t key) const {
    const auto found = pages_.find(key);
    return found == pages_.end() ? kNoPage : found->second;
  }

  // The number of `key`, a new one if it has none. From time to time all numbers are looked at, and
  // those that `expert` does not remember are taken back: once for as many new ones as were left in
  // use the last time, so that a number costs the same however many there are.
  PageId number_for(std::uint64_t key, const Expert& expert) {
    const auto found = pages_.find(key);
    if (found != pages_.end()) return found->second;
    if (free_.empty() && pages_.size() >= sweep_at_) take_back(expert);
    PageId page{next_};
    if (free_.empty()) {
      ++next_;
    } else {
      page = free_.back();
      free_.pop_back();
    }
    pages_.emplace(key, page);
    return page;
  }

  std::size_t size() const { return pages_.size(); }
  // visit(key, page), in no order; it must change nothing.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [key, page] : pages_) visit(key, page);
  }
  // Takes the key's number back. Requires: nobody remembers the page.
  void take_back(std::uint64_t key) {
    const auto found = pages_.find(key);
    if (found == pages_.end()) return;
    free_.push_back(found->second);
    pages_.erase(found);
  }

 private:
  static constexpr std::size_t kSweepAtMin = 1024;

  void take_back(const Expert& expert) {
    for (auto at = pages_.begin(); at != pages_.end();) {
      if (expert.remembers(at->second)) {
        ++at;
      } else {
        free_.push_back(at->second);
        at = pages_.erase(at);
      }
    }
    sweep_at_ = pages_.size() * 2 > kSweepAtMin ? pages_.size() * 2 : kSweepAtMin;
  }

  std::unordered_map<std::uint64_t, PageId> pages_;
  std::vector<PageId> free_;
  std::uint32_t next_ = 0;
  std::size_t sweep_at_ = kSweepAtMin;
};

}  // namespace cairn
