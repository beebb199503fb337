// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/chunk_ahead.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::arrays {
namespace {

// Guesses that are remembered: more than all readers have on their way.
constexpr std::size_t kGuessesMax = 2 * ChunkAhead::kReadersMax;

}  // namespace

ChunkAhead::ChunkAhead(std::uint64_t chunks) : chunks_(chunks) { CAIRN_CHECK(chunks != 0); }

std::vector<std::uint64_t> ChunkAhead::observe(std::uint64_t reader, std::uint64_t chunk) {
  CAIRN_CHECK(chunk < chunks_);
  ++observations_;
  judge(chunk);
  const auto [found, is_new] = readers_.try_emplace(reader);
  Reader& its = found->second;
  if (!is_new) {
    const auto step = static_cast<std::int64_t>(chunk - its.chunk);
    its.steps = step == its.step ? its.steps + 1 : 1;
    its.step = step;
  }
  its.chunk = chunk;
  its.read_at = observations_;
  if (readers_.size() > kReadersMax) forget_oldest();

  std::vector<std::uint64_t> next;
  if (is_new) {
    for (const std::uint64_t each : behind_the_team()) guess(each, &next);
    return next;
  }
  const unsigned steps_wanted = wrong_in_a_row_ < kWrongMax ? 1 : kStepsOfProof;
  // A step back beyond the first chunk wraps, and is beyond the last then.
  const std::uint64_t successor = chunk + static_cast<std::uint64_t>(its.step);
  if (its.step != 0 && its.steps >= steps_wanted && successor < chunks_) guess(successor, &next);
  return next;
}

void ChunkAhead::judge(std::uint64_t chunk) {
  const auto found = std::find(guessed_.begin(), guessed_.end(), chunk);
  if (found != guessed_.end()) {
    guessed_.erase(found);
    ++right_;
    wrong_in_a_row_ = 0;
  } else if (!guessed_.empty()) {
    ++wrong_;
    ++wrong_in_a_row_;
  }
}

void ChunkAhead::forget_oldest() {
  CAIRN_DCHECK(!readers_.empty());
  readers_.erase(std::min_element(
      readers_.begin(), readers_.end(),
      [](const auto& a, const auto& b) { return a.second.read_at < b.second.read_at; }));
}

// Those of the readers that have read one chunk each, if these follow each other: as many chunks
// behind them.
std::vector<std::uint64_t> ChunkAhead::behind_the_team() const {
  std::vector<std::uint64_t> read;
  for (const auto& [reader, its] : readers_) {
    if (its.steps == 0) read.push_back(its.chunk);
  }
  std::sort(read.begin(), read.end());
  const bool is_row = !read.empty() && read.back() - read.front() == read.size() - 1 &&
                      std::adjacent_find(read.begin(), read.end()) == read.end();
  std::vector<std::uint64_t> behind;
  for (std::uint64_t at = 1; is_row && at <= read.size(); ++at) {
    if (read.back() + at < chunks_) behind.push_back(read.back() + at);
  }
  return behind;
}

void ChunkAhead::guess(std::uint64_t chunk, std::vector<std::uint64_t>* next) {
  if (std::find(guessed_.begin(), guessed_.end(), chunk) != guessed_.end()) return;
  guessed_.push_back(chunk);
  if (guessed_.size() > kGuessesMax) guessed_.pop_front();
  next->push_back(chunk);
}

}  // namespace cairn::arrays
