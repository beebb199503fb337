// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/marked_times.h"

#include <bit>

#include "base/check.h"

namespace cairn {
namespace {

std::uint32_t count_of(std::uint64_t bits) {
  return static_cast<std::uint32_t>(std::popcount(bits));
}

}  // namespace

void MarkedTimes::reset(std::size_t length, std::uint32_t marked) {
  CAIRN_CHECK(length <= UINT32_MAX - (kBits - 1));
  CAIRN_CHECK(marked < length);
  words_.assign((length + kBits - 1) / kBits, 0);
  tree_.assign(words_.size() + 1, 0);
  marked_ = marked;
  open_word_ = word_of(marked);
  for (std::uint32_t time = 0; time < marked; time += kBits) {
    const std::uint32_t left = marked - time;
    words_[word_of(time)] = left >= kBits ? UINT64_MAX : bit_of(left) - 1;
  }
  for (std::size_t at = 1; at < tree_.size(); ++at) {
    if (at - 1 != open_word_) tree_[at] += count_of(words_[at - 1]);
    const std::size_t above = at + (at & -at);
    if (above < tree_.size()) tree_[above] += tree_[at];
  }
}

void MarkedTimes::add_to_tree(std::size_t word, std::uint32_t change) {
  for (std::size_t at = word + 1; at < tree_.size(); at += at & -at) tree_[at] += change;
}

void MarkedTimes::mark(std::uint32_t time) {
  CAIRN_DCHECK(time < length());
  CAIRN_DCHECK(words_[word_of(time)] < bit_of(time));
  CAIRN_DCHECK(word_of(time) >= open_word_);
  if (word_of(time) != open_word_) {
    add_to_tree(open_word_, count_of(words_[open_word_]));
    open_word_ = word_of(time);
  }
  words_[word_of(time)] |= bit_of(time);
  ++marked_;
}

void MarkedTimes::clear(std::uint32_t time) {
  CAIRN_DCHECK(is_marked(time));
  words_[word_of(time)] &= ~bit_of(time);
  if (word_of(time) != open_word_) add_to_tree(word_of(time), UINT32_MAX);
  --marked_;
}

std::uint32_t MarkedTimes::marked_before(std::uint32_t time) const {
  CAIRN_DCHECK(time < length());
  const std::size_t word = word_of(time);
  const std::uint64_t later = words_[word] & ~(bit_of(time) - 1);
  if (word >= open_word_) return word == open_word_ ? marked_ - count_of(later) : marked_;
  std::uint32_t count = count_of(words_[word] ^ later);
  for (std::size_t at = word; at > 0; at -= at & -at) count += tree_[at];
  CAIRN_DCHECK(count <= marked_);
  return count;
}

std::size_t MarkedTimes::memory_bytes() const {
  return words_.capacity() * sizeof(words_[0]) + tree_.capacity() * sizeof(tree_[0]);
}

std::vector<std::uint32_t> MarkedTimes::marked_before_words() const {
  std::vector<std::uint32_t> counts(words_.size());
  std::uint32_t count = 0;
  for (std::size_t word = 0; word < words_.size(); ++word) {
    counts[word] = count;
    count += count_of(words_[word]);
  }
  CAIRN_DCHECK(count == marked_);
  return counts;
}

std::uint32_t MarkedTimes::marked_before(std::uint32_t time,
                                         const std::vector<std::uint32_t>& words) const {
  const std::size_t word = word_of(time);
  return words[word] + static_cast<std::uint32_t>(std::popcount(words_[word] & (bit_of(time) - 1)));
}

}  // namespace cairn
