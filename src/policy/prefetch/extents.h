// SPDX-License-Identifier: Apache-2.0
// extents: reads that go on behind each other for a while and then elsewhere, from the first read
// of such an extent on. Its length is what is learned. Either the history of the file knows it,
// because the extent was read before. Or it is guessed: of the extents of this stream that came as
// far as this one, so many went on (the hazard of survival analysis, with the mean hazard as the
// prior where few came so far); blocks are foreseen while it is likely that all before them are
// read. Where an extent begins that was read already, this one ends.
//
// Bounds: counts of kLengths lengths, halved when one is full. Thread safety: none. Ownership:
// borrows the history. Units: blocks.
#pragma once

#include <array>

#include "policy/prefetch/access_history.h"
#include "policy/prefetch/predictor.h"

namespace cairn {

class Extents final : public Predictor {
 public:
  // How likely it has to be that a block is read.
  static constexpr float kConfidenceMin = 0.75F;

  explicit Extents(const AccessHistory& history) : history_(history) {}
  const char* name() const override { return "extents"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;
  bool knows_ends() const override { return end_ > first_ && extents_ >= kExtentsMin; }

 private:
  static constexpr std::int64_t kLengths = 128;  // longer ones count as the longest
  static constexpr std::uint16_t kTimesMax = 1024;
  static constexpr std::uint32_t kExtentsMin = 4;  // without which nothing is guessed
  static constexpr float kPriorReads = 4;

  static std::size_t place_of(std::int64_t length);
  void count_reached(std::int64_t from, std::int64_t to);
  void end_extent();
  // How likely an extent that is so long is no longer.
  float hazard(std::int64_t length) const;

  const AccessHistory& history_;
  std::array<std::uint16_t, kLengths> reached_{};
  std::array<std::uint16_t, kLengths> ended_{};
  std::uint32_t extents_ = 0;
  float blocks_reached_ = 0;  // of the mean hazard
  float blocks_ended_ = 0;
  std::int64_t first_ = -1;
  std::int64_t end_ = -1;
  std::int64_t known_end_ = -1;  // of the extent when it was read before; -1: it was not
  std::uint32_t read_blocks_ = 1;
};

}  // namespace cairn
