// SPDX-License-Identifier: Apache-2.0
// A set of moments on a time line of fixed length, which counts those before any moment in
// O(log length): a bitmap, and a Fenwick tree over the counts of its words (Fenwick: "A new data
// structure for cumulative frequency tables", Software: Practice and Experience 24(3), 1994). New
// moments come in their order. Their word enters the tree when the next one begins, so that a mark
// changes the tree once in 64 times.
//
// Thread safety: none. Ownership: three bits for each two moments of the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

class MarkedTimes {
 public:
  // The moments from 0 to `marked` - 1 are marked. Requires: marked < length <= 2^32 - 64.
  void reset(std::size_t length, std::uint32_t marked);

  // Requires: the moment is on the line, and later than all that have been marked.
  void mark(std::uint32_t time);
  // Requires: it is marked.
  void clear(std::uint32_t time);

  bool is_marked(std::uint32_t time) const { return (words_[word_of(time)] & bit_of(time)) != 0; }
  // How many moments before this one are marked.
  std::uint32_t marked_before(std::uint32_t time) const;
  std::uint32_t marked() const { return marked_; }
  std::size_t length() const { return words_.size() * kBits; }
  std::size_t memory_bytes() const;

  // For each word of the bitmap, how many moments before it are marked.
  std::vector<std::uint32_t> marked_before_words() const;
  // The same as marked_before(), at once, with what marked_before_words() returned.
  std::uint32_t marked_before(std::uint32_t time, const std::vector<std::uint32_t>& words) const;

 private:
  static constexpr std::size_t kBits = 64;
  static std::size_t word_of(std::uint32_t time) { return time / kBits; }
  static std::uint64_t bit_of(std::uint32_t time) { return std::uint64_t{1} << time % kBits; }
  // Modulo 2^32, so that minus one is an addition, too.
  void add_to_tree(std::size_t word, std::uint32_t change);

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> tree_;  // element i covers the last (i & -i) words up to word i - 1
  std::size_t open_word_ = 0;        // the word of the newest mark, which the tree leaves out
  std::uint32_t marked_ = 0;
};

}  // namespace cairn
