// SPDX-License-Identifier: Apache-2.0
// s3-fifo: a small queue lets pages through that are used again before they fall out. A main queue
// gives every use of a page another round. A list of pages that fell out lately sends those that
// come back straight into the main queue (Yang, Zhang, Qiu, Yue, Vigfusson: "FIFO queues are all
// you need for cache eviction", SOSP 2023, algorithm 1).
//
// While the cache fills, pages that do not fit the small queue start in the main one.
//
// Thread safety: none.
#pragma once

#include "policy/replacement/page_lists.h"

namespace cairn {

class S3Fifo final : public Expert {
 public:
  explicit S3Fifo(std::uint32_t capacity);

  const char* name() const override { return "s3-fifo"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override {
    return queues_.is_on(kSmall, page) || queues_.is_on(kMain, page);
  }
  bool remembers(PageId page) const override { return queues_.is_on_any(page); }
  void forget(PageId page) override;

 private:
  static constexpr unsigned kSmall = 0;
  static constexpr unsigned kMain = 1;
  static constexpr unsigned kGone = 2;
  static constexpr std::uint8_t kUsesMax = 3;
  static constexpr double kSmallShare = 0.1;

  void evict();
  void evict_from_main();

  const std::uint32_t small_capacity_;
  const std::uint32_t main_capacity_;
  PageLists queues_{3};
  std::vector<std::uint8_t> uses_;
  bool is_filling_ = true;
};

}  // namespace cairn
